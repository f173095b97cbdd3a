"""Persons with several rows: the release without a person, found from the whole tree, against sanitising the rest again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure, brute_force, exact
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.table import Table, collapse
from tests.properties.code_tables import assert_same_release, procedures, tables

RNG = np.random.default_rng(0)


@st.composite
def tables_of_persons(draw: st.DrawFn, most_rows: int = 80) -> Table:
    """A table whose rows are dealt out to persons: evenly, to a few, or nearly one each."""
    table = draw(tables(most_rows, fewest_rows=16))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="persons"))
    codes, secret = np.repeat(table.codes, table.weights, axis=0), np.repeat(table.secret, table.weights)
    persons = draw(st.sampled_from((10, len(codes) // 2, len(codes))))
    subject = np.unique(rng.integers(0, persons, len(codes)), return_inverse=True)[1].astype(np.int64)
    return collapse(table.schema, codes, secret, subject)[0]


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=300)
@given(tables_of_persons(), procedures())
def test_every_release_without_a_person_equals_sanitising_again(table: Table, procedure: ReleaseProcedure) -> None:
    everyone = np.arange(table.distinct)
    releases = procedure.sanitizer.leave_one_out(table, everyone)
    for record, found in zip(everyone, releases, strict=True):
        rest = table.without(int(record))
        assert rest.persons == table.persons - 1
        expected = procedure.sanitizer.release(rest, RNG)
        assert_same_release(found, expected, table.codes[[record, 0, table.distinct // 2]])


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=100)
@given(tables(60), procedures(), st.data())
def test_persons_of_one_row_each_are_rows(table: Table, procedure: ReleaseProcedure, data: st.DataObject) -> None:
    sanitizer = Mondrian(replace(procedure.sanitizer.predicates, strict=True, tighten=True))
    codes, secret = np.repeat(table.codes, table.weights, axis=0), np.repeat(table.secret, table.weights)
    persons = np.array(data.draw(st.permutations(range(len(codes)))), np.int64)
    found = sanitizer.release(collapse(table.schema, codes, secret, persons)[0], RNG)
    expected = sanitizer.release(table, RNG)
    np.testing.assert_array_equal(found.published.keys(), expected.published.keys())
    np.testing.assert_array_equal(found.counts, expected.counts)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=100)
@given(tables_of_persons(), st.sampled_from((Raw(), Suppressed())), st.data())
def test_controls_of_persons_are_brute_force(table: Table, sanitizer: Raw | Suppressed, data: st.DataObject) -> None:
    adversaries = {"bernoulli-nb": BernoulliNB(), "conditional-frequency": ConditionalFrequency()}
    procedure = ReleaseProcedure(sanitizer, TF(), adversaries, SIMPLE["emd"], 0, "test", by_person=True)
    assert exact.applies(procedure) is None
    chosen = data.draw(st.lists(st.integers(0, table.distinct - 1), min_size=1, unique=True))
    records = np.array(chosen)
    found, expected = (engine.influence(table, records, procedure) for engine in (exact, brute_force))
    for name in adversaries:
        np.testing.assert_allclose(found.shifts[name].distance, expected.shifts[name].distance, atol=1e-12)
        np.testing.assert_allclose(found.shifts[name].gain, expected.shifts[name].gain, atol=1e-12)
