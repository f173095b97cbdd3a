"""Composition on random tables: with itself, with a suppressed release, and in both orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.distances import SIMPLE
from dit_dask.encoders.tf import TF
from dit_dask.engines import ReleaseProcedure
from dit_dask.inputs.counted import CountedRows
from dit_dask.measures.base import MeasureInput, ReleaseOrigin
from dit_dask.measures.composition.beliefs import combine_counts
from dit_dask.measures.composition.measure import FIGURES, Composition
from dit_dask.sanitizers.mondrian import Mondrian
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.table import Rows, Table
from tests.properties.code_tables import tables


def origin(table: Table, sanitizer: Any) -> ReleaseOrigin:
    index = np.repeat(np.arange(table.distinct), table.weights)
    rows = Rows(table, index, table.rows, 0, table.weights, source_row=np.arange(table.rows))
    procedure = ReleaseProcedure(sanitizer, TF(), {"nb": BernoulliNB()}, SIMPLE["emd"], 0, "test")
    return ReleaseOrigin(CountedRows.of(pd.DataFrame({"who": np.arange(table.rows)})), rows, procedure)


def compose(first: ReleaseOrigin, second: ReleaseOrigin) -> dict[str, Any]:
    inputs = MeasureInput(first.cells, first.rows, {}, None, 0, "composition", first, {"with": second})
    return dict(Composition("key", "who").find(inputs).more)


@given(tables(most_rows=24), st.integers(2, 6))
def test_a_release_composed_with_itself_has_its_own_classes(table: Table, k: int) -> None:
    side = origin(table, Mondrian(Predicates(k=k)))
    found = compose(side, side)
    assert found["smallest_intersection"] == found["k_first"] == found["k_second"]
    assert found["below_both"] == 0
    release = side.procedure.publish(table)
    values = np.count_nonzero(release.counts, axis=1)
    assert found["least_values"] == values.min()
    assert found["delta_intersection"] <= found["delta_first"] + 1e-12
    assert found["delta_first"] == found["delta_second"]


@given(tables(most_rows=24), st.integers(2, 6))
def test_a_suppressed_release_adds_nothing_to_intersections(table: Table, k: int) -> None:
    first, suppressed = origin(table, Mondrian(Predicates(k=k))), origin(table, Suppressed())
    both, alone = compose(first, suppressed), compose(first, first)
    for name in ("smallest_intersection", "mean_intersection", "least_values", "homogeneous", "delta_intersection"):
        assert both[name] == alone[name], name


@given(tables(most_rows=24), st.integers(2, 5), st.integers(2, 5))
def test_the_order_of_two_releases_does_not_matter(table: Table, k: int, other: int) -> None:
    sides = [origin(table, Mondrian(Predicates(k=one))) for one in (k, other)]
    forth, back = compose(*sides), compose(*sides[::-1])
    swapped = {"delta_first": "delta_second", "delta_second": "delta_first", "k_first": "k_second", "k_second": "k_first"}
    for name in FIGURES:
        np.testing.assert_allclose(back[swapped.get(name, name)], forth[name], atol=1e-12, err_msg=name)


@given(tables(most_rows=16), st.data())
def test_pieces_and_the_order_of_rows_change_nothing(table: Table, data: st.DataObject) -> None:
    first, second = origin(table, Mondrian(Predicates(k=2))), origin(table, Mondrian(Predicates(k=3)))
    order = np.array(data.draw(st.permutations(range(table.rows))))
    rows = replace(second.rows, index=second.rows.index[order])
    shuffled = replace(second, rows=rows, cells=CountedRows.of(second.cells.frame.iloc[order].reset_index(drop=True)))
    assert compose(first, shuffled) == compose(first, second)
    inputs = MeasureInput(first.cells, first.rows, {}, None, 0, "composition", first, {"with": second})
    measure = Composition("key", "who")
    (start, stop), *_ = measure.pieces(inputs)
    cut = data.draw(st.integers(start, stop))
    halves = [measure.find_piece(inputs, piece) for piece in ((start, cut), (cut, stop))]
    np.testing.assert_array_equal(np.concatenate(halves), measure.find_piece(inputs, (start, stop)))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_values_that_only_one_class_has_are_excluded(counts: list[tuple[int, int]]) -> None:
    first, second = np.array(counts, float).T
    belief = combine_counts(first, second)
    assert abs(belief.sum() - 1) < 1e-12
    if np.minimum(first, second).any():
        assert not belief[(first == 0) | (second == 0)].any()
