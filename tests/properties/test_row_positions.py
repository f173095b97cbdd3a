"""Positions of rows: first ones, all of them without an array, chosen ones, and the edges of parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit import plan
from dit_dask.audit.plan import split_long
from dit_dask.values import arrays
from dit_dask.values.arrays import RowNumbers, blocks, count_values, first_positions

BLOCKS = st.sampled_from([1, 2, 5, 1000])


@given(st.lists(st.integers(0, 6), max_size=30), BLOCKS)
def test_first_positions_and_counts_do_not_depend_on_blocks(numbers: list[int], block: int) -> None:
    index = np.array(numbers, np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_ROWS", block)
        found, counts = first_positions(index, 8), count_values(index, 8)
        assert [row for cut in blocks(len(index)) for row in range(cut.start, cut.stop)] == list(range(len(index)))
    assert found.tolist() == [numbers.index(number) if number in numbers else len(numbers) for number in range(8)]
    assert counts.tolist() == [numbers.count(number) for number in range(8)]


@given(st.data())
def test_row_numbers_are_what_an_array_of_them_would_be(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    numbers, expected = RowNumbers(size), np.arange(size)
    ends = st.none() | st.integers(-15, 15)
    places = st.lists(st.integers(0, max(0, size - 1)), max_size=0 if size == 0 else 8)
    mask = st.lists(st.booleans(), min_size=size, max_size=size)
    for chosen in (
        slice(data.draw(ends), data.draw(ends), data.draw(st.sampled_from([None, 1, 2, -1]))),
        np.array(data.draw(places), np.int64),
        np.array(data.draw(mask), bool),
    ):
        np.testing.assert_array_equal(numbers[chosen], expected[chosen])
        assert numbers[chosen].dtype == expected.dtype
    assert (len(numbers), list(numbers)) == (size, expected.tolist())
    np.testing.assert_array_equal(np.asarray(numbers), expected)
    assert np.asarray(numbers, np.int32).dtype == np.int32
    with pytest.raises(IndexError, match="below"):
        numbers[size]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 20))
def test_long_parts_are_cut_and_no_edge_is_lost(sizes: list[int], most: int) -> None:
    edges = np.cumsum([0, *sizes])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "MOST_ROWS", most)
        found = split_long(edges)
    assert (found[0], found[-1], found.dtype) == (0, edges[-1], np.int64)
    assert set(edges) <= set(found)
    assert ((np.diff(found) > 0) & (np.diff(found) <= most)).all()
