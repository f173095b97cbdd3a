"""A lower bound on the epsilon of a mechanism from what tells its releases with a person from those without.

Differential privacy bounds every event: P(E | with) ≤ e^ε P(E | without) + delta_dp, and the same with the sides exchanged.
The first half of the releases chooses the event, the second half gives the bound, so the choice of the person, the
statistic and the threshold costs no confidence. Two bounds share the level: that of the one person whose first half shows
most, and that of all persons together, of whom the mean rates obey the same inequality.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.engines.noisy_counts.effective_epsilon import losses
from dit_dask.values.intervals import lower_limit, upper_limit

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

QUANTILES = 64
MOST_RELEASES = 10_000_000


@dataclass(frozen=True, eq=False)
class Sides:
    """Values of releases with somebody and of releases without: the larger a value, the more it looks like with."""

    present: Floats
    absent: Floats


@dataclass(frozen=True)
class EpsilonBound:
    """With the stated confidence epsilon is at least this; shown by one person, or by all together."""

    at_least: float
    shown_by: str
    confidence: float


def bound_epsilon(
    persons: Sequence[tuple[Sides, Sides]], pooled: tuple[Sides, Sides], delta_dp: float, confidence: float
) -> EpsilonBound:
    """Bound epsilon from below; each pair has the values that choose and the values that confirm."""
    error = strategy_error(len(persons), confidence)
    chosen = max(persons, key=lambda halves: choose_event(halves[0], delta_dp, error)[0])
    found = {"person": confirm(*chosen, delta_dp, error)}
    if len(persons) > 1:
        found["pooled"] = confirm(*pooled, delta_dp, error)
    shown_by = max(found, key=lambda name: found[name])
    return EpsilonBound(max(0.0, found[shown_by]), shown_by, confidence)


def strategy_error(persons: int, confidence: float) -> float:
    """The error that each of the bounds may have: there are two where there are several persons."""
    return (1 - confidence) / (2 if persons > 1 else 1)


def choose_event(values: Sides, delta_dp: float, error: float) -> tuple[float, int, float]:
    """Return the largest bound that these values show, its kind of event and its threshold."""
    thresholds = candidate_thresholds(np.concatenate([values.present, values.absent]))
    shown = losses(values.present, values.absent, thresholds, delta_dp, error)
    kind, place = np.unravel_index(int(np.argmax(shown)), shown.shape)
    return float(shown[kind, place]), int(kind), float(thresholds[place])


def confirm(choosing: Sides, confirming: Sides, delta_dp: float, error: float) -> float:
    """Choose an event by some values and bound epsilon by others, which are independent of them."""
    _, kind, threshold = choose_event(choosing, delta_dp, error)
    return float(losses(confirming.present, confirming.absent, np.array([threshold]), delta_dp, error)[kind, 0])


def candidate_thresholds(values: Floats) -> Floats:
    """Return ascending thresholds: evenly spread quantiles, and both ends in steps that double."""
    ascending = np.unique(values)
    count = len(ascending)
    inner = np.linspace(0, count - 1, QUANTILES).astype(np.int64)
    steps = 2 ** np.arange(int(np.log2(count)) + 1) - 1
    places: Ints = np.unique(np.concatenate([inner, steps, count - 1 - steps]))
    thresholds: Floats = ascending[places]
    return thresholds


def attainable_epsilon(releases: int, persons: int, delta_dp: float, confidence: float) -> float:
    """The largest bound that so many releases a side could show of one person, if every one of them gave it away."""
    size = releases - releases // 2
    perfect = losses(np.ones(size), np.zeros(size), np.zeros(1), delta_dp, strategy_error(persons, confidence))
    return max(0.0, float(perfect[0, 0]))


def smallest_leak(epsilon: float, releases: int, persons: int, delta_dp: float, confidence: float) -> float | None:
    """The least share of releases that must give one person away, and no release without them, to show more than epsilon."""
    size, error = releases - releases // 2, strategy_error(persons, confidence)
    most = upper_limit(0, size, error / 2)

    def shows(hits: int) -> bool:
        least = lower_limit(hits, size, error / 2) - delta_dp
        return least > 0 and math.log(least / most) > epsilon

    enough = bisect_left(range(size + 1), x=True, key=shows)
    return enough / size if enough <= size else None


def releases_to_refute(epsilon: float, persons: int, delta_dp: float, confidence: float) -> int | None:
    """The fewest releases a side that could show more than this epsilon of one person; None where that takes millions."""

    def is_enough(releases: int) -> bool:
        return smallest_leak(epsilon, releases, persons, delta_dp, confidence) is not None

    low, high = 2, 4
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST_RELEASES:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
