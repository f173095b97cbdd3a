"""What the exact engine accepts, and tables at its limits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.sanitizers.claims import KAnonymity
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.hierarchy import parse
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Table, collapse

ADVERSARIES = {"bernoulli-nb": BernoulliNB()}
PROCEDURE = ReleaseProcedure(Mondrian(KAnonymity(2), (2, False, True)), TF(), ADVERSARIES, SIMPLE["emd"], 0, "test")


def small_table() -> Table:
    values = np.arange(20.0)
    schema = Schema((Attribute("age", "numeric", tuple(values), values),), Secret("s", ("a", "b")))
    return collapse(schema, np.arange(20, dtype=np.int32)[:, None], np.arange(20, dtype=np.int32) % 2)[0]


def test_it_says_what_it_cannot_run() -> None:
    assert exact.applies(PROCEDURE) is None
    assert exact.applies(replace(PROCEDURE, sanitizer=Raw())) == "the exact engine needs Mondrian; got Raw"
    assert exact.applies(replace(PROCEDURE, adversaries={"conditional-frequency": ConditionalFrequency()})) == (
        "the exact engine needs BernoulliNB; got ConditionalFrequency"
    )


@pytest.mark.parametrize("distance", SIMPLE)
def test_any_distance_can_be_asked_for(distance: str) -> None:
    table, procedure = small_table(), replace(PROCEDURE, distance=SIMPLE[distance])
    everyone = np.arange(table.distinct)
    expected = brute_force.influence(table, everyone, procedure)
    found = exact.influence(table, everyone, procedure)
    # a divergence of nearly equal beliefs loses digits: its terms cancel
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-7, atol=1e-12)


def test_no_records_give_an_empty_answer() -> None:
    assert len(exact.influence(small_table(), np.array([], np.int64), PROCEDURE).distance) == 0


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
