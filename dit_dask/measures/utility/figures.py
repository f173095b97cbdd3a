"""The utility of a release: what is left of the table for those who analyse what is published.

Formulas and their sources: docs/utility.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.utility.intervals import LabelShares, published_shares
from dit_dask.measures.utility.original import Original, Query, count_original
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

QUERY_LEVELS = {str(level): level for level in (0.25, 0.5, 0.75, 0.95)}
WAYS = {"1": 1.0, "2": 2.0}
SMALLEST_ANSWER = 0.001  # of the rows: errors of smaller counts are relative to this
BLOCK_CLASSES = 2**16
DIGITS = 9  # sums of matrix products differ in later ones with the number of threads


def _nothing(keys: Mapping[str, float]) -> dict[str, float | None]:
    return dict.fromkeys(keys)


@dataclass(frozen=True)
class Utility:
    """The figures of one release; None is what does not apply."""

    certainty_penalty: float | None = None
    discernibility: float | None = None
    average_class: float | None = None
    average_class_over_k: float | None = None
    query_error: Mapping[str, float | None] = field(default_factory=lambda: _nothing(QUERY_LEVELS))
    tvd: Mapping[str, float | None] = field(default_factory=lambda: _nothing(WAYS))

    def figure(self, name: str, key: str | None = None) -> float | None:
        """One figure, by the name of its statistic."""
        value = getattr(self, name)
        return value.get(key) if isinstance(value, Mapping) else value

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Utility:
        """The inverse of `document`; runs of earlier versions have none of it."""
        return cls(**{name: document[name] for name in cls.__dataclass_fields__ if name in document})


NO_UTILITY = Utility()


def measure_utility(table: Table, release: Release, k: int | None = None, seed: int = 0) -> Utility:
    """Compare a release with the table that it was made of; `k` is what it claims, `seed` draws queries and pairs."""
    suppressed = suppressed_rows(table, release)
    classes = class_sizes(release.only(~release.suppressed))
    average = float(classes.mean())
    frequencies = measure_frequencies(table, release, seed)
    return Utility(
        _round(float(np.mean(attribute_penalties(table, release)))),
        int((classes**2).sum() + suppressed * table.rows),
        _round(average),
        None if k is None else _round(average / k),
        frequencies.query_error,
        frequencies.tvd,
    )


def raw_utility(release: Release) -> Utility:
    """The figures of a table that is published as it is: nothing is lost."""
    classes = class_sizes(release)
    zeros = (dict.fromkeys(keys, 0.0) for keys in (QUERY_LEVELS, WAYS))
    return Utility(0.0, int((classes**2).sum()), _round(float(classes.mean())), None, *zeros)


def measure_frequencies(table: Table, release: Release, seed: int = 0) -> Utility:
    """The figures that noisy counts have, too: errors of queries, and distances of frequency tables."""
    original, shares = count_original(table, seed), published_shares(release)
    size = release.counts.sum(axis=1).astype(np.float64)
    errors = query_errors(original, shares, size)
    quantiles = {name: _round(float(np.quantile(errors, level))) for name, level in QUERY_LEVELS.items()}
    return Utility(query_error=quantiles, tvd=_distances(original, shares, release.counts))


def suppressed_rows(table: Table, release: Release) -> int:
    """The rows of suppressed classes, and those that are not in the release at all."""
    return max(0, table.rows - int(release.counts[~release.suppressed].sum()))


def class_sizes(release: Release) -> Floats:
    """Return the rows of each group of equal published values."""
    keys = release.published.keys()
    order = np.lexsort(keys.T)
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return np.add.reduceat(release.counts.sum(axis=1)[order], np.flatnonzero(starts)).astype(np.float64)


def attribute_penalties(table: Table, release: Release) -> list[float]:
    """The mean over the cells of each quasi-identifier: 0 for an original value, 1 for nothing known, as in suppressed rows."""
    kept, suppressed = release.only(~release.suppressed), suppressed_rows(table, release)
    size, widths = kept.counts.sum(axis=1), kept.published.widths(np.arange(len(kept.counts)))
    columns = [
        _penalties(kept, place, attribute, widths[:, place]) for place, attribute in enumerate(release.schema.quasi_identifiers)
    ]
    rows = float(size.sum()) + suppressed
    return [(float((size * column).sum()) + suppressed) / rows for column in columns]


def _penalties(release: Release, place: int, attribute: Attribute, width: Ints) -> Floats:
    """Return (classes,): width / range of numbers, leaves / leaves of labels; 1 where no value of the table is covered."""
    if attribute.values is None:
        found = np.where(width == 1, 0.0, width / len(attribute.levels))
    else:
        low, high, _ = release.published.ends(place)
        values = attribute.values
        found = (values[high] - values[low]) / max(values[-1] - values[0], np.finfo(float).tiny)
    return np.where(width == 0, 1.0, found)


def query_errors(original: Original, shares: Sequence[LabelShares], size: Floats) -> Floats:
    """Return (queries,) relative errors; every row is spread evenly over what its class publishes."""
    estimates = np.array([_estimate(query, shares, size) for query in original.queries])
    return np.abs(estimates - original.answers) / np.maximum(original.answers, SMALLEST_ANSWER * original.rows)


def _estimate(query: Query, shares: Sequence[LabelShares], size: Floats) -> float:
    (attribute, first, last), *others = query.spans
    rows = size * shares[attribute].inside(first, last)[shares[attribute].value]
    for attribute, first, last in others:
        rows *= shares[attribute].inside(first, last)[shares[attribute].value]
    return float(rows.sum())


def _distances(original: Original, shares: Sequence[LabelShares], counts: Ints) -> dict[str, float | None]:
    """The mean total variation distance of marginals and of 2-way tables, between relative frequencies."""
    size, buckets = counts.sum(axis=1).astype(np.float64), original.buckets
    spread = [one.spread(bucket) for one, bucket in zip(shares, buckets, strict=False)]
    secrets = np.zeros((len(counts), buckets[-1].count))
    for code, bucket in enumerate(buckets[-1].of):
        secrets[:, bucket] += counts[:, code]
    marginals = [np.bincount(one.value, size) @ each for one, each in zip(shares, spread, strict=True)]
    marginals.append(secrets.sum(axis=0))
    tables = [np.zeros_like(table) for table in original.tables]
    for start in range(0, len(size), BLOCK_CLASSES):
        block = slice(start, start + BLOCK_CLASSES)
        columns = [each[one.value[block]] for one, each in zip(shares, spread, strict=True)]
        for table, (one, other) in zip(tables, original.pairs, strict=True):
            weighted = secrets[block] if other == len(columns) else columns[other] * size[block, None]
            table += columns[one].T @ weighted
    one_way = [_tvd(*pair) for pair in zip(original.marginals, marginals, strict=True)]
    two_way = [_tvd(*pair) for pair in zip(original.tables, tables, strict=True)]
    return {name: _round(float(np.mean(each))) for name, each in zip(WAYS, (one_way, two_way), strict=True)}


def _tvd(one: Floats, other: Floats) -> float:
    total = other.sum()
    return float(np.abs(one / one.sum() - other / total).sum() / 2) if total else 1.0


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
