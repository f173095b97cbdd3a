"""One-sided tests that a sample is systematically smaller than a reference, with effect sizes and intervals.

Given the training records, synthetic and holdout records are two independent samples; if the synthesizer drew from the
population, their distances to the training records would have one law. That is the null hypothesis of every test here, or
its edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


@dataclass(frozen=True)
class Comparison:
    """One test: its effect (see the function that made it) with an interval, and p before and after Holm's correction."""

    name: str
    effect: float
    interval: tuple[float, float]
    p: float
    adjusted: float = 1.0
    closer: bool = False
    """Whether the corrected p is below the overall level."""


def smaller(name: str, sample: Floats, reference: Floats, level: float) -> Comparison:
    """Test whether the sample tends to be smaller (Brunner and Munzel, which needs no equal spread and allows ties).

    The effect is P(sample < reference) + P(equal) / 2: ½ is no difference, 1 means that every sample value is smaller.
    """
    from scipy.special import stdtr, stdtrit

    m, n = len(sample), len(reference)
    below_sample, below_reference = _placements(reference, sample), _placements(sample, reference)
    effect = float(below_sample.mean()) / m
    spread = float(below_reference.var(ddof=1)) / (n * n) / m, float(below_sample.var(ddof=1)) / (m * m) / n
    variance = sum(spread)
    if variance == 0:  # all tied, or wholly apart
        p = smallest_p(m, n) if effect > 0.5 else 1.0
        bound = (level / 2) ** (1 / min(m, n))
        interval = (bound, 1.0) if effect == 1 else (0.0, 1 - bound) if effect == 0 else (effect, effect)
        return Comparison(name, effect, interval, p)
    freedom = variance**2 / (spread[0] ** 2 / (m - 1) + spread[1] ** 2 / (n - 1))
    error = math.sqrt(variance)
    p = max(float(stdtr(freedom, (0.5 - effect) / error)), smallest_p(m, n))
    half = float(stdtrit(freedom, 1 - level / 2)) * error
    return Comparison(name, effect, (max(0.0, effect - half), min(1.0, effect + half)), p)


def smallest_p(m: int, n: int) -> float:
    """The smallest p that ranks of two samples can give: that of complete separation."""
    return math.exp(math.lgamma(m + 1) + math.lgamma(n + 1) - math.lgamma(m + n + 1))


def _placements(values: Floats, among: Floats) -> Floats:
    """Return for each value how many of the others are smaller, equal ones counted half."""
    ordered = np.sort(among)
    placements: Floats = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    return placements


def tail(name: str, sample: Floats, reference: Floats, share: float, level: float) -> Comparison:
    """Test whether the sample has more of the smallest values of both together (Fisher's exact test at that threshold).

    The threshold is the value that `share` of all values reach; the effect is the sample's share at or below it minus the
    reference's, with Newcombe's interval.
    """
    pooled = np.sort(np.concatenate([sample, reference]))
    threshold = pooled[max(0, math.ceil(share * len(pooled)) - 1)]
    low, low_reference = int((sample <= threshold).sum()), int((reference <= threshold).sum())
    p = hypergeometric_tail(low, low + low_reference, len(sample), len(pooled))
    share_low, reference_low = low / len(sample), low_reference / len(reference)
    bounds, other_bounds = wilson(share_low, len(sample), level), wilson(reference_low, len(reference), level)
    lower = share_low - reference_low - math.hypot(share_low - bounds[0], other_bounds[1] - reference_low)
    upper = share_low - reference_low + math.hypot(bounds[1] - share_low, reference_low - other_bounds[0])
    return Comparison(name, share_low - reference_low, (lower, upper), p)


def hypergeometric_tail(hits: int, marked: int, drawn: int, total: int) -> float:
    """P(at least `found` of the `marked` ones among `drawn` of `total`)."""
    from scipy.special import gammaln, logsumexp

    def choose(of: Any, size: Any) -> Any:
        return gammaln(of + 1.0) - gammaln(size + 1.0) - gammaln(of - size + 1.0)

    counts = np.arange(hits, min(marked, drawn) + 1)
    counts = counts[counts >= drawn - (total - marked)]
    logs = choose(marked, counts) + choose(total - marked, drawn - counts) - choose(total, drawn)
    return min(1.0, float(np.exp(logsumexp(logs)))) if len(counts) else 0.0


def wilson(share: float, trials: float, level: float) -> tuple[float, float]:
    """Wilson's interval for a share of so many independent trials."""
    from scipy.special import ndtri

    z = float(ndtri(1 - level / 2))
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def nearer(name: str, nearest: Ints, inside: Ints, members: Ints, level: float) -> Comparison:
    """Test whether records have their nearest member in the first of two sets more often than by random division.

    The sets are pooled: members[r] records share the distinct row r, inside[r] of them are in the first set, and nearest[r]
    records have r as their nearest. The effect is the share whose nearest member is in the first set; under the null it is
    that set's share of all members, with the variance of drawing without replacement. The interval is Wilson's
    for as many trials as are left when records with the same nearest member are not counted as independent.
    """
    from scipy.special import ndtr

    records, total, first = float(nearest.sum()), float(members.sum()), float(inside.sum())
    weight = nearest / members  # of each member of a row
    share = float((weight * inside).sum()) / records
    squares = float((weight * weight * members).sum())
    variance = first * (total - first) / (total * (total - 1)) * (squares - records * records / total)
    excess = share * records - records * first / total
    p = float(ndtr(-excess / math.sqrt(variance))) if variance > 0 else 1.0
    return Comparison(name, share, wilson(share, records * records / squares, level), p)


def holm(comparisons: Sequence[Comparison], level: float) -> tuple[Comparison, ...]:
    """Correct the p of several tests so that any false alarm among them has at most probability `level`."""
    order = sorted(range(len(comparisons)), key=lambda position: comparisons[position].p)
    adjusted, largest = {}, 0.0
    for rank, position in enumerate(order):
        largest = max(largest, min(1.0, comparisons[position].p * (len(order) - rank)))
        adjusted[position] = largest
    return tuple(
        replace(comparison, adjusted=adjusted[position], closer=adjusted[position] <= level)
        for position, comparison in enumerate(comparisons)
    )
