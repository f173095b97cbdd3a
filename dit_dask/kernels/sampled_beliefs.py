"""Sampled beliefs from noisy counts: normalised in place, then each coordinate in ascending order."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled

DIGIT = 11  # bits sorted in one pass: a table of 2,048 heads stays in the fastest cache
DIGITS = 3
PATIENCE = 16  # moves per value before a coordinate of close values goes to the general sort


@compiled
def normalise(noise: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Turn noise[n, N] in place into beliefs C_j / ΣC, C_j = 1 + max(0, counts[j] + noise[j]); return the (N,) ΣC.

    Cells beyond counts count 0.
    """
    total = np.zeros(noise.shape[1])
    for j in range(len(noise)):
        count = counts[j] if j < len(counts) else 0
        for i in range(noise.shape[1]):
            noise[j, i] = 1.0 + max(0.0, count + noise[j, i])
            total[i] += noise[j, i]
    for j in range(len(noise)):
        for i in range(noise.shape[1]):
            noise[j, i] /= total[i]
    return total


@compiled
def _digit(value: float, low: float, scale: float, place: int) -> int:
    return (int((value - low) * scale) >> (DIGIT * place)) & ((1 << DIGIT) - 1)


@compiled
def _ascend(values: NDArray[np.float64], spare: NDArray[np.float64], heads: NDArray[np.int64]) -> None:
    """Sort by 33 bits of (value − lowest), digit by digit, then order values that are equal in those bits."""
    low, high = values.min(), values.max()
    if low == high:
        return
    scale = (2.0 ** (DIGIT * DIGITS) - 1.0) / (high - low)
    heads[:] = 0
    for value in values:
        for place in range(DIGITS):
            heads[place, _digit(value, low, scale, place)] += 1
    source, sink = values, spare
    for place in range(DIGITS):
        at = 0
        for digit in range(1 << DIGIT):
            at, heads[place, digit] = at + heads[place, digit], at
        for value in source:
            digit = _digit(value, low, scale, place)
            sink[heads[place, digit]] = value
            heads[place, digit] += 1
        source, sink = sink, source
    moves = 0
    for i in range(len(source)):  # an odd number of passes: the source is the spare
        value, j = source[i], i - 1
        while j >= 0 and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
        moves += i - 1 - j
        if moves > PATIENCE * len(source):
            values[:] = np.sort(source)
            return


@compiled
def ascending(values: NDArray[np.float64]) -> None:
    """Sort each row of values[n, N] in place: what numpy.sort gives, several times as fast on beliefs."""
    spare = np.empty(values.shape[1])
    heads = np.empty((DIGITS, 1 << DIGIT), np.int64)
    for row in values:
        _ascend(row, spare, heads)


@compiled
def gap(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    """Σ_j mean_k |x_(k) − y_(k)| over the sorted rows of two (n, N) blocks: Eq. (1) of the second paper, summed."""
    total = 0.0
    for j in range(len(ours)):
        row = 0.0
        for k in range(ours.shape[1]):
            row += abs(ours[j, k] - theirs[j, k])
        total += row / ours.shape[1]
    return total
