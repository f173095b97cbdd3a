"""What holds for every discrimination rate."""

from __future__ import annotations

import math

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import homogeneity_score

import dit_dask as dit
from dit_dask.measures.discrimination.histogram import CountHistogram, plug_in

CELLS = st.integers(0, 3)
TABLES = st.lists(st.tuples(CELLS, CELLS, CELLS, st.sampled_from(["a", "b", "c", "ä"])), min_size=1, max_size=40).map(
    lambda rows: pd.DataFrame(rows, columns=["x", "y", "z", "text"])
)


@given(TABLES)
def test_a_rate_is_scikit_learns_homogeneity(table: pd.DataFrame) -> None:
    both = table["y"].astype(str) + table["text"]
    expected = homogeneity_score(table["x"], both)
    # scikit-learn sums floats in another order; its result may leave [0, 1] by as much
    assert abs(dit.discrimination_rate(table["x"], table[["y", "text"]]) - expected) < 1e-9


@given(TABLES)
def test_a_rate_lies_between_0_and_1_and_more_keys_never_tell_less(table: pd.DataFrame) -> None:
    rates = [dit.discrimination_rate(table["x"], table[list(keys)]) for keys in ("y", "yz", ["y", "z", "text"])]
    assert all(0 <= rate <= 1 for rate in rates)
    assert rates[0] <= rates[1] + 1e-12
    assert rates[1] <= rates[2] + 1e-12


@given(TABLES, st.permutations(range(4)), st.randoms(use_true_random=False))
def test_new_names_and_another_order_of_rows_change_no_bit(table: pd.DataFrame, names: list[int], rng: object) -> None:
    before = dit.discrimination_rate(table["x"], table[["y", "text"]])
    order = list(range(len(table)))
    rng.shuffle(order)
    renamed = table.assign(x=table["x"].map(lambda cell: f"name {names[cell]}"), y=table["y"].map(lambda cell: names[cell] / 7))
    renamed = renamed.iloc[order]
    assert dit.discrimination_rate(renamed["x"], renamed[["text", "y"]]) == before


@given(TABLES)
def test_a_target_with_one_value_gives_1_by_convention(table: pd.DataFrame) -> None:
    assert dit.discrimination_rate(np.zeros(len(table)), table["y"]) == 1.0
    assert dit.discrimination_rate(table["x"], table["y"], {0: "all", 1: "all", 2: "all", 3: "all"}) == 1.0


@given(TABLES)
def test_values_add_up_to_the_rate(table: pd.DataFrame) -> None:
    found = dit.discrimination_by_value(table["x"], table[["y", "z"]])
    assert found["count"].sum() == len(table)
    whole = dit.discrimination_rate(table["x"], table[["y", "z"]])
    if table["x"].nunique() > 1:
        assert math.isclose(1 - (1 - found["rate"]).sum(), whole, abs_tol=1e-12)
        shares = found["count"] / len(table)
        assert math.isclose((shares * found["refinement"]).sum(), whole, abs_tol=1e-12)
    else:
        assert (found[["rate", "refinement"]] == 1).all().all()


@settings(max_examples=12, deadline=None)  # every example runs ten small Dask graphs
@given(TABLES, st.integers(1, 9), st.sampled_from(["plug-in", "miller-madow", "grassberger"]))
def test_dask_and_arrays_give_the_same_bits(table: pd.DataFrame, blocks: int, estimator: str) -> None:
    frame = dd.from_pandas(table, npartitions=min(blocks, len(table)), sort=False)
    keys = ["y", "text"]
    if estimator != "plug-in" and table["x"].is_unique and len(table) > 1:
        for target, known in ((table["x"], table[keys]), (frame["x"], frame[keys])):
            with pytest.raises(dit.InputError, match="needs values that repeat"):
                dit.discrimination_rate(target, known, estimator=estimator)
        return
    expected = dit.discrimination_rate(table["x"], table[keys], estimator=estimator)
    assert dit.discrimination_rate(frame["x"], frame[keys], estimator=estimator) == expected
    assert dit.discrimination_rate(table["x"].to_numpy(), table[keys].to_numpy(object), estimator=estimator) == expected
    numbers = table[["y", "z"]].to_numpy()
    chunks = -(-len(table) // blocks)
    assert dit.discrimination_rate(
        da.from_array(table["x"].to_numpy(), chunks), da.from_array(numbers, (chunks, 2))
    ) == dit.discrimination_rate(table["x"], table[["y", "z"]])
    semantic = {0: "low", 1: "low", 2: "high", 3: "high"}
    assert dit.discrimination_rate(frame["x"], frame["y"], semantic) == dit.discrimination_rate(
        table["x"], table["y"], semantic
    )
    pd.testing.assert_frame_equal(
        dit.discrimination_by_value(frame["x"], frame[keys]),
        dit.discrimination_by_value(table["x"], table[keys]),
        check_exact=True,
    )


@given(st.lists(st.lists(st.integers(1, 5), max_size=6), min_size=1, max_size=5))
def test_count_histograms_merge_exactly(parts: list[list[int]]) -> None:
    arrays = [np.array(part, np.int64) for part in parts]
    whole = CountHistogram.of(np.concatenate(arrays))
    merged = CountHistogram.merge([CountHistogram.of(part) for part in arrays])
    assert (merged.sizes.tolist(), merged.times.tolist()) == (whole.sizes.tolist(), whole.times.tolist())
    if whole.rows:
        shares = np.concatenate(arrays) / whole.rows
        assert math.isclose(plug_in(whole), -(shares * np.log2(shares)).sum(), abs_tol=1e-12)
