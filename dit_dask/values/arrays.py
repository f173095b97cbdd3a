"""Names for the arrays that stages hand to each other; their distinct values, and how often each occurs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]

BLOCK_ROWS = 4_000_000  # of work on all rows whose copies must not take memory for all of them


def distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending, by sorting: numpy.unique hashes integers, which takes up to 50 times as long."""
    ascending = np.sort(values)
    starts = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    return ascending[starts]


def count_values(values: Ints | Codes, size: int) -> Ints:
    """Return (size,): how often each number below `size` occurs; in blocks, for numpy.bincount copies what is not int64."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(values), BLOCK_ROWS):
        counts += np.bincount(values[start : start + BLOCK_ROWS], minlength=size)
    return counts
