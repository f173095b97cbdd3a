"""Reused rare values: combinations of a few columns that one real record has, and that occur in the synthetic table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.measures.synthetic.relabelling import Statistic

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints

WAYS = (1, 2, 3, 4)
LIMIT = 300


def combine(columns: Sequence[Codes | Ints]) -> Ints:
    """Return (n,) numbers that are equal where all of the (n,) codes are."""
    number: Ints = columns[0].astype(np.int64)
    size = int(columns[0].max()) + 1
    for codes in columns[1:]:
        span = int(codes.max()) + 1
        if size * span >= 2**62:
            number = np.unique(number, return_inverse=True)[1]
            size = int(number.max()) + 1
        number, size = number * span + codes, size * span
    return number


def find_reused(pool: Ints, synthetic: Ints) -> Ints:
    """Return the positions of the real records whose combination no other real record has but a synthetic one."""
    order = np.argsort(pool, kind="stable")
    ordered = pool[order]
    alone = np.ones(len(pool), bool)
    alone[1:] &= ordered[1:] != ordered[:-1]
    alone[:-1] &= ordered[:-1] != ordered[1:]
    order, ordered = order[alone], ordered[alone]
    if not len(ordered):
        return order
    place = np.minimum(np.searchsorted(ordered, synthetic), len(ordered) - 1)
    used = np.zeros(len(ordered), bool)
    used[place[ordered[place] == synthetic]] = True
    return order[used]


def choose_combinations(columns: int, size: int, limit: int, seed: int) -> list[tuple[int, ...]]:
    """Return all combinations of a size, or a seeded subset of them."""
    every = math.comb(columns, size)
    if every <= limit:
        return list(itertools.combinations(range(columns), size))
    rng = seeds.stream(seed, "closeness", "combinations", size)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < limit:
        drawn.add(tuple(sorted(rng.choice(columns, size, replace=False).tolist())))
    return sorted(drawn)


def reuse_statistics(pool: Codes, synthetic: Codes, names: Sequence[str], seed: int) -> Iterator[Statistic]:
    """Yield, for 1 to 4 columns, how many rare combinations of each real record are reused; also single columns."""
    together = np.concatenate([pool, synthetic])
    for size in WAYS:
        if size > len(names):
            continue
        total = np.zeros(len(pool))
        for chosen in choose_combinations(len(names), size, LIMIT, seed):
            numbers = combine([together[:, column] for column in chosen])
            reused = find_reused(numbers[: len(pool)], numbers[len(pool) :])
            total[reused] += 1
            if size == 1 and len(reused):
                weight = np.zeros(len(pool))
                weight[reused] = 1
                yield Statistic.of("rare values", f"rare values of {names[chosen[0]]}", weight)
        words = "rare values" if size == 1 else f"rare combinations of {size} columns"
        yield Statistic.of("rare values", words, total)
