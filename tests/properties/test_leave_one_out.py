"""The release without a record, found from the tree of the whole table, against sanitising the table without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dit_dask.engines import ReleaseProcedure
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.release import Release
from dit_dask.values.table import Table
from tests.properties.code_tables import assert_same_release, procedures, tables

RNG = np.random.default_rng(0)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=200)
@given(tables(80), procedures())
def test_every_release_equals_sanitising_again(table: Table, procedure: ReleaseProcedure) -> None:
    everyone = np.arange(table.distinct)
    releases = procedure.sanitizer.leave_one_out(table, everyone)
    for record, found in zip(everyone, releases, strict=True):
        expected = procedure.sanitizer.release(table.without(int(record)), RNG)
        assert_same_release(found, expected, table.codes[[record, 0, table.distinct // 2]])
        assert_difference_holds(found, procedure.sanitizer.release(table, RNG))


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(tables(40), st.booleans(), st.integers(0, 99))
def test_every_raw_release_equals_publishing_again(table: Table, by_person: bool, seed: int) -> None:
    if by_person:
        persons = np.random.default_rng(seed).integers(0, max(2, table.distinct // 3), table.distinct)
        table = replace(table, subject=persons)
    everyone, raw = np.arange(table.distinct), Raw()
    for record, found in zip(everyone, raw.leave_one_out(table, everyone), strict=True):
        expected = raw.release(table.without(int(record)), RNG)
        np.testing.assert_array_equal(found.published.keys(), expected.published.keys())
        np.testing.assert_array_equal(found.counts, expected.counts)
        assert_difference_holds(found, raw.release(table, RNG))


def assert_difference_holds(found: Release, full: Release) -> None:
    """All classes but the different ones are those of the full release, in its order."""
    assert found.difference is not None
    np.testing.assert_array_equal(found.difference.base.counts, full.counts)
    kept, known = (
        np.delete(np.arange(len(one.counts)), places)
        for one, places in zip((full, found), (found.difference.gone, found.difference.new), strict=True)
    )
    np.testing.assert_array_equal(full.published.keys()[kept], found.published.keys()[known])
    np.testing.assert_array_equal(full.counts[kept], found.counts[known])
