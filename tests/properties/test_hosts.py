"""Who maps whose files, and arrays that are left out of a pickle and put into one file: for any visibility, any arrays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from dit_dask.execution.hosts import find_owners
from dit_dask.storage import scratch
from dit_dask.storage.packed import PackedFile, SentArrays, starts

KINDS = st.one_of(
    nps.integer_dtypes(endianness="<"),
    nps.floating_dtypes(endianness="<"),
    nps.boolean_dtypes(),
    nps.unicode_string_dtypes(endianness="<", max_len=3),
    nps.byte_string_dtypes(max_len=3),
    nps.datetime64_dtypes(endianness="<"),
)
SHAPES = nps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)


@given(st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 12))))
def test_each_worker_has_an_owner_that_it_sees_and_owners_have_themselves(visible: dict[int, set[int]]) -> None:
    seen = {str(worker): [str(other) for other in others] for worker, others in visible.items()}
    owners = find_owners(seen)
    assert owners.keys() == seen.keys()
    for worker, owner in owners.items():
        assert owner == worker or owner in seen[worker]
        assert owners[owner] == owner


@given(st.dictionaries(st.integers(0, 30).map(str), st.integers(0, 4)))
def test_where_all_of_a_machine_see_each_other_it_has_one_owner(machine_of: dict[str, int]) -> None:
    seen = {one: [other for other in machine_of if machine_of[other] == machine_of[one]] for one in machine_of}
    owners = find_owners(seen)
    assert len(set(owners.values())) == len(set(machine_of.values()))
    assert all(machine_of[worker] == machine_of[owner] for worker, owner in owners.items())
    assert owners == find_owners(dict(reversed(seen.items())))


@given(st.lists(st.integers(0, 1000)))
def test_arrays_in_a_file_do_not_overlap(sizes: list[int]) -> None:
    places = starts(sizes)
    assert len(places) == len(sizes) + 1
    for start, size, following in zip(places, sizes, places[1:], strict=False):
        assert start % 64 == 0
        assert start + size <= following < start + size + 64


@given(st.lists(st.one_of(nps.arrays(KINDS, SHAPES), nps.arrays(KINDS, SHAPES).map(np.transpose)), max_size=4), st.booleans())
def test_a_value_is_the_same_after_its_arrays_were_sent_beside_it(arrays: list[np.ndarray[Any, Any]], to_file: bool) -> None:
    value = {"arrays": arrays, "strided": [array[::2] for array in arrays], "same": arrays[:1]}
    place = scratch.own_place()
    assert place is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "SHARED_BYTES", 1)
        content, large = scratch.split(value)
    received = pickle.loads(pickle.dumps(SentArrays(large, frozenset([place.mark] if to_file else [])), protocol=5))
    assert isinstance(received.packed, PackedFile) == to_file
    opened = pickle.loads(pickle.dumps(scratch.SharedValue(content, received), protocol=5)).open()
    for name in ("arrays", "strided", "same"):
        for array, expected in zip(opened[name], value[name], strict=True):
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
            assert array.tobytes() == expected.tobytes()
