"""The rate that keys would have by chance: with many values they seem to tell about anything, a random column too."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.discrimination.contingency import ContingencyTable
from dit_dask.values.arrays import blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Codes, Floats, Ints

SHUFFLES = 20
DEVIATIONS = 12  # beyond so many standard deviations the probability is below 1e-16


def compute_chance_rate(keys: Ints, target: Ints) -> float:
    """Return the mean rate over all shuffles of a target, given the counts of the keys' values and of the target's values.

    In a shuffle the pair of a key value and a target value has a hypergeometric count.
    """
    rows = int(target.sum())
    before = _plogp(target, rows)
    if before == 0:
        return 1.0
    sizes, times = np.unique(keys[keys > 0], return_counts=True)
    counts, repeats = np.unique(target[target > 0], return_counts=True)
    logs = _log_factorials(rows)
    inside = sum(
        float(time * repeat) * _expected_log(int(size), int(count), rows, logs)
        for size, time in zip(sizes, times, strict=True)
        for count, repeat in zip(counts, repeats, strict=True)
    )
    after = (float((times * sizes * np.log(sizes)).sum()) - inside) / rows
    return min(1.0, max(0.0, 1 - after / before))


def correct(rate: float, chance: float) -> float:
    """Return how much of what chance leaves open the keys tell: (rate - chance) / (1 - chance), at most 1."""
    return 1.0 if chance >= 1 else (rate - chance) / (1 - chance)


def chance_of_table(table: ContingencyTable) -> float:
    """Return the mean plug-in rate over all shuffles of a contingency table of whole rows."""
    keys, values = (np.bincount(codes, table.count).round().astype(np.int64) for codes in (table.key, table.value))
    return compute_chance_rate(keys, values)


def chance_by_shuffling(table: ContingencyTable, rate: Callable[[ContingencyTable], float], rng: np.random.Generator) -> float:
    """Return the mean of any rate over random shuffles, where no formula is known."""
    keys = np.repeat(table.key.astype(np.int32), table.count)
    values = np.repeat(table.value.astype(np.min_scalar_type(int(table.value.max()))), table.count)
    return float(np.mean([rate(_count_pairs(keys, rng.permutation(values))) for _ in range(SHUFFLES)]))


def _count_pairs(keys: Codes, values: NDArray[Any]) -> ContingencyTable:
    """Count the pairs of two columns: in an array of all that there could be, unless these are more than the rows."""
    span = int(values.max()) + 1
    cells = (int(keys.max()) + 1) * span
    if cells > len(keys):
        return ContingencyTable.of(keys.astype(np.int64), values.astype(np.int64))
    counts = np.zeros(cells, np.int64)
    for block in blocks(len(keys)):
        counts += np.bincount(keys[block].astype(np.int64) * span + values[block], minlength=cells)
    pairs = np.flatnonzero(counts)
    return ContingencyTable(pairs // span, pairs % span, counts[pairs])


def _plogp(counts: Ints, rows: int) -> float:
    shares = counts[counts > 0] / rows
    return float(-(shares * np.log(shares)).sum())


@lru_cache(maxsize=1)  # all rates of a table need those up to its rows
def _log_factorials(largest: int) -> Floats:
    """Return (largest + 1,) logarithms of 0!, 1!, …"""
    from scipy.special import gammaln

    logs = np.arange(1.0, largest + 2)
    gammaln(logs, out=logs)
    logs.flags.writeable = False
    return logs


def _expected_log(size: int, count: int, rows: int, logs: Floats) -> float:
    """Return E[c log c] of the hypergeometric c: how many of `count` rows are among `size` of all rows."""
    mean = size * count / rows
    spread = DEVIATIONS * np.sqrt(mean * (1 - count / rows) + 1) + DEVIATIONS
    low = max(0, size + count - rows, int(mean - spread))
    c = np.arange(max(low, 2), min(size, count, int(mean + spread) + 1) + 1)  # 0 log 0 and 1 log 1 are 0
    if not len(c):
        return 0.0
    log_p = logs[count] - logs[c] - logs[count - c] + logs[rows - count] - logs[size - c] - logs[rows - count - size + c]
    log_p -= logs[rows] - logs[size] - logs[rows - size]
    return float((np.exp(log_p) * c * np.log(c)).sum())
