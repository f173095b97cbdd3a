"""The release without a record, found from the tree of the whole table, against sanitising the table without it."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from dit_dask.engines import ReleaseProcedure
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
