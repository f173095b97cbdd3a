"""The distance that two samples of one population have by chance, from the counts of one of them.

The cells' probabilities are estimated from the original's counts: what is seen once or twice tells how much is not seen (Good
and Turing; Chao). Then the counts of both tables are binomial, and the mean distance is a sum over the cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.measures.discrimination.contingency import count_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dit_dask.values.arrays import Codes, Floats, Ints

GRID = 400
SUMMED = 50.0  # above so many expected rows of a cell its count is normal to less than 1%


@dataclass(frozen=True, eq=False)
class ChanceLevel:
    """The expected distance of two samples in one cell, on a grid of its probability p.

    `gaps` is E|X/n - Y/m|, `roots` is E(√(X/n) - √(Y/m))², where X and Y are binomial with n and m trials.
    """

    log_p: Floats
    gaps: Floats
    roots: Floats

    @classmethod
    def of(cls, rows: tuple[int, int]) -> ChanceLevel:
        """Tabulate for tables of so many rows."""
        p = np.geomspace(1e-3 / max(rows), 1.0, GRID)
        return cls(np.log(p), _mean_gaps(p, *sorted(rows)), 2 * p - 2 * _mean_root(p, rows[0]) * _mean_root(p, rows[1]))

    def distances(self, p: Floats) -> tuple[float, float]:
        """Return the expected L1 and Hellinger distance of two samples with these probabilities of cells, (cells,)."""
        at = np.log(p)
        l1d = float((p * np.interp(at, self.log_p, self.gaps / np.exp(self.log_p))).sum())
        squares = float((p * np.interp(at, self.log_p, self.roots / np.exp(self.log_p))).sum())
        free = len(p) - 1  # the sum is about chi-squared: the mean of its root is below the root of its mean
        shrinkage = math.exp(math.lgamma((free + 1) / 2) - math.lgamma(free / 2)) / math.sqrt(free / 2) if free else 0.0
        return l1d, math.sqrt(max(0.0, squares) / 2) * shrinkage


def expected_distances(
    codes: Codes, counts: Ints, sizes: Ints, chosen: Sequence[tuple[int, ...]], rows: tuple[int, int]
) -> list[tuple[float, float]]:
    """Return the expected L1 and Hellinger distance of each combination of columns.

    The original's codes are (n, columns); each row of them stands for counts[n] rows.
    """
    level = ChanceLevel.of(rows)
    occupied = [len(np.unique(column)) for column in codes.T]
    found = []
    for columns in chosen:
        keys = np.zeros(len(codes), np.int64)
        for column in columns:
            keys = keys * sizes[column] + codes[:, column]
        cells = math.prod(occupied[column] for column in columns)
        found.append(level.distances(estimate_probabilities(count_equal(keys, counts)[1], cells)))
    return found


def estimate_probabilities(counts: Ints, cells: int) -> Floats:
    """Return the probabilities of seen and unseen cells, at most `cells`, from the positive counts of the seen ones."""
    rows, once, twice = int(counts.sum()), int((counts == 1).sum()), int((counts == 2).sum())
    seen = counts / rows
    scale = (rows - 1) / rows
    unseen = scale * once**2 / (2 * twice) if twice else scale * once * (once - 1) / 2
    unseen = min(math.ceil(unseen), cells - len(counts))
    if unseen <= 0 or once == 0:
        return np.asarray(seen)
    weight = (rows - 1) * once
    hidden = once / rows * weight / (weight + 2 * max(twice, 1))  # the probability of what was not seen
    lost = (1 - seen) ** rows
    reduced = seen * np.maximum(1e-3, 1 - hidden / float((seen * lost).sum()) * lost)  # if nothing repeats, nothing is left
    return np.concatenate([reduced, np.full(unseen, hidden / unseen)])


def _mean_gaps(p: Floats, few: int, many: int) -> Floats:
    """Return E|X/few - Y/many| for each p: summed over X, the mean over Y in closed form; normal where cells are full."""
    from scipy.stats import binom

    gaps = np.sqrt(2 / math.pi * p * (1 - p) * (1 / few + 1 / many))
    for place in np.flatnonzero(few * p <= SUMMED):
        x, weight = _binomial(p[place], few)
        at = x * (many / few)
        below = np.floor(at)
        mean = many * p[place]
        gap = mean - at + 2 * (at * binom.cdf(below, many, p[place]) - mean * binom.cdf(below - 1, many - 1, p[place]))
        gaps[place] = float((weight * gap).sum()) / many
    return gaps


def _mean_root(p: Floats, rows: int) -> Floats:
    """Return E√(X/rows) for each p."""
    roots = np.sqrt(p) * (1 - (1 - p) / (8 * rows * p))
    for place in np.flatnonzero(rows * p <= SUMMED):
        x, weight = _binomial(p[place], rows)
        roots[place] = float((weight * np.sqrt(x / rows)).sum())
    return roots


def _binomial(p: float, rows: int) -> tuple[Floats, Floats]:
    """Return the counts that can occur and their probabilities."""
    from scipy.stats import binom

    x = np.arange(min(rows, int(rows * p + 12 * math.sqrt(rows * p) + 20)) + 1)
    return x.astype(np.float64), binom.pmf(x, rows, p)
