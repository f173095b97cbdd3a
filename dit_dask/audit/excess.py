"""What the statistics of a test with repeats show above the noise: the same statistics of the bounds of each row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.audit.gates import Gate
from dit_dask.audit.statistics import Distribution, by_name, describe
from dit_dask.engines.influence import Exceedance, Excess, RowBounds

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

BOUNDED = ("delta", "quantiles", "share_over")  # they grow with every distance, so bounds of rows give bounds of these
FURTHER_KEYS = {"quantiles": (0.25, 0.75, 0.95), "share_over": (0.02, 0.03, 0.05, 0.2, 0.3, 0.5, 1.0)}  # that gates often name
MIN_FACTOR, FARTHEST = 1.5, 30.0  # fewer more decide nothing; more than 900 times as many are no advice
FEWEST_REPEATS = 20  # below this even large leaks are not certain


def excess_of(bounds: RowBounds) -> dict[str, Excess]:
    """Bound each statistic, by its name as gates write it."""
    estimate, low, high = (_figures(side) for side in (bounds.estimate, bounds.low, bounds.high))
    found = {label: Excess(estimate[label], (low[label], high[label])) for label in estimate}
    return {"mean": bounds.mean, **found}


def _figures(side: Floats) -> dict[str, float]:
    distribution = Distribution.of(side, np.ones(len(side), np.int64), 0)
    figures = describe(distribution).labelled(BOUNDED)
    for name, keys in FURTHER_KEYS.items():
        statistic = by_name()[name]
        if statistic.compute is not None:
            figures |= {statistic.label(f"{key:g}"): float(statistic.compute(distribution, key)) for key in keys}
    return figures


def interval_of(gate: Gate, excess: Mapping[str, Excess]) -> tuple[float, float] | None:
    """The interval of what a gate judges; for a key that is not among the computed ones, from the nearest on each side."""
    if gate.label in excess:
        return excess[gate.label].interval
    if gate.name not in BOUNDED or gate.key is None:
        return None
    statistic, wanted = by_name()[gate.name], float(gate.key)
    falls = gate.name == "share_over"
    keys = {**statistic.keys, **{f"{key:g}": key for key in FURTHER_KEYS[gate.name]}}
    labels = {number: statistic.label(key) for key, number in keys.items()}
    known = {number: excess[label].interval for number, label in labels.items() if label in excess}
    known = (
        {-math.inf: (1.0, 1.0), **known, math.inf: (0.0, 0.0)} if falls else {-1.0: (0.0, 0.0), **known, 1.0: _delta(excess)}
    )
    below, above = known[max(one for one in known if one <= wanted)], known[min(one for one in known if one >= wanted)]
    return (above[0], below[1]) if falls else (below[0], above[1])


def _delta(excess: Mapping[str, Excess]) -> tuple[float, float]:
    return excess["delta"].interval


def more_repeats(gate: Gate, repeats: Exceedance) -> int | None:
    """About how many repeats might decide: errors fall with their root; None if the estimate is at the limit itself."""
    excess, limit = repeats.excess.get(gate.label), gate.limit
    if excess is None or limit is None or gate.name == "share_over":
        return max(FEWEST_REPEATS, 4 * repeats.count)
    low, high = excess.interval
    distance = abs(excess.estimate - limit)
    error = high - excess.estimate if excess.estimate <= limit else excess.estimate - low
    if distance == 0 or error / distance > FARTHEST:
        return None
    factor = max(MIN_FACTOR, (error / distance) ** 2)
    needed = max(FEWEST_REPEATS, repeats.count * factor)
    digit = int(10 ** math.floor(math.log10(needed)))
    return math.ceil(needed / digit) * digit
