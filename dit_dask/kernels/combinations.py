"""Which combination of codes each row has, numbered in the order in which they first appear."""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled, long
from dit_dask.kernels.weigh import Ints, Longs

FEWEST_BITS = 16  # of the number of slots
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # neighbouring keys come to slots far from each other


@compiled
def extend_keys(keys: Longs, codes: Ints, levels: int) -> None:
    """Put a column of codes from -1 to levels - 2 behind those that keys[n] stand for."""
    for row in range(len(keys)):
        keys[row] = keys[row] * levels + codes[row] + 1


@compiled
def number_keys(keys: Longs, number: Ints, first: Ints) -> int:
    """Write to number[n] which distinct key each is, and to first[m] the first row that has it; return how many there are.

    A key is in the slot that it hashes to, or in the next free one; at most half of the slots are taken.
    """
    size, shift, found = long(1 << FEWEST_BITS), long(64 - FEWEST_BITS), long(0)
    slots, taken = np.full(size, -1, np.int32), np.empty(size, np.int64)
    for row in range(len(keys)):
        if 2 * found >= size:
            size, shift = 4 * size, shift - 2
            slots, taken = np.full(size, -1, np.int32), np.empty(size, np.int64)
            for known in range(found):
                key = keys[first[known]]
                slot = long((np.uint64(key) * SPREAD) >> np.uint64(shift))
                while slots[slot] >= 0:
                    slot = (slot + 1) & (size - 1)
                slots[slot], taken[slot] = known, key
        key = keys[row]
        slot = long((np.uint64(key) * SPREAD) >> np.uint64(shift))
        while True:
            known = slots[slot]
            if known < 0:
                slots[slot], taken[slot], first[found], number[row] = found, key, row, found
                found += 1
                break
            if taken[slot] == key:
                number[row] = known
                break
            slot = (slot + 1) & (size - 1)
    return found
