"""Names for the arrays that stages hand to each other; their distinct values, and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

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


def blocks(size: int) -> Iterator[slice]:
    """Cut so many rows into blocks."""
    for start in range(0, size, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, size))


def first_positions(index: Ints | Codes, size: int) -> Ints:
    """Return (size,): the first position of each number in an index, or its length for a number that is not there."""
    found = np.full(size, len(index), np.int64)
    for block in reversed(list(blocks(len(index)))):
        numbers = index[block]
        found[numbers[::-1]] = np.arange(block.stop - 1, block.start - 1, -1)  # the last assignment stays
    return found


@dataclass(frozen=True)
class RowNumbers:
    """So many numbers from the first one on, where an array of them would take memory for nothing."""

    size: int
    first: int = 0

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, chosen: Any) -> Any:
        if isinstance(chosen, slice):
            return np.arange(*chosen.indices(self.size)) + self.first
        picked = np.asarray(chosen)
        if picked.dtype == bool:
            return np.flatnonzero(picked) + self.first
        if ((picked < 0) | (picked >= self.size)).any():
            raise IndexError(f"row numbers must be below {self.size}")
        return picked.astype(np.int64)[()] + self.first

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.arange(self.first, self.first + self.size, dtype=dtype)


Positions: TypeAlias = Ints | RowNumbers


def join_numbers(positions: Sequence[Positions]) -> RowNumbers | None:
    """Return positions that follow each other as numbers; None if they do not."""
    numbers = [one for one in positions if isinstance(one, RowNumbers)]
    if len(numbers) < len(positions) or any(one.first + one.size != other.first for one, other in pairwise(numbers)):
        return None
    return RowNumbers(sum(one.size for one in numbers), numbers[0].first if numbers else 0)


def stretch_of(positions: Positions, rows: slice) -> Positions:
    """Return some consecutive positions, as numbers if they are."""
    if isinstance(positions, RowNumbers):
        start, stop, _ = rows.indices(positions.size)
        return RowNumbers(max(0, stop - start), positions.first + start)
    return positions[rows]
