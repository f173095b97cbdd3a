"""Hierarchies made from values: every node is the range of the leaves below it, and rules group as plain Python does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.values.hierarchy import Hierarchy, build
from tests.audits import loaded

names = st.text("abc", min_size=1, max_size=2)
trees = st.dictionaries(st.text("xyz", min_size=1, max_size=3), st.lists(names, max_size=3), min_size=1, max_size=12)


def assert_ranges(hierarchy: Hierarchy) -> None:
    """Every node covers exactly the leaves whose path goes through it."""
    for node in range(len(hierarchy.names)):
        below = {node}
        for child in range(len(hierarchy.names)):
            if int(hierarchy.parent[child]) in below:
                below.add(child)
        leaves = sorted(int(hierarchy.low[one]) for one in below if hierarchy.child_count[one] == 0)
        assert leaves == list(range(hierarchy.low[node], hierarchy.high[node] + 1))


@settings(deadline=None)
@given(trees)
def test_built_trees_keep_every_leaf_and_ranges_of_codes(paths: dict[str, list[str]]) -> None:
    hierarchy = build([[leaf, *above, "*"] for leaf, above in paths.items()])
    assert sorted(hierarchy.leaves) == sorted(paths)
    assert_ranges(hierarchy)
    for path in hierarchy.paths():
        short = [name for place, name in enumerate(paths[path[0]]) if name != ([path[0], *paths[path[0]]])[place]]
        assert [name for place, name in enumerate(path[1:-1]) if name != path[place]] == short


def encoded(values: list[str], **described: Any) -> Hierarchy:
    frame = pd.DataFrame({"x": values, "s": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)})
    rows = loaded(frame, {"quasi_identifiers": {"x": described}, "sensitive": "s"})
    hierarchy = rows.table.schema.quasi_identifiers[0].hierarchy
    assert hierarchy is not None
    return hierarchy


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text("0123456789", min_size=4, max_size=6), min_size=2, max_size=30))
def test_prefixes_are_ranges(codes: list[str]) -> None:
    hierarchy = encoded(codes, kind="categorical", hierarchy={"prefix": [3, 1]})
    assert_ranges(hierarchy)
    assert hierarchy.leaves == tuple(sorted(set(codes)))
    assert all(path == (path[0], f"{path[0][:3]}*", f"{path[0][0]}*", "*") for path in hierarchy.paths())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.dates(), min_size=2, max_size=30))
def test_periods_are_ranges_in_time_order(days: list[Any]) -> None:
    hierarchy = encoded([day.isoformat() for day in days], kind="date", hierarchy={"dates": ["quarter", "decade"]})
    assert_ranges(hierarchy)
    assert hierarchy.leaves == tuple(sorted({day.isoformat() for day in days}))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=30))
def test_bands_hold_their_numbers(numbers: list[int]) -> None:
    hierarchy = encoded([str(number) for number in numbers], kind="categorical", hierarchy={"bands": [5, 20]})
    assert_ranges(hierarchy)
    np.testing.assert_array_equal([int(leaf) for leaf in hierarchy.leaves], sorted(set(numbers)))
    for leaf, *bands, _ in hierarchy.paths():
        for width, band in zip((5, 20), bands, strict=True):
            low = math.floor(int(leaf) / width) * width
            assert band == f"[{low}, {low + width})"
