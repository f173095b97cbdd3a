"""Exact nearest rows without a tree: rough distances of all pairs in single precision, then exact ones of the few candidates.

A tree excludes little where many columns vary independently. There all rows are compared, several at a time: rough distances
differ from the exact ones by at most a margin, so every row that could be among the nearest two is compared exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled, inner
from dit_dask.kernels.nearest import CATEGORY, apart
from dit_dask.kernels.weigh import Floats, Longs

TILE = 2048
Singles = NDArray[np.float32]


@inner
def exact_candidates(rough: Singles, limit: float, query: Floats, rows: Floats, copies: Longs, kinds: Longs, scales: Floats,
                     best: float, runner: float, match: int) -> tuple[float, float, int]:
    """Compare a query exactly with the rows whose rough distance is at most the limit."""
    for row in range(len(rough)):
        if rough[row] > limit:
            continue
        total = 0.0
        for column in range(rows.shape[1]):
            total += apart(query[column], rows[row, column], kinds[column], scales[column])
            if total >= runner:
                break
        if total < runner:
            if total < best:
                runner = total if copies[row] > 1 else best
                best, match = total, row
            else:
                runner = total
    return best, runner, match


@inner
def second_smallest(rough: Singles) -> float:
    """Return the second smallest of all rough distances."""
    low, second = np.float32(np.inf), np.float32(np.inf)
    for value in rough:
        if value < second:
            if value < low:
                low, second = value, low
            else:
                second = value
    return float(second)


@compiled
def refine(rough: Singles, margin: float, queries: Floats, rows: Floats, copies: Longs, kinds: Longs, scales: Floats,
           first: Floats, second: Floats, place: Longs) -> None:
    """Lower first and second to the exact smallest distances, given (queries, rows) rough ones; place is the nearest row."""
    for number in range(len(queries)):
        limit = second_smallest(rough[number]) + 2.0 * margin
        first[number], second[number], place[number] = exact_candidates(
            rough[number], limit, queries[number], rows, copies, kinds, scales, first[number], second[number], place[number])


@compiled
def scan_gower(units: Singles, columns: Singles, margin: float, queries: Floats, rows: Floats, copies: Longs, kinds: Longs,
               scales: Floats, first: Floats, second: Floats, place: Longs) -> None:
    """Do the same for sums of capped differences; units (queries, d) and columns (d, rows) are parts of the ranges."""
    count = columns.shape[1]
    rough = np.empty(count, np.float32)
    for number in range(len(queries)):
        for start in range(0, count, TILE):
            part = rough[start:start + TILE]
            part[:] = np.float32(0.0)
            for column in range(len(columns)):
                x = units[number, column]
                cells = columns[column, start:start + TILE]
                if kinds[column] == CATEGORY:
                    scale = np.float32(scales[column])
                    for row in range(len(part)):
                        part[row] += scale if cells[row] != x else np.float32(0.0)
                else:
                    for row in range(len(part)):
                        gap = abs(cells[row] - x)
                        part[row] += gap if gap < np.float32(1.0) else np.float32(1.0)
        limit = second_smallest(rough) + 2.0 * margin
        first[number], second[number], place[number] = exact_candidates(
            rough, limit, queries[number], rows, copies, kinds, scales, first[number], second[number], place[number])
