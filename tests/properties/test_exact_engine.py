"""The exact engine against brute force, record by record."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.values.table import Table
from tests.properties.code_tables import procedures, tables

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def brute_force_beliefs(table: Table, records: np.ndarray, procedure: ReleaseProcedure) -> tuple[np.ndarray, np.ndarray]:
    """Take the beliefs that brute force would measure."""
    caught: list[tuple[np.ndarray, np.ndarray]] = []

    def distance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        caught.append((p, q))
        return np.zeros(len(p))

    again = SimpleNamespace(release=procedure.sanitizer.release)  # hides what it shares with the exact engine
    brute_force.influence(table, records, replace(procedure, sanitizer=again, distance=distance))
    return caught[0]


@pytest.mark.parametrize(("most_rows", "examples", "targets"), [(60, 500, 10_000), (300, 130, 10_000)])
def test_beliefs_equal_brute_force_for_every_record(most_rows: int, examples: int, targets: int) -> None:
    seen = []

    @settings(UNHURRIED, max_examples=examples)
    @given(tables(most_rows), procedures())
    def check(table: Table, procedure: ReleaseProcedure) -> None:
        records = np.arange(table.distinct)
        expected, expected_without = brute_force_beliefs(table, records, procedure)
        ((found, found_without),) = exact.beliefs(table, records, procedure).values()
        np.testing.assert_array_equal(found, expected)  # both engines do the same operations in the same order
        np.testing.assert_array_equal(found_without, expected_without)
        seen.append(table.distinct)

    check()
    assert sum(seen) >= targets


@settings(UNHURRIED, max_examples=40)
@given(tables(150), procedures(), st.randoms(use_true_random=False))
def test_any_subset_in_any_order_changes_no_bit(table: Table, procedure: ReleaseProcedure, random) -> None:
    everyone = np.arange(table.distinct)
    (whole,) = exact.beliefs(table, everyone, procedure).values()
    some = np.array(random.choices(range(table.distinct), k=random.randint(1, table.distinct)))
    (part,) = exact.beliefs(table, some, procedure).values()
    for mine, theirs in zip(part, whole, strict=True):
        assert mine.tobytes() == theirs[some].tobytes()


@settings(UNHURRIED, max_examples=25)
@given(tables(300), procedures(), st.sampled_from((1, 2, 8, 32)))
def test_chunking_changes_no_bit(table: Table, procedure: ReleaseProcedure, count: int) -> None:
    everyone = np.arange(table.distinct)
    whole = exact.influence(table, everyone, procedure)
    cut = exact.chunks(table, everyone, procedure, count)
    assert len(cut) <= count
    assert sorted(np.concatenate(cut).tolist()) == everyone.tolist()
    for records in cut:
        part = exact.influence(table, records, procedure)
        assert part.distance.tobytes() == whole.distance[records].tobytes()
        assert part.predicted.tobytes() == whole.predicted[records].tobytes()
        assert part.predicted_without.tobytes() == whole.predicted_without[records].tobytes()


@settings(UNHURRIED, max_examples=25)
@given(tables(100), procedures())
def test_blocks_of_targets_change_no_bit(table: Table, procedure: ReleaseProcedure) -> None:
    everyone = np.arange(table.distinct)
    (whole,) = exact.beliefs(table, everyone, procedure).values()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "COVERAGE_BYTES", 1)
        (one_by_one,) = exact.beliefs(table, everyone, procedure).values()
    for mine, theirs in zip(one_by_one, whole, strict=True):
        assert mine.tobytes() == theirs.tobytes()
