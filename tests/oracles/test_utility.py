"""Utility against plain Python on sets of codes, worked examples, and the formulas that ARX publishes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.engines import NoisyCounts
from dit_dask.measures.utility.figures import measure_frequencies, measure_utility, raw_utility
from dit_dask.measures.utility.intervals import published_shares
from dit_dask.measures.utility.original import count_original, draw_queries
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.release import Ranges, Release, Sets
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse
from tests.audits import WORKED, WORKED_SCHEMA, loaded, points
from tests.properties.code_tables import procedures, tables

DIGITS = {"rel": 1e-8, "abs": 1e-12}  # figures have nine digits
PLACES = 10  # buckets of a column


def as_sets(release: Release) -> Release:
    """The same release, as one that was read from a file."""
    columns = [release.published.coverage(place, len(one.levels)) for place, one in enumerate(release.schema.quasi_identifiers)]
    value = np.column_stack([value for value, _ in columns]).astype(np.int32)
    return Release(release.schema, Sets(value, tuple(sets for _, sets in columns)), release.counts)


def covered(release: Release) -> list[list[list[int]]]:
    """For each class and attribute the codes that it publishes."""
    columns = [release.published.coverage(place, len(one.levels)) for place, one in enumerate(release.schema.quasi_identifiers)]
    return [
        [[code for code, inside in enumerate(sets[value[place]]) if inside] for value, sets in columns]
        for place in range(len(release.counts))
    ]


def plain_penalty(table: Table, release: Release) -> Fraction:
    lost = Fraction(0)
    for codes, counts in zip(covered(release), release.counts.tolist(), strict=True):
        for attribute, inside in zip(table.schema.quasi_identifiers, codes, strict=True):
            if attribute.values is None:
                cell = Fraction(0) if len(inside) == 1 else Fraction(len(inside), len(attribute.levels))
            else:
                numbers = [Fraction(float(attribute.values[code])) for code in inside]
                whole = Fraction(float(max(attribute.values))) - Fraction(float(min(attribute.values)))
                cell = (max(numbers) - min(numbers)) / whole if whole else Fraction(0)
            lost += cell * sum(counts)
    suppressed = table.rows - int(release.counts.sum())
    return (lost / len(table.schema.quasi_identifiers) + suppressed) / table.rows


def plain_groups(release: Release) -> list[int]:
    sizes: Counter[str] = Counter()
    for codes, counts in zip(covered(release), release.counts.tolist(), strict=True):
        sizes[str(codes)] += sum(counts)
    return list(sizes.values())


def original_rows(table: Table) -> list[tuple[int, ...]]:
    """Every row with its codes and, last, its secret."""
    rows = zip(table.codes.tolist(), table.secret.tolist(), table.weights.tolist(), strict=True)
    return [(*codes, secret) for codes, secret, weight in rows for _ in range(weight)]


def numbers_of(attribute: Attribute) -> list[Fraction] | None:
    """The numbers of a scale that has something between two values; labels have none."""
    if attribute.kind not in ("numeric", "date"):
        return None
    return [Fraction(level) for level in attribute.levels]


def plain_share(attribute: Attribute, codes: list[int], first: int, last: int) -> Fraction:
    """The part of a published value between two levels: by length of intervals, else by number of labels."""
    numbers = numbers_of(attribute)
    if numbers is None or len(codes) == 1:
        return Fraction(sum(first <= code <= last for code in codes), len(codes))
    low, high = numbers[min(codes)], numbers[max(codes)]
    return max(Fraction(0), min(high, numbers[last]) - max(low, numbers[first])) / (high - low)


def plain_parts(attribute: Attribute, codes: list[int], of: list[int]) -> dict[int, Fraction]:
    """How a published value is divided among buckets; those of numbers meet halfway."""
    numbers = numbers_of(attribute)
    if numbers is None or len(codes) == 1:
        return {
            bucket: Fraction(sum(of[code] == bucket for code in codes), len(codes)) for bucket in {of[code] for code in codes}
        }
    low, high, parts = numbers[min(codes)], numbers[max(codes)], {}
    for bucket in sorted(set(of)):
        start = next((numbers[at] + numbers[at - 1]) / 2 if at else low for at in range(len(of)) if of[at] == bucket)
        stop = next(
            (numbers[at] + numbers[at + 1]) / 2 if at + 1 < len(of) else high
            for at in reversed(range(len(of)))
            if of[at] == bucket
        )
        parts[bucket] = max(Fraction(0), min(stop, high) - max(start, low)) / (high - low)
    return parts


def plain_errors(table: Table, release: Release, seed: int) -> list[Fraction]:
    rows, classes = original_rows(table), list(zip(covered(release), release.counts.tolist(), strict=True))
    errors = []
    for query in draw_queries([len(one.levels) for one in table.schema.quasi_identifiers], seed):
        true = sum(all(first <= row[at] <= last for at, first, last in query.spans) for row in rows)
        estimate = Fraction(0)
        for codes, counts in classes:
            part = Fraction(sum(counts))
            for at, first, last in query.spans:
                part *= plain_share(table.schema.quasi_identifiers[at], codes[at], first, last)
            estimate += part
        errors.append(abs(estimate - true) / max(Fraction(true), Fraction(table.rows) / 1000))
    return errors


def plain_bucket(codes: list[int], levels: int, *, is_ordered: bool) -> list[int]:
    """The bucket of each code: cut where the cumulated rows reach each tenth, or the nine most common codes and the rest."""
    count = Counter(codes)
    if not is_ordered:
        common = sorted(range(levels), key=lambda code: (-count[code], code))
        kept = sorted(common if levels <= PLACES else common[: PLACES - 1])
        return [kept.index(code) if code in kept else PLACES - 1 for code in range(levels)]
    bins = min(PLACES, len(codes))
    reach = np.cumsum([count[code] for code in range(levels)]).tolist()
    cuts = {next(code for code in range(levels) if reach[code] * bins >= share * len(codes)) for share in range(1, bins)}
    return [sum(cut < code for cut in cuts) for code in range(levels)]


def plain_tvd(table: Table, release: Release, ways: int) -> Fraction:
    rows, attributes = original_rows(table), table.schema.quasi_identifiers
    sizes = [*(len(one.levels) for one in attributes), len(table.schema.sensitive.levels)]
    ordered = [*(one.values is not None for one in attributes), False]
    of = [
        plain_bucket([row[at] for row in rows], size, is_ordered=is_ordered)
        for at, (size, is_ordered) in enumerate(zip(sizes, ordered, strict=True))
    ]
    found = []
    for columns in combinations(range(len(sizes)), ways):
        before: Counter[tuple[int, ...]] = Counter(tuple(of[at][row[at]] for at in columns) for row in rows)
        after: dict[tuple[int, ...], Fraction] = {}
        for codes, counts in zip(covered(release), release.counts.tolist(), strict=True):
            for secret, count in enumerate(counts):
                spread = {(): Fraction(count)}
                for at in columns:
                    is_secret = at == len(attributes)
                    parts = {of[at][secret]: Fraction(1)} if is_secret else plain_parts(attributes[at], codes[at], of[at])
                    spread = {(*key, bucket): mass * part for key, mass in spread.items() for bucket, part in parts.items()}
                for key, mass in spread.items():
                    after[key] = after.get(key, Fraction(0)) + mass
        total = sum(after.values())
        cells = {*before, *after}
        found.append(sum(abs(Fraction(before[key], len(rows)) - after.get(key, Fraction(0)) / total) for key in cells) / 2)
    return Fraction(sum(found), len(found))


@settings(max_examples=30)
@given(tables(most_rows=25), procedures(), st.integers(0, 3))
def test_figures_are_those_of_plain_python_on_single_rows(table: Table, procedure, seed: int) -> None:
    release = procedure.publish(table)
    found = measure_utility(table, release, k=3, seed=seed)
    groups = plain_groups(release)
    assert found.certainty_penalty == pytest.approx(float(plain_penalty(table, release)), **DIGITS)
    assert found.discernibility == sum(size**2 for size in groups)
    assert found.average_class == pytest.approx(table.rows / len(groups), **DIGITS)
    assert found.average_class_over_k == pytest.approx(table.rows / len(groups) / 3, **DIGITS)
    errors = np.array([float(error) for error in plain_errors(table, release, seed)])
    for level, error in found.query_error.items():
        assert error == pytest.approx(np.quantile(errors, float(level)), **DIGITS)
    for ways, distance in found.tvd.items():
        assert distance == pytest.approx(float(plain_tvd(table, release, int(ways))), **DIGITS)


@settings(max_examples=30)
@given(tables(), procedures())
def test_sets_and_ranges_that_publish_the_same_have_the_same_utility(table: Table, procedure) -> None:
    release = procedure.publish(table)
    assert measure_utility(table, as_sets(release)) == measure_utility(table, release)


@given(tables())
def test_a_raw_table_loses_nothing(table: Table) -> None:
    release = Raw().release(table, np.random.default_rng())
    assert raw_utility(release) == measure_utility(table, release)


@given(tables(most_rows=20), procedures())
def test_no_figure_is_outside_its_range(table: Table, procedure) -> None:
    found = measure_utility(table, procedure.publish(table))
    assert 0 <= (found.certainty_penalty or 0) <= 1
    assert table.rows <= (found.discernibility or 0) <= table.rows**2
    assert all(0 <= (distance or 0) <= 1 for distance in found.tvd.values())
    levels = [found.query_error[name] or 0 for name in ("0.25", "0.5", "0.75", "0.95")]
    assert levels[0] >= 0
    assert all(low <= high for low, high in pairwise(levels))


def test_the_worked_example_by_hand() -> None:
    """Ages 28..72, two classes: [28, 36] of two men, [47, 72] of all three others."""
    rows = loaded(WORKED, WORKED_SCHEMA)
    (test,) = points(rows, WORKED_SCHEMA, [{"sanitizer": {"name": "mondrian", "k": 2}}])
    found = measure_utility(rows.table, test.procedure.publish(rows.table), k=2)
    first, second = 2 * (8 / 44 + 0), 3 * (25 / 44 + 1)
    assert found.certainty_penalty == pytest.approx((first + second) / 10, **DIGITS)
    assert (found.discernibility, found.average_class, found.average_class_over_k) == (2**2 + 3**2, 2.5, 1.25)


def test_suppressed_rows_lose_everything_as_in_arx() -> None:
    """ARX: a suppressed row adds the number of rows to discernibility, and every cell of it a loss of 1."""
    rows = loaded(WORKED, WORKED_SCHEMA)
    published = Ranges(np.array([[0, 1]], np.int32), np.array([[1, 1]], np.int32))
    release = Release(rows.table.schema, published, np.array([[0, 2]]))
    found = measure_utility(rows.table, release)
    assert found.discernibility == 2**2 + 3 * 5
    assert found.certainty_penalty == pytest.approx((2 * (8 / 44) / 2 + 3) / 5, **DIGITS)


def test_a_class_of_suppressed_rows_counts_as_if_they_were_left_out() -> None:
    """Two rows with a class of their own, three with the whole domain in every column: the figures of the case above."""
    rows = loaded(WORKED, WORKED_SCHEMA)
    low, high = np.array([[0, 1], [0, 0]], np.int32), np.array([[1, 1], [4, 1]], np.int32)
    release = Release(rows.table.schema, Ranges(low, high), np.array([[0, 2], [2, 1]]))
    for one in (release, as_sets(release)):
        assert one.suppressed.tolist() == [False, True]
        found = measure_utility(rows.table, one, k=2)
        assert (found.discernibility, found.average_class, found.average_class_over_k) == (2**2 + 3 * 5, 2, 1)
        assert found.certainty_penalty == pytest.approx((2 * (8 / 44) / 2 + 3) / 5, **DIGITS)


def test_a_release_of_one_class_suppresses_nothing() -> None:
    """It publishes the whole domain of all: a class of five rows."""
    rows = loaded(WORKED, WORKED_SCHEMA)
    whole = Ranges(np.array([[0, 0]], np.int32), np.array([[4, 1]], np.int32))
    release = Release(rows.table.schema, whole, np.array([[2, 3]]))
    found = measure_utility(rows.table, release)
    assert not release.suppressed.any()
    assert (found.certainty_penalty, found.discernibility, found.average_class) == (1, 5**2, 5)


def test_arx_loss_by_hand() -> None:
    """Iyengar's loss as ARX scales it, (leaves - 1) / (leaves of the tree - 1), differs from ours by the known amount only."""
    paths = {"leaf": [f"{group}{number}" for group in "ab" for number in range(3)]}
    frame = pd.DataFrame({"place": paths["leaf"] * 2, "s": list("xy") * 6})
    schema = {"quasi_identifiers": {"place": {"kind": "categorical", "hierarchy": {"prefix": [1]}}}, "sensitive": "s"}
    rows = loaded(frame, schema)
    ends = np.array([[0], [3]], np.int32)
    release = Release(rows.table.schema, Ranges(ends, ends + 2), np.array([[3, 3], [3, 3]]))
    ours = measure_utility(rows.table, release).certainty_penalty or 0.0
    assert ours == 0.5  # three of six leaves, in every row
    assert (ours - 1 / 6) / (1 - 1 / 6) == pytest.approx((3 - 1) / (6 - 1))


def test_a_value_that_the_table_does_not_have_tells_nothing() -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    empty = Sets(np.zeros((1, 2), np.int32), (np.zeros((1, 5), bool), np.ones((1, 2), bool)))
    found = measure_utility(rows.table, Release(rows.table.schema, empty, np.array([[1, 4]])))
    assert found.certainty_penalty == 1
    assert found.query_error["0.95"] is not None


def test_noisy_counts_have_errors_and_distances_and_nothing_else() -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    specs = [{"sanitizer": {"name": "laplace", "epsilon": epsilon}} for epsilon in ("inf", 1.0, 0.01)]
    without_noise, noisy, noisier = (test.procedure.recheck(test.rows.table)[2] for test in points(rows, WORKED_SCHEMA, specs))
    assert all(isinstance(test.procedure, NoisyCounts) for test in points(rows, WORKED_SCHEMA, specs))
    assert set(without_noise.query_error.values()) == set(without_noise.tvd.values()) == {0.0}
    assert (noisy.certainty_penalty, noisy.discernibility, noisy.average_class) == (None, None, None)
    assert 0 < (noisy.query_error["0.5"] or 0) < (noisier.query_error["0.5"] or 0)
    assert (noisy.tvd["2"] or 0) > 0


def one_class(values: list[float], kind: str) -> tuple[Table, Release]:
    """A table of one row for each value and a constant secret, and its release in one class."""
    attribute = Attribute("x", kind, tuple(values), np.array(values))
    schema = Schema((attribute,), Secret("s", ("a",)))
    table = collapse(schema, np.arange(len(values), dtype=np.int32)[:, None], np.zeros(len(values), np.int32))[0]
    whole = Ranges(np.zeros((1, 1), np.int32), np.array([[len(values) - 1]], np.int32))
    return table, Release(schema, whole, np.array([[len(values)]]))


def test_a_skewed_number_is_spread_over_its_interval_not_over_the_values_of_the_table() -> None:
    """Salaries 1, 2, 4 … 1024 in one class: half of the rows are said to be above 512, where one of eleven is."""
    table, release = one_class([float(2**power) for power in range(11)], "numeric")
    shares = published_shares(release)[0]
    assert shares.inside(9, 10).tolist() == [512 / 1023]
    assert shares.inside(0, 9).tolist() == [511 / 1023]
    assert shares.inside(3, 3).tolist() == [0]
    found = measure_utility(table, release)
    assert (found.query_error["0.5"] or 0) > 0.5
    assert found.tvd["1"] == pytest.approx(float(plain_tvd(table, release, 1)), **DIGITS)


def test_a_set_of_numbers_with_gaps_is_spread_from_its_lowest_to_its_highest() -> None:
    _, release = one_class([1.0, 2.0, 4.0, 8.0], "numeric")
    sets = np.array([[True, False, True, False], [False, True, False, False], [False] * 4])
    gaps = Release(release.schema, Sets(np.array([[0], [1], [2]], np.int32), (sets,)), np.ones((3, 1), np.int64))
    assert published_shares(gaps)[0].inside(0, 1).tolist() == pytest.approx([1 / 3, 1, 0])  # of [1, 4], 2, nothing


def test_ordered_labels_are_spread_over_their_ranks() -> None:
    table, release = one_class([0.0, 1.0, 2.0, 3.0], "ordinal")
    assert published_shares(release)[0].inside(1, 1).tolist() == [0.25]
    assert set(measure_utility(table, release).query_error.values()) == {0.0}


@pytest.mark.parametrize("values", [[-1.5e308, 0.0, 1.5e308], [0.0, 5e-324], [1e18, 1e18 + 256]])
def test_numbers_of_any_size_have_finite_figures(values: list[float]) -> None:
    table, release = one_class(values, "numeric")
    with np.errstate(all="raise", under="ignore"):
        found = measure_frequencies(table, release)
    assert all(np.isfinite(figure) for figure in (*found.query_error.values(), *found.tvd.values()))
    shares = published_shares(release)[0]
    assert shares.spread(count_original(table, 0).buckets[0]).sum() == pytest.approx(1)


def test_queries_depend_on_the_seed_and_on_nothing_else() -> None:
    assert draw_queries([5, 9, 3], 7) == draw_queries([5, 9, 3], 7) != draw_queries([5, 9, 3], 8)
    assert {len(query.spans) for query in draw_queries([5], 7)} == {1}
    rows = loaded(WORKED, WORKED_SCHEMA)
    assert count_original(rows.table, 7).answers.tolist() == count_original(rows.table.first(5), 7).answers.tolist()
