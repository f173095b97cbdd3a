"""What the exact engine accepts, and tables at its limits."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.errors import InputError
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.hierarchy import parse
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse

ADVERSARIES = {"bernoulli-nb": BernoulliNB()}
PROCEDURE = ReleaseProcedure(Mondrian(Predicates(k=2)), TF(), ADVERSARIES, SIMPLE["emd"], 0, "test")


def small_table() -> Table:
    values = np.arange(20.0)
    schema = Schema((Attribute("age", "numeric", tuple(values), values),), Secret("s", ("a", "b")))
    return collapse(schema, np.arange(20, dtype=np.int32)[:, None], np.arange(20, dtype=np.int32) % 2)[0]


def test_it_says_what_it_cannot_run() -> None:
    other = SimpleNamespace()
    assert exact.applies(other) == "the exact engine needs Mondrian or Raw or Suppressed"
    refusals = {
        "sanitizer": "the exact engine needs Mondrian or Raw or Suppressed; got SimpleNamespace",
        "adversary": "the exact engine needs BernoulliNB or ConditionalFrequency or NarrowestClass; got SimpleNamespace",
        "encoder": "the exact engine needs TF; got SimpleNamespace",
    }
    for part, refusal in refusals.items():
        changed = {"adversaries": {"other": other}} if part == "adversary" else {part: other}
        assert exact.applies(replace(PROCEDURE, **changed)) == refusal


@pytest.mark.parametrize("sanitizer", [PROCEDURE.sanitizer, Raw(), Suppressed()])
def test_conditional_frequency_needs_no_encoder(sanitizer: Sanitizer) -> None:
    for adversary, encoder in ((BernoulliNB(), TF()), (ConditionalFrequency(), SimpleNamespace())):
        assert exact.applies(replace(PROCEDURE, sanitizer=sanitizer, adversaries={"only": adversary}, encoder=encoder)) is None


@pytest.mark.parametrize("distance", SIMPLE)
def test_any_distance_can_be_asked_for(distance: str) -> None:
    table, procedure = small_table(), replace(PROCEDURE, distance=SIMPLE[distance])
    everyone = np.arange(table.distinct)
    expected = brute_force.influence(table, everyone, procedure)
    found = exact.influence(table, everyone, procedure)
    # a divergence of nearly equal beliefs loses digits: its terms cancel
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("adversary", [BernoulliNB(), ConditionalFrequency()])
@pytest.mark.parametrize("sanitizer", [PROCEDURE.sanitizer, Raw(), Suppressed()])
def test_no_records_give_an_empty_answer(sanitizer: Sanitizer, adversary: Adversary) -> None:
    procedure = replace(PROCEDURE, sanitizer=sanitizer, adversaries={"only": adversary})
    assert len(exact.influence(small_table(), np.array([], np.int64), procedure).distance) == 0


@pytest.mark.parametrize("engine", [brute_force, exact])
@pytest.mark.parametrize("adversary", [BernoulliNB(), ConditionalFrequency()])
@pytest.mark.parametrize("sanitizer", [Raw(), Suppressed()])
def test_nothing_can_be_learned_without_the_only_record(sanitizer: Sanitizer, adversary: Adversary, engine: ModuleType) -> None:
    table, procedure = small_table().first(1), replace(PROCEDURE, sanitizer=sanitizer, adversaries={"only": adversary})
    with pytest.raises(InputError, match="beliefs that are not numbers"):
        engine.influence(table, np.arange(1), procedure)


@pytest.mark.parametrize("sanitizer", [Mondrian(Predicates(k=5)), Raw(), Suppressed()])
def test_many_sensitive_values_take_little_memory(sanitizer: Sanitizer) -> None:
    """1,500 nearly distinct salaries: all beliefs of one adversary at once would take 36 MB, all coverage 108 MB."""
    rng, rows = np.random.default_rng(0), 1500
    values = np.arange(300.0)
    attributes = tuple(Attribute(name, "numeric", tuple(values), values) for name in "abcdefghijkl")
    codes = rng.integers(0, 300, (rows, len(attributes))).astype(np.int32)
    schema = Schema(attributes, Secret("salary", tuple(map(str, range(rows)))))
    table, _ = collapse(schema, codes, rng.permutation(rows).astype(np.int32))
    everyone, adversaries = np.arange(table.distinct), (BernoulliNB(), ConditionalFrequency())
    for _ in exact.blocks(table, everyone[:2], sanitizer, adversaries):  # compiles
        pass
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "COVERAGE_BYTES", 2**20)
        tracemalloc.start()
        seen = [len(block) for block, _ in exact.blocks(table, everyone, sanitizer, adversaries)]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert sum(seen) == rows
    assert peak < 16 * 2**20


def test_a_tree_of_three_thousand_levels_overflows_no_stack() -> None:
    chain = ";".join(f"n{depth}" for depth in range(3000))
    tree = parse(f"x;{chain};*\ny;{chain};*", "chain")
    values = np.arange(6.0)
    attributes = (Attribute("c", "categorical", tree.leaves, None, tree), Attribute("n", "numeric", tuple(values), values))
    codes = np.array([[code % 2, code // 2] for code in range(12)], np.int32)
    table, _ = collapse(Schema(attributes, Secret("s", ("a", "b"))), codes, (np.arange(12) % 3 == 0).astype(np.int32))
    everyone = np.arange(table.distinct)
    again = SimpleNamespace(release=PROCEDURE.sanitizer.release)  # hides what it shares with the exact engine
    expected = brute_force.influence(table, everyone, replace(PROCEDURE, sanitizer=again))
    found = exact.influence(table, everyone, PROCEDURE)
    np.testing.assert_allclose(found.distance, expected.distance, rtol=0, atol=1e-12)


def test_what_is_compiled_ahead_is_what_the_engine_uses() -> None:
    exact.compile_ahead()
    table = small_table()
    exact.influence(table, np.arange(table.distinct), PROCEDURE)
    for function in (exact.cover, exact.posterior, exact.decide, exact.follow):
        assert len(function.signatures) == 1, function.py_func.__name__
