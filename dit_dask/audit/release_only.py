"""What can be said of a release alone: properties of its classes, and distances that are not delta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.statistics import Statistics
from dit_dask.audit.test import Test
from dit_dask.sanitizers.claims import possible_groups
from dit_dask.sanitizers.properties import find_properties, group_counts
from dit_dask.values.arrays import distinct

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.table import Table

RISKS = ("0.05", "0.09", "0.2", "0.33")
KEPT = ("records", "distinct", "subjects", "skipped")
OWN_ROW = ("mean", "quantiles", "share_over", "argmax_changed", "mean_gain", "largest_gain")
NOT_KNOWN = (
    "only the release is there, not what would have been published without each person, so delta is not known: run dit "
    "leave-out and sanitise those tables, too, or describe the rule as a python sanitizer"
)


@dataclass(frozen=True)
class ReleaseOnly:
    """The object `release_only` of a summary: counted in rows and, where the schema has a subject, in persons, too."""

    figures: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return dict(self.figures)

    @property
    def largest(self) -> Any:
        """The largest own-row distance."""
        return self.figures["own_row"]["largest"]


def describe_release(test: Test, found: Statistics, adversaries: Mapping[str, Statistics]) -> ReleaseOnly | None:
    """Describe the only release of a test; None where the test has releases without each record."""
    if test.external is None or test.external.match is None:
        return None
    release = test.procedure.publish(test.rows.table)
    counts = group_counts(release)
    size = counts.sum(axis=1)
    by_name = {name: _own_row(each) for name, each in adversaries.items()}
    in_rows = find_properties(counts).document() | {"reidentification": _reidentification(1 / np.repeat(size, size))}
    figures = {"own_row": _own_row(found) | {"adversaries": by_name}, **in_rows, "not_known": NOT_KNOWN}
    if test.rows.known_persons is not None:
        figures["persons"] = in_rows if test.rows.table.subject is None else _describe_persons(test, release)
    return ReleaseOnly(figures)


def _describe_persons(test: Test, release: Release) -> dict[str, Any] | None:
    """The same figures where persons have several rows; None where the release does not tell which rows are whose.

    A person counts once in a class, and once for each of its sensitive values there.
    """
    table, groups = test.rows.table, len(release.counts)
    placed = _place_rows(test, release, table)
    if placed is None or table.subject is None:
        return None
    record, group = placed
    secrets, base = release.counts.shape[1], int(table.subject.max()) + 1
    person, secret = table.subject[record], table.secret[record].astype(np.int64)
    cells, members = distinct((group * secrets + secret) * base + person), distinct(group * base + person)
    counts = np.bincount(cells // base, minlength=groups * secrets).reshape(groups, secrets)
    size = np.bincount(members // base, minlength=groups)
    whole = np.bincount(distinct(secret * base + person) // base, minlength=secrets)
    risk = np.zeros(base)
    np.maximum.at(risk, members % base, 1 / size[members // base])  # of several classes the smallest one counts
    return find_properties(counts, size, whole).document() | {"reidentification": _reidentification(risk[risk > 0])}


def _place_rows(test: Test, release: Release, table: Table) -> tuple[Ints, Ints] | None:
    """Return the published rows of the table and the class of each; None if they do not add up to what is published."""
    holder = None if test.external is None else test.external.find_own_rows(np.random.default_rng(0)).holder
    if holder is None:
        placed = possible_groups(release, np.arange(len(release.counts)), table)
    else:
        record = np.flatnonzero(holder >= 0)
        placed = record, holder[record]
    if placed is None or len(placed[0]) > len(distinct(placed[0])):
        return None
    counts = np.zeros_like(release.counts)
    np.add.at(counts, (placed[1], table.secret[placed[0]]), table.weights[placed[0]])
    return placed if np.array_equal(counts, release.counts) else None


def without_inference(found: Statistics) -> Statistics:
    """The same statistics, null but for those that count rows: what was computed is not what they are called."""
    return Statistics(
        {
            name: value if name in KEPT else dict.fromkeys(value) if isinstance(value, Mapping) else None
            for name, value in found.values.items()
        }
    )


def _own_row(found: Statistics) -> dict[str, Any]:
    shown = found.document()
    return {"largest": shown["delta"]} | {name: shown[name] for name in OWN_ROW if name in shown}


def _reidentification(risk: Floats) -> dict[str, Any]:
    """The chance 1 / class size to find somebody, of the worst and on average, and the shares above limits."""
    over = {limit: float((risk > float(limit)).mean()) for limit in RISKS}
    return {"largest": float(risk.max()), "mean": float(risk.mean()), "share_over": over}
