"""What is above the noise: a distance between laws that noise alone does not make positive.

The distance between two laws is the largest difference of means that any function of slope 1 shows. One half of the draws
chooses the function, the other half measures the difference. So its expected value is at most the true distance, whatever
the laws are, and zero if a removal changes nothing (decision 018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

FEWEST_DRAWS = 2  # that show a spread


def excess(full: Sequence[Floats], without: Sequence[Floats], again: Sequence[Floats]) -> tuple[float, float]:
    """Return the excess of one record and its standard error, from draws [repeats, n] of each adversary.

    Both halves choose and measure in turn. The error is the mean of both, as if they were fully dependent; it is infinite if a
    half is too small to show any spread.
    """
    half = len(without[0]) // 2
    first, second = [draws[:half] for draws in without], [draws[half:] for draws in without]
    found = [_measure(again, first, full, second), _measure(full, second, again, first)]
    return float(np.mean([value for value, _ in found])), float(np.mean([error for _, error in found]))


def _measure(
    known: Sequence[Floats], known_without: Sequence[Floats], new: Sequence[Floats], new_without: Sequence[Floats]
) -> tuple[float, float]:
    """Choose the adversary and the function on known draws; return their difference of means on new ones, and its error."""
    slopes = [Slopes.of(x, y) for x, y in zip(known, known_without, strict=True)]
    chosen = int(np.argmax([one.distance for one in slopes]))
    sides = [slopes[chosen].values(draws[chosen]).sum(axis=1) for draws in (new_without, new)]
    difference = float(sides[0].mean() - sides[1].mean())
    if min(len(side) for side in sides) < FEWEST_DRAWS:
        return difference, np.inf
    return difference, float(np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides)))


@dataclass(frozen=True, eq=False)
class Slopes:
    """The functions, one for each of n coordinates, that tell two samples apart best: each rises, falls or is level in a gap.

    knots[k, n] are the draws in order, heights[k, n] the functions there; `distance` is that of the samples.
    """

    knots: Floats
    heights: Floats
    distance: float

    @classmethod
    def of(cls, x: Floats, y: Floats) -> Slopes:
        """Rise where x has the larger share below, so that y gets the larger mean."""
        draws = np.concatenate([x, y])
        order = np.argsort(draws, axis=0, kind="stable")
        knots = np.take_along_axis(draws, order, axis=0)
        weights = np.repeat([len(y), -len(x)], [len(x), len(y)])  # integers, so that equal shares are equal
        surplus, gaps = np.cumsum(weights[order], axis=0)[:-1], np.diff(knots, axis=0)
        heights = np.concatenate([np.zeros((1, knots.shape[1])), np.cumsum(np.sign(surplus) * gaps, axis=0)])
        return cls(knots, heights, float((np.abs(surplus) * gaps).sum() / (len(x) * len(y))))

    def values(self, draws: Floats) -> Floats:
        """Return (m, n): the functions at draws[m, n]; they are level beyond the known ones."""
        columns = [
            np.interp(draws[:, one], self.knots[:, one], self.heights[:, one])
            if self.knots[0, one] < self.knots[-1, one]
            else zero
            for one, zero in enumerate(np.zeros((draws.shape[1], len(draws))))
        ]
        return np.stack(columns, axis=1)
