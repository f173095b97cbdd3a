"""Permutations of repeated draws: the p-value of a distance between two laws, and the distance that noise alone gives.

If a removal changes nothing, the draws with and without the record are exchangeable, so every way to divide them into two
sides is equally likely: the p-value is exact. On the sorted draws of a coordinate a distance is a sum of gaps, each weighted
by a difference of counts, which is an integer: equal divisions have equal distances to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Floats

    Sides = NDArray[np.int16]  # [2 * repeats, divisions]: 1 for the first side, -1 for the second

MOST_DIVISIONS, FEWEST_DIVISIONS = 999, 99
MOST_CELLS = 2**21  # of one matrix of sides
CLEARLY_COMMON = 0.1
ROUNDING = 1e-12  # relative: sums over coordinates of equal distances differ by less


def number_of_divisions(repeats: int) -> int:
    """How many divisions are compared with the one that was drawn; all that exist if they are few."""
    everything = comb(2 * repeats, repeats)
    if everything <= MOST_DIVISIONS:
        return everything
    return min(MOST_DIVISIONS, max(FEWEST_DIVISIONS, MOST_CELLS // (2 * repeats)))


def smallest_p_value(repeats: int) -> float:
    """The smallest p-value that these divisions can give; a division and its mirror image have the same distance."""
    everything = comb(2 * repeats, repeats)
    return 2 / everything if everything <= MOST_DIVISIONS else 1 / (number_of_divisions(repeats) + 1)


def divisions(repeats: int, seed: int) -> Sides:
    """Return all divisions if they are few, the one that was drawn among them; else a seeded sample."""
    count = number_of_divisions(repeats)
    if comb(2 * repeats, repeats) > MOST_DIVISIONS:
        drawn = np.tile(_drawn(repeats), count)
        return seeds.stream(seed, "divisions of draws", repeats).permuted(drawn, axis=0)
    sides = np.full((2 * repeats, count), -1, np.int16)
    for place, chosen in enumerate(combinations(range(2 * repeats), repeats)):
        sides[list(chosen), place] = 1
    return sides


def _drawn(repeats: int) -> Sides:
    return np.repeat(np.array([[1], [-1]], np.int16), repeats, axis=0)


def divided_distances(pools: Sequence[Floats], sides: Sides) -> Floats:
    """Return (divisions,): the largest law distance over adversaries, each with a pool[2 * repeats, n] of draws."""
    largest: Floats = np.zeros(sides.shape[1])
    for pool in pools:
        total = np.zeros(sides.shape[1])
        for draws in pool.T[np.ptp(pool, axis=0) > 0]:
            order = np.argsort(draws, kind="stable")
            surplus = np.cumsum(sides[order[:-1]], axis=0, dtype=np.int32)
            total += np.einsum("k,kb->b", np.diff(draws[order]), np.abs(surplus, out=surplus))
        np.maximum(largest, total / (len(sides) // 2), out=largest)
    return largest


def p_value(first: Sequence[Floats], second: Sequence[Floats], sides: Sides) -> float:
    """The probability of so large a distance between two sides [repeats, n] of each adversary, if they have one law.

    A sample of divisions ends early where that is clearly not rare: the p-value is valid all the same, because one above 0.1 is
    only ever replaced by one above 0.1.
    """
    repeats = len(first[0])
    pools = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    least = divided_distances(pools, _drawn(repeats))[0] * (1 - ROUNDING)
    if comb(2 * repeats, repeats) <= MOST_DIVISIONS:  # the drawn division is one of them
        return float((divided_distances(pools, sides) >= least).mean())
    reached, tried = 0, 0
    for block in (sides[:, :FEWEST_DIVISIONS], sides[:, FEWEST_DIVISIONS:]):
        reached, tried = reached + int((divided_distances(pools, block) >= least).sum()), tried + block.shape[1]
        if (1 + reached) / (1 + tried) > CLEARLY_COMMON:
            break
    return (1 + reached) / (1 + tried)


def expected_noise(first: Sequence[Floats], second: Sequence[Floats], sides: Sides) -> float:
    """The mean distance between two sides of draws of one law [repeats, n] of each adversary, over their divisions."""
    pools = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    is_sample = comb(2 * len(first[0]), len(first[0])) > MOST_DIVISIONS
    return float(divided_distances(pools, sides[:, :FEWEST_DIVISIONS] if is_sample else sides).mean())
