"""The exact engine against brute force, record by record."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.table import Table
from tests.properties.code_tables import procedures, tables

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
BOTH = (ConditionalFrequency(), BernoulliNB())
MONDRIAN = procedures().map(lambda procedure: procedure.sanitizer)
SANITIZERS = st.one_of(MONDRIAN, MONDRIAN, st.just(Raw()), st.just(Suppressed()))


def assert_equal_to_brute_force(table: Table, sanitizer: Sanitizer) -> None:
    """Compare the beliefs about every record to the bit: both engines do the same operations in the same order."""
    records = np.arange(table.distinct)
    again = SimpleNamespace(release=sanitizer.release)  # hides what it shares with the exact engine
    asked = ReleaseProcedure(again, TF(), {type(one).__name__: one for one in BOTH}, SIMPLE["emd"], 0, "test")
    (expected,), _, _ = brute_force.compute_beliefs([table], records, [asked])
    for beliefs, (found, found_without) in zip(expected.values(), exact.beliefs(table, records, sanitizer, BOTH), strict=True):
        np.testing.assert_array_equal(found, beliefs.full[:, 0])
        np.testing.assert_array_equal(found_without, beliefs.without[:, 0])


def assert_same_bits(found: list[exact.Beliefs], expected: list[exact.Beliefs], records: np.ndarray) -> None:
    """Compare beliefs about some records with those about all."""
    for sides, expected_sides in zip(found, expected, strict=True):
        for mine, theirs in zip(sides, expected_sides, strict=True):
            assert mine.tobytes() == theirs[records].tobytes()


@pytest.mark.parametrize(("most_rows", "examples", "targets"), [(60, 500, 10_000), (300, 150, 10_000)])
def test_beliefs_equal_brute_force_for_every_record(most_rows: int, examples: int, targets: int) -> None:
    seen = []

    @settings(UNHURRIED, max_examples=examples)
    @given(tables(most_rows), MONDRIAN)
    def check(table: Table, sanitizer: Sanitizer) -> None:
        assert_equal_to_brute_force(table, sanitizer)
        seen.append(table.distinct)

    check()
    assert sum(seen) >= targets


@settings(UNHURRIED, max_examples=150)
@given(tables(120), st.integers(2, 4))
def test_beliefs_from_bounds_that_are_not_tightened_equal_brute_force(table: Table, need: int) -> None:
    assert_equal_to_brute_force(table, Mondrian(Predicates(l=need, tighten=False)))


@settings(UNHURRIED, max_examples=60)
@given(tables(60), st.sampled_from((Raw(), Suppressed())))
def test_beliefs_from_tables_without_a_tree_equal_brute_force(table: Table, sanitizer: Sanitizer) -> None:
    assert_equal_to_brute_force(table, sanitizer)


@settings(UNHURRIED, max_examples=150)
@given(tables(7, fewest_rows=2, fewest_secrets=1), SANITIZERS)
def test_beliefs_from_tiny_tables_equal_brute_force(table: Table, sanitizer: Sanitizer) -> None:
    assert_equal_to_brute_force(table, sanitizer)


@settings(UNHURRIED, max_examples=60)
@given(tables(150), SANITIZERS, st.lists(st.sampled_from(BOTH), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_subset_in_any_order_changes_no_bit(table: Table, sanitizer: Sanitizer, asked: list[Adversary], random) -> None:
    whole = dict(zip(BOTH, exact.beliefs(table, np.arange(table.distinct), sanitizer, BOTH), strict=True))
    some = np.array(random.choices(range(table.distinct), k=random.randint(1, table.distinct)))
    part = exact.beliefs(table, some, sanitizer, asked)
    assert_same_bits(part, [whole[adversary] for adversary in asked], some)


@settings(UNHURRIED, max_examples=40)
@given(tables(300), procedures(), SANITIZERS, st.sampled_from(BOTH), st.sampled_from((1, 2, 8, 32)))
def test_chunking_changes_no_bit(
    table: Table, drawn: ReleaseProcedure, sanitizer: Sanitizer, adversary: Adversary, count: int
) -> None:
    procedure = replace(drawn, sanitizer=sanitizer, adversaries={"only": adversary})
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


@settings(UNHURRIED, max_examples=40)
@given(tables(100), SANITIZERS, st.sampled_from((BOTH, BOTH[:1], BOTH[1:])))
def test_blocks_of_targets_change_no_bit(table: Table, sanitizer: Sanitizer, asked: tuple[Adversary, ...]) -> None:
    everyone = np.arange(table.distinct)
    whole = exact.beliefs(table, everyone, sanitizer, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "COVERAGE_BYTES", 1)
        one_by_one = exact.beliefs(table, everyone, sanitizer, asked)
    assert_same_bits(one_by_one, whole, everyone)
