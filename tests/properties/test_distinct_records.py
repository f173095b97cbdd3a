from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit.persons import PersonDistances
from dit_dask.audit.plan import first_rows
from dit_dask.audit.statistics import Distribution
from dit_dask.engines.gain import MARKS, GainTally, Shift
from dit_dask.sanitizers.claims import KAnonymity, recheck
from dit_dask.values.arrays import distinct
from dit_dask.values.release import Ranges, Release
from dit_dask.values.schema import Schema, Secret
from dit_dask.values.table import Rows, collapse

SCHEMA = Schema((), Secret("s", ("a", "b")))
LARGEST_CODE = 2**31 - 1


@st.composite
def rows_of_codes(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Rows whose columns have few values, many, or values as large as codes can be: keys of them do not fit into 64 bits."""
    tops = draw(st.lists(st.sampled_from([0, 1, 5, 2**15, LARGEST_CODE]), min_size=2, max_size=9))
    row = st.tuples(*(st.one_of(st.integers(0, top), st.just(top)) for top in tops))
    rows = draw(st.lists(row, min_size=1, max_size=40))
    return rows + draw(st.lists(st.sampled_from(rows), max_size=20))


def plain_collapse(rows: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
    """The distinct rows in lexicographic order, how often each is there, and where each row went."""
    counts = Counter(rows)
    records = sorted(counts)
    return records, [counts[record] for record in records], [records.index(row) for row in rows]


@given(rows_of_codes())
def test_collapse_equals_sorting_and_counting_rows(rows: list[tuple[int, ...]]) -> None:
    matrix = np.array(rows, np.int32)
    table, index = collapse(SCHEMA, matrix[:, :-1], matrix[:, -1])
    records, weights, places = plain_collapse(rows)
    assert list(map(tuple, np.column_stack([table.codes, table.secret]).tolist())) == records
    assert (table.weights.tolist(), index.tolist()) == (weights, places)
    assert [array.dtype for array in (table.codes, table.secret, table.weights, index)] == [np.int32] * 2 + [np.int64] * 2
    assert table.codes.flags.c_contiguous


@given(rows_of_codes())
def test_collapse_does_not_care_how_codes_lie_in_memory(rows: list[tuple[int, ...]]) -> None:
    matrix = np.array(rows, np.int32)
    by_rows, by_columns = (collapse(SCHEMA, lay(matrix[:, :-1]), matrix[:, -1])[0] for lay in (np.array, np.asfortranarray))
    assert by_rows.codes.tobytes() == by_columns.codes.tobytes()
    assert by_columns.codes.flags.c_contiguous


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_distinct_values_ascend(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@given(st.data())
def test_the_first_row_of_a_record_is_the_first_audited_one(data: st.DataObject) -> None:
    index = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=30))
    audited = sorted(data.draw(st.sets(st.integers(0, len(index) - 1), min_size=1)))
    whole: Any = SimpleNamespace(distinct=7)
    rows = Rows(whole, np.array(index), len(index), 0, np.ones(7, np.int64))
    seen = [index[row] for row in audited]
    expected = [place for place, record in enumerate(seen) if record not in seen[:place]]
    test: Any = SimpleNamespace(rows=rows, audited=np.array(audited))
    assert first_rows(test).tolist() == expected


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, np.inf, np.nan]), st.integers(1, 2**40))), st.integers(0, 9))
def test_a_distribution_counts_rows_and_records(records: list[tuple[float, int]], changed: int) -> None:
    distance, rows = (np.array([record[place] for record in records]) for place in range(2))
    found = Distribution.of(distance.astype(float), rows.astype(np.int64), changed)
    everyone = pd.DataFrame(records, columns=["distance", "rows"])
    grouped = everyone.groupby("distance")["rows"]  # skipped records have no group
    assert found.distance.tolist() == list(grouped.groups)
    assert (found.rows.tolist(), found.distinct.tolist()) == (grouped.sum().tolist(), grouped.size().tolist())
    assert found.rows.dtype == found.distinct.dtype == np.int64
    assert found.skipped == everyone.loc[everyone["distance"].isna(), "rows"].sum()
    assert (found.total, found.changed) == (sum(grouped.sum()), changed)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.1, 0.5, np.nan]), st.booleans(), st.integers(1, 9))),
    st.booleans(),
)
def test_persons_count_once_with_their_largest_distance(records: list[tuple[int, float, bool, int]], has_members: bool) -> None:
    person, distance, changed, rows = (np.array([record[place] for record in records]) for place in range(4))
    distance = distance.astype(float)
    members = {"first": distance / 2, "second": 1 - distance} if has_members else {}
    of_persons = PersonDistances.of(person.astype(np.int64), distance, changed.astype(bool), rows.astype(np.int64), members)
    found = of_persons.distribution()
    tested: dict[int, list[tuple[float, bool, int]]] = {}
    for whose, far, is_changed, count in records:
        if not np.isnan(far):
            tested.setdefault(whose, []).append((far, is_changed, count))
    largest = Counter(max(far for far, _, _ in group) for group in tested.values())
    assert dict(zip(found.distance.tolist(), found.rows.tolist(), strict=True)) == largest
    assert found.distinct.tolist() == found.rows.tolist()
    assert found.changed == sum(any(is_changed for _, is_changed, _ in group) for group in tested.values())
    assert found.tested_rows == sum(count for group in tested.values() for *_, count in group)
    assert found.distinct_rows == sum(len(group) for group in tested.values())
    assert found.skipped == sum(count for _, far, _, count in records if np.isnan(far))
    for name, of in {"first": lambda far: far / 2, "second": lambda far: 1 - far}.items() if has_members else ():
        expected = Counter(max(of(far) for far, _, _ in group) for group in tested.values())
        assert dict(zip(found.members[name].distance.tolist(), found.members[name].rows.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, MARKS - 1), st.integers(1, 2**40), st.booleans())))
def test_a_tally_counts_the_rows_of_tested_records(records: list[tuple[int, int, bool]]) -> None:
    marks, weights, tested = (np.array([record[place] for record in records]) for place in range(3))
    shifted = Shift(np.where(tested.astype(bool), 0.5, np.nan), np.zeros(len(records)), marks.astype(np.uint8))
    expected = Counter[int]()
    for mark, weight, is_tested in records:
        expected[mark] += weight * is_tested
    assert GainTally.of(shifted, weights.astype(np.int64)).rows == tuple(expected[mark] for mark in range(MARKS))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_classes_that_publish_the_same_values_are_rechecked_as_one(classes: list[tuple[int, int, int, int]]) -> None:
    low, high = ([[row[place]] for row in classes] for place in (0, 1))
    counts = np.array([row[2:] for row in classes], np.int64)
    found = recheck(Release(SCHEMA, Ranges(np.array(low, np.int32), np.array(high, np.int32)), counts), KAnonymity(5))
    sizes = Counter[tuple[int, int]]()
    for first, last, *held in classes:
        sizes[first, last] += sum(held)
    broken = [size for size in sizes.values() if size < 5]
    assert (found.classes, found.smallest_class, found.holds) == (len(sizes), min(sizes.values()), not broken)
    assert (found.broken_classes, found.broken_records) == (len(broken), sum(broken))
