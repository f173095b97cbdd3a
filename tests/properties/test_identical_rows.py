"""Claims that hold only because of identical rows, against counting by hand; every record's class, against the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.engines import ReleaseProcedure
from dit_dask.sanitizers.claims import FEWEST_REPEATED, KAnonymity, place_records, recheck
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.table import Table
from tests.properties.code_tables import procedures, tables


@settings(max_examples=60)
@given(tables(), procedures())
def test_records_are_placed_where_the_tree_and_the_ranges_have_them(table: Table, procedure: ReleaseProcedure) -> None:
    release = procedure.publish(table)
    by_tree = place_records(release, table.codes)
    assert by_tree is not None
    for target, place in zip(table.codes, by_tree, strict=True):
        assert release.tree is not None
        assert release.tree.descend(target) == slice(place, place + 1)
        assert release.covers(target)[place].all()
    rebuilt = np.zeros_like(release.counts)
    np.add.at(rebuilt, (by_tree, table.secret), table.weights)
    np.testing.assert_array_equal(rebuilt, release.counts)


@settings(max_examples=60)
@given(tables(), st.integers(2, 6))
def test_a_class_of_k_rows_but_fewer_records_owes_its_k_to_identical_rows(table: Table, k: int) -> None:
    found = recheck(Raw().release(table, np.random.default_rng(0)), KAnonymity(k), table)
    rows: dict[tuple[int, ...], list[int]] = {}
    for codes, weight in zip(table.codes.tolist(), table.weights.tolist(), strict=True):
        rows.setdefault(tuple(codes), []).append(weight)
    only = [sum(weights) for weights in rows.values() if len(weights) < k <= sum(weights)]
    assert (found.identical.classes, found.identical.records) == (len(only), sum(only))


@settings(max_examples=40)
@given(tables(), st.integers(1, 4))
def test_repeated_rows_are_found_by_the_common_divisor_of_their_counts(table: Table, times: int) -> None:
    repeated = replace(table, weights=table.weights * times)
    found = recheck(Raw().release(repeated, np.random.default_rng(0)), None, repeated).identical.repeated
    expected = int(np.gcd.reduce(repeated.weights)) if table.distinct >= FEWEST_REPEATED else 1
    assert found == expected
    assert found % times == 0 or table.distinct < FEWEST_REPEATED


@given(tables())
def test_the_share_of_homogeneous_rows_is_counted_over_rows(table: Table) -> None:
    found = recheck(Raw().release(table, np.random.default_rng(0)), None, table).homogeneous
    secrets: dict[tuple[int, ...], set[int]] = {}
    for codes, secret in zip(table.codes.tolist(), table.secret.tolist(), strict=True):
        secrets.setdefault(tuple(codes), set()).add(secret)
    alone = sum(
        w for codes, w in zip(table.codes.tolist(), table.weights.tolist(), strict=True) if len(secrets[tuple(codes)]) == 1
    )
    assert found == alone / table.rows
