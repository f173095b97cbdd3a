"""How much smaller the distances of synthetic records are than those of the holdout: effect sizes with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats


@dataclass(frozen=True)
class Effect:
    """An effect (see the function that made it) with its interval."""

    name: str
    effect: float
    interval: tuple[float, float]


def smaller(name: str, sample: Floats, reference: Floats, level: float) -> Effect:
    """Estimate how far the sample tends to be smaller, with the interval of Brunner and Munzel.

    The effect is P(sample < reference) + P(equal) / 2: ½ is no difference, 1 means that every sample value is smaller.
    """
    from scipy.special import stdtrit

    m, n = len(sample), len(reference)
    below_sample, below_reference = _placements(reference, sample), _placements(sample, reference)
    effect = float(below_sample.mean()) / m
    spread = float(below_reference.var(ddof=1)) / (n * n) / m, float(below_sample.var(ddof=1)) / (m * m) / n
    variance = sum(spread)
    if variance == 0:  # all tied, or wholly apart
        bound = (level / 2) ** (1 / min(m, n))
        interval = (bound, 1.0) if effect == 1 else (0.0, 1 - bound) if effect == 0 else (effect, effect)
        return Effect(name, effect, interval)
    freedom = variance**2 / (spread[0] ** 2 / (m - 1) + spread[1] ** 2 / (n - 1))
    error = math.sqrt(variance)
    half = float(stdtrit(freedom, 1 - level / 2)) * error
    return Effect(name, effect, (max(0.0, effect - half), min(1.0, effect + half)))


def _placements(values: Floats, among: Floats) -> Floats:
    """Return for each value how many of the others are smaller, equal ones counted half."""
    ordered = np.sort(among)
    placements: Floats = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return placements


def tail(name: str, sample: Floats, reference: Floats, share: float, level: float) -> Effect:
    """Estimate how many more of the smallest values of both together the sample has.

    The threshold is the value that `share` of all values reach; the effect is the sample's share at or below it minus the
    reference's, with Newcombe's interval.
    """
    pooled = np.sort(np.concatenate([sample, reference]))
    threshold = pooled[max(0, math.ceil(share * len(pooled)) - 1)]
    low, low_reference = int((sample <= threshold).sum()), int((reference <= threshold).sum())
    share_low, reference_low = low / len(sample), low_reference / len(reference)
    bounds, other_bounds = wilson(share_low, len(sample), level), wilson(reference_low, len(reference), level)
    lower = share_low - reference_low - math.hypot(share_low - bounds[0], other_bounds[1] - reference_low)
    upper = share_low - reference_low + math.hypot(bounds[1] - share_low, reference_low - other_bounds[0])
    return Effect(name, share_low - reference_low, (lower, upper))


def wilson(share: float, trials: float, level: float) -> tuple[float, float]:
    """Wilson's interval for a share of so many independent trials."""
    from scipy.special import ndtri

    z = float(ndtri(1 - level / 2))
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
