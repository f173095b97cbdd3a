"""Which sensible variant comes nearest to a published number: order of columns, hierarchies, checks, bounds, comparison."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.engines import ENGINES
from dit_dask.kernels.naive_bayes import posterior
from dit_dask.reproduction.comparison import nearest
from dit_dask.reproduction.datasets import COLUMNS, NUMERIC, Selection, Source
from dit_dask.reproduction.figures_of_tests import measure_test, sanitizer_of
from dit_dask.reproduction.pieces import Work
from dit_dask.reproduction.published import LARGEST
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Table, collapse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

OTHER_RULE: Mapping[str, tuple[str, dict[str, Any]]] = {
    "k": ("both sides checked", {"variant": "strict"}),
    "l": ("bounds tightened", {"tighten": True}),
}
ADULT_SAMPLES = (1, 2, 3)
Variants = list[tuple[str, float]]


def rows(work: Work, unexplained: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each unexplained number of Internet Usage, which has no random sample, the nearest of all variants."""
    found = []
    for row in unexplained:
        if row["dataset"] != "internet":
            continue
        parameter, _, text = row["parameter"].partition(" = ")
        published = LARGEST["internet"][parameter, int(text)]
        variants = internet_variants(work, parameter, int(text))
        name, value = nearest(published, variants)
        orders = [figure for label, figure in variants if label.startswith("order")]
        found.append(
            {
                "number": f"internet, {row['parameter']}",
                "published": published.value,
                "as the paper says": row["ours"],
                **{label: figure for label, figure in variants if not label.startswith("order")},
                "least over orders": min(orders),
                "most over orders": max(orders),
                "nearest": name,
                "its figure": value,
                "reproduces it": abs(value - published.value) <= published.rounding,
            }
        )
    return found


def internet_variants(work: Work, parameter: str, value: int) -> Variants:
    """The largest distance of every variant on Internet Usage."""
    name = f"search internet {parameter}={value}"
    return [(label, figure) for label, figure in work.piece(name, lambda: list(_try_internet(work, parameter, value)))]


def _try_internet(work: Work, parameter: str, value: int) -> Iterator[tuple[str, float]]:
    base, published = Selection("internet"), sanitizer_of(parameter, value)
    label, changed = OTHER_RULE[parameter]
    yield label, _largest(work.source, base, sanitizer_of(parameter, value, **changed))
    yield "the five columns of v2", _largest(work.source, Selection("internet-v2"), published)
    yield "flat hierarchies", _largest(work.source, Selection("internet", hierarchies="flat"), published)
    yield "numbers compared as text", largest_as_text(work.source, base, published)
    yield "hierarchies of this package", _largest(work.source, Selection("internet", hierarchies="package"), published)
    orders = list(itertools.permutations(range(len(COLUMNS["internet"]))))
    (test,) = work.source.tests(base, [{"sanitizer": published, "adversary": "bernoulli-nb", "distance": "tv"}])
    for order in orders[:: 60 if work.quick else 1]:
        table = _reorder(test.rows.table, order)
        distance = ENGINES["exact"].influence(table, np.arange(table.distinct), test.procedure).distance
        yield f"order {', '.join(COLUMNS['internet'][place] for place in order)}", float(distance.max())


def _reorder(table: Table, order: Sequence[int]) -> Table:
    """The same rows with the columns in another order, on which ties between equally wide attributes depend."""
    columns = tuple(table.schema.quasi_identifiers[place] for place in order)
    schema = replace(table.schema, quasi_identifiers=columns)
    row = np.repeat(np.arange(table.distinct), table.weights)
    return collapse(schema, table.codes[row][:, list(order)], table.secret[row])[0]


def adult_variants(work: Work, parameter: str, value: int) -> Variants:
    """The median over three samples of the largest distance of each variant on Adult; the order of rows never matters."""

    def compute() -> Variants:
        label, changed = OTHER_RULE[parameter]
        reverse = COLUMNS["adult"][::-1]
        variants: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            label: ({}, changed),
            "flat hierarchies": ({"hierarchies": "flat"}, {}),
            "flat hierarchies and incomplete rows kept": ({"hierarchies": "flat", "keeps_incomplete": True}, {}),
            "columns in reverse": ({"columns": reverse}, {}),
            "hierarchies of this package": ({"hierarchies": "package"}, {}),
            "numeric columns last": ({"columns": tuple(sorted(COLUMNS["adult"], key=NUMERIC.__contains__))}, {}),
        }
        found = []
        for name, (selection, rule) in variants.items():
            sanitizer = sanitizer_of(parameter, value, **rule)
            figures = [_largest(work.source, Selection("adult", sample, **selection), sanitizer) for sample in ADULT_SAMPLES]
            found.append((name, sorted(figures)[1]))
        return found

    return [(name, figure) for name, figure in work.piece(f"search adult {parameter}={value}", compute)]


def _largest(source: Source, chosen: Selection, sanitizer: Any) -> float:
    return float(measure_test(source, chosen, sanitizer)["largest"])


def largest_as_text(source: Source, chosen: Selection, sanitizer: Any) -> float:
    """The largest distance if the encoding compares numbers as the authors' script does: as text, so that "5" > "40"."""
    (test,) = source.tests(chosen, [{"sanitizer": sanitizer, "adversary": "bernoulli-nb"}])
    table = test.rows.table
    ranks = [_text_ranks(attribute.values) for attribute in table.schema.quasi_identifiers]
    mondrian = test.procedure.sanitizer  # type: ignore[attr-defined]
    full = mondrian.release(table, None)
    largest = 0.0
    for record, release in enumerate(mondrian.leave_one_out(table, np.arange(table.distinct))):
        sides = [_beliefs(one, ranks, table.codes[record]) for one in (full, release)]
        largest = max(largest, float(np.abs(sides[0] - sides[1]).sum()) / 2)
    return largest


def _text_ranks(values: Floats | None) -> Ints | None:
    """The place of each number in the order of its text."""
    if values is None:
        return None
    order = np.argsort(np.array([f"{value:g}" for value in values]))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _beliefs(release: Release, ranks: Sequence[Ints | None], target: Codes) -> Floats:
    published = release.published
    if not isinstance(published, Ranges):
        raise TypeError("Mondrian publishes ranges")
    covers = release.covers(target)
    for place, rank in enumerate(ranks):
        if rank is not None:
            low, high, own = rank[published.low[:, place]], rank[published.high[:, place]], rank[target[place]]
            covers[:, place] = (low <= own) & (own <= high)
    counts = release.counts.astype(np.float64)
    coverage = covers.T.astype(np.float64) @ counts
    return posterior(coverage, counts.sum(axis=0), np.ones(len(target), bool))
