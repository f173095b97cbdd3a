"""What a sum reveals about one of its terms, if all terms are alike before: by counting the sums of the other terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

MOST_TERMS = 64  # above, the number of ways is that of the normal law with the same mean
MOST_GRID = 2**20


def term_shares(values: Ints, terms: int, low: float, high: float) -> Floats:
    """Return (n,): the share of each value among the first terms of all sums of so many terms from low to high.

    values[n] are whole numbers from 0. Shares are all zero if no sum lies there.
    """
    span = int(values.max(initial=0))
    if terms <= MOST_TERMS and terms * span <= MOST_GRID:
        ways = _ways(values, terms - 1)
        reach = np.concatenate([[0.0], np.cumsum(ways)])
        ends = [np.clip(edge - values, 0, len(ways)).astype(np.int64) for edge in (np.ceil(low), np.floor(high) + 1)]
        counted: Floats = reach[ends[1]] - reach[ends[0]]
        counted[ends[1] <= ends[0]] = 0.0
    else:
        counted = _tilted(values, terms, (low + high) / 2)
    total = counted.sum()
    return counted / total if total > 0 else counted


def _ways(values: Ints, terms: int) -> Floats:
    """Return the shares of all sums of so many terms, by adding one term at a time."""
    one = np.bincount(values) / len(values)
    ways: Floats = np.ones(1)
    for _ in range(terms):
        ways = np.convolve(ways, one)
    return ways


def _tilted(values: Ints, terms: int, total: float) -> Floats:
    """The law of one of many terms, given their sum: weights e^(rate * value) with that mean, and the normal correction."""
    wanted = min(max(total / terms, 1e-9), float(values.max()) - 1e-9)
    low, high = -50.0, 50.0
    scaled = values / max(1, int(values.max()))
    for _ in range(200):
        rate = (low + high) / 2
        weights = np.exp(rate * scaled - np.max(rate * scaled))
        mean = float((weights * values).sum() / weights.sum())
        low, high = (rate, high) if mean < wanted else (low, rate)
    variance = float((weights * (values - mean) ** 2).sum() / weights.sum())
    found: Floats = weights * np.exp(-((values - wanted) ** 2) / (2 * (terms - 1) * max(variance, 1e-9)))
    return found
