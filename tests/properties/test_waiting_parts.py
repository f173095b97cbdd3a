"""Parts become complete exactly when the last of their records is known, in whatever order values arrive."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit import waiting
from dit_dask.audit.waiting import WaitingParts
from dit_dask.values.arrays import count_values

RECORDS = 12


@given(
    st.lists(st.lists(st.integers(0, RECORDS - 1), min_size=1, max_size=9), min_size=1, max_size=6),
    st.permutations(range(RECORDS)),
    st.lists(st.integers(0, RECORDS), max_size=4),
    st.sampled_from([1, 3, 1024]),
)
def test_a_part_is_complete_once_all_its_records_are_known(
    parts: list[list[int]], order: list[int], cuts: list[int], look: int
) -> None:
    before = waiting.FIRST_LOOK
    waiting.FIRST_LOOK = look
    try:
        waiting_parts = WaitingParts(lambda part: np.array(parts[part]), len(parts))
        known, complete = np.zeros(RECORDS, bool), set()
        for batch in np.split(np.array(order), sorted(cuts)):
            known[batch] = True
            completed = waiting_parts.advance(known)
            expected = {number for number, part in enumerate(parts) if known[part].all()} - complete
            assert completed == sorted(expected)
            complete |= expected
            assert waiting_parts.complete() == sorted(complete)
        assert complete == set(range(len(parts)))
    finally:
        waiting.FIRST_LOOK = before


@given(st.lists(st.integers(0, RECORDS - 1)))
def test_values_are_counted_as_a_loop_counts_them(values: list[int]) -> None:
    expected = [values.count(value) for value in range(RECORDS)]
    assert count_values(np.array(values, np.int32), RECORDS).tolist() == expected
