"""Persons with several rows: the release without a person, found from the whole tree, against sanitising the rest again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.engines import ReleaseProcedure
from dit_dask.values.table import Table, collapse
from tests.properties.code_tables import procedures, tables

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
        np.testing.assert_array_equal(found.published.low, expected.published.low)
        np.testing.assert_array_equal(found.published.high, expected.published.high)
        np.testing.assert_array_equal(found.counts, expected.counts)
        for target in (record, 0, table.distinct // 2):
            codes = table.codes[target]
            assert found.tree.descend(codes) == expected.tree.descend(codes)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=100)
@given(tables(60), procedures(), st.data())
def test_persons_of_one_row_each_are_rows(table: Table, procedure: ReleaseProcedure, data: st.DataObject) -> None:
    need, diverse, _ = procedure.sanitizer.rule
    sanitizer = replace(procedure.sanitizer, rule=(need, diverse, True))
    codes, secret = np.repeat(table.codes, table.weights, axis=0), np.repeat(table.secret, table.weights)
    persons = np.array(data.draw(st.permutations(range(len(codes)))), np.int64)
    found = sanitizer.release(collapse(table.schema, codes, secret, persons)[0], RNG)
    expected = sanitizer.release(table, RNG)
    np.testing.assert_array_equal(found.published.keys(), expected.published.keys())
    np.testing.assert_array_equal(found.counts, expected.counts)
