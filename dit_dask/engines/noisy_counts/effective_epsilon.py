"""A check of the noise by its output alone: how much privacy do released beliefs lose at least?

ε-differential privacy bounds every event: P(E | D) ≤ e^ε P(E | D⁻) + delta_dp, and the same with the sides exchanged.
The events here are thresholds on the belief in the record's own value. One half of the samples chooses the event, the other
half gives the bound (Clopper and Pearson), so the choice costs no confidence; Bonferroni's correction pays for the records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.engines.noisy_counts.patterns import Patterns
from dit_dask.engines.noisy_counts.simulation import Sampling, draw
from dit_dask.kernels import sampled_beliefs as kernel

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

THRESHOLDS = 64


@dataclass(frozen=True)
class PrivacyLoss:
    """With the stated confidence the release loses at least `epsilon`, shown by the record in this place."""

    epsilon: float
    place: int
    confidence: float

    def contradicts(self, claimed: float) -> bool:
        """Whether a mechanism that claims this ε is shown to be wrong."""
        return self.epsilon > claimed


def released_beliefs(patterns: Patterns, sampling: Sampling) -> tuple[Floats, Floats]:
    """Return two (m, N): the belief in each record's own value with it and without it, in the order of the draws.

    They come from streams of their own, so that records may be chosen by their simulated distances.
    """
    sampling = replace(sampling, seed=seeds.integer(sampling.seed, "privacy loss"))
    sides = (patterns.counts, patterns.without())
    beliefs = np.empty((2, len(patterns), sampling.samples))
    for side, vectors in enumerate(sides):
        for place, (counts, own) in enumerate(zip(vectors, patterns.own, strict=True)):
            noise = draw(sampling, counts, patterns.cells)
            kernel.normalise(noise, counts)
            beliefs[side, place] = noise[own]
    return beliefs[0], beliefs[1]


def privacy_loss(with_record: Floats, without: Floats, delta_dp: float = 0.0, confidence: float = 0.95) -> PrivacyLoss:
    """Bound from below the ε of beliefs[m, N], N independent samples a side; the sides may depend on each other."""
    share = (1 - confidence) / len(with_record)
    bounds = [_bound(ours, theirs, delta_dp, share) for ours, theirs in zip(with_record, without, strict=True)]
    place = int(np.argmax(bounds))
    return PrivacyLoss(bounds[place], place, confidence)


def _bound(ours: Floats, theirs: Floats, delta_dp: float, error: float) -> float:
    """Return a lower bound on ε that is wrong with probability `error` at most."""
    half = len(ours) // 2
    pooled = np.concatenate([ours[:half], theirs[:half]])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS + 2)[1:-1], method="lower"))
    choices = losses(ours[:half], theirs[:half], thresholds, delta_dp, error)
    event, at = np.unravel_index(int(np.argmax(choices)), choices.shape)
    confirmed = losses(ours[half:], theirs[half:], thresholds[at : at + 1], delta_dp, error)
    return max(0.0, float(confirmed[event, 0]))


def losses(ours: Floats, theirs: Floats, thresholds: Floats, delta_dp: float, error: float) -> Floats:
    """Return (4, thresholds): for p > τ and p ≤ τ, likelier with the record and without it, the least ln of their ratio.

    Each is wrong with probability `error` at most, if τ does not depend on the samples.
    """
    above = np.array([len(side) - np.searchsorted(np.sort(side), thresholds, side="right") for side in (ours, theirs)])
    sizes = np.array([[len(ours)], [len(theirs)]])
    hits = np.stack([above, above[::-1], sizes - above, (sizes - above)[::-1]])  # (event, likelier | rarer side, threshold)
    least = _clopper_pearson(hits[:, 0], sizes[0, 0], error / 2, upper=False) - delta_dp
    most = _clopper_pearson(hits[:, 1], sizes[1, 0], error / 2, upper=True)
    return np.where(least > 0, np.log(np.maximum(least, np.finfo(float).tiny) / most), -np.inf)


def _clopper_pearson(hits: Ints, size: int, error: float, *, upper: bool) -> Floats:
    """One-sided exact bounds on probabilities."""
    from scipy.special import betaincinv

    if upper:
        inside = betaincinv(hits + 1.0, np.maximum(size - hits, 1), 1 - error)
        return np.where(hits == size, 1.0, inside)
    inside = betaincinv(np.maximum(hits, 1), size - hits + 1.0, error)
    return np.where(hits == 0, 0.0, inside)
