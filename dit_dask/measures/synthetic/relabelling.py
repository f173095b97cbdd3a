"""Tests whose null distribution is exact: training and holdout records change places at random.

If the synthesizer does not know which of the N real records are in the holdout, every choice of n training records is equally
likely given the synthetic table. A statistic is the sum of a weight over the training records; the weights are computed without
knowing which records these are. So its value under the true labels is one of B + 1 exchangeable values, whatever the weights,
ties included, and also if several synthetic records have the same nearest record.

Statistics are made comparable by an approximate p (a gamma distribution with the exact mean, variance and skewness), families
of them by how often their smallest p is small. Both are the same function for all labels, so the p of the smallest one over
all families, counted over the labels, is exact (Westfall and Young's correction).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Floats, Ints

RELABELLINGS = 999
PER_LEVEL = 10  # relabellings that reach a level by chance: fewer would make the decision depend on single ones
BLOCK_CELLS = 2**22
STEP = 2.0**-20  # sums of multiples of it are exact, in any order and with any number of threads
TINY = 1e-300
SAME = 1 + 1e-9
COMMON = 0.02
BATCH = 32


@dataclass(frozen=True, eq=False)
class Statistic:
    """The sum of weight[r] over the training records; `what` says what the weights count."""

    family: str
    what: str
    weight: Floats

    @classmethod
    def of(cls, family: str, what: str, weight: Floats) -> Statistic:
        """Round the weights so that their sums are exact."""
        return cls(family, what, np.round(weight / STEP) * STEP)


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation and skewness of sums over n of N records without replacement, one of each a statistic."""

    mean: Floats
    deviation: Floats
    skewness: Floats

    @classmethod
    def of(cls, weights: Floats, chosen: int) -> Moments:
        """Compute the exact moments of the sums of (statistics, N) weights over random sets of so many records."""
        total = weights.shape[1]
        rest, average = total - chosen, weights.mean(axis=1)
        centred = weights - average[:, None]
        variance = (centred**2).sum(axis=1) * chosen * rest / (total * max(1, total - 1))
        third = (centred**3).sum(axis=1) * chosen * rest * (rest - chosen) / (total * max(1, total - 1) * max(1, total - 2))
        deviation = np.sqrt(variance)
        skewness = np.divide(third, deviation**3, out=np.zeros_like(third), where=deviation > 0)
        return cls(average * chosen, deviation, skewness)

    def tail(self, sums: Floats) -> Floats:
        """Approximate P(sum at least as large) for (…, statistics) sums."""
        from scipy.special import gammainc, gammaincc, ndtr

        z = np.where(self.deviation > 0, (sums - self.mean) / np.where(self.deviation > 0, self.deviation, 1.0), -np.inf)
        skewness = np.where(np.abs(self.skewness) < 1e-3, 1.0, self.skewness)
        shape = 4 / skewness**2
        place = shape + np.sign(skewness) * z * np.sqrt(shape)
        place = np.maximum(0.0, np.where(np.isfinite(place), place, 0.0))
        skewed = np.where(skewness > 0, gammaincc(shape, place), gammainc(shape, place))
        p = np.where(np.abs(self.skewness) < 1e-3, ndtr(-z), skewed)
        return np.where(np.isfinite(z), np.maximum(p, TINY), 1.0)


@dataclass(frozen=True, eq=False)
class Relabelling:
    """Labels of N real records in a fixed order: the true ones, and random ones with as many training records, as bits."""

    is_training: Bools
    drawn: NDArray[np.uint8]

    @classmethod
    def of(cls, is_training: Bools, level: float, seed: int) -> Relabelling:
        """Draw so many relabellings that a level can be decided."""
        total, chosen = len(is_training), int(is_training.sum())
        rng = seeds.stream(seed, "closeness", "labels")
        drawn = np.empty((max(RELABELLINGS, math.ceil(PER_LEVEL / level) - 1), (total + 7) // 8), np.uint8)
        few = min(chosen, total - chosen)
        for row in drawn:
            label = np.zeros(total, bool)
            label[rng.choice(total, few, replace=False, shuffle=False)] = True
            row[:] = np.packbits(label if few == chosen else ~label)
        return cls(is_training, drawn)

    @property
    def chosen(self) -> int:
        """Return the number of training records."""
        return int(self.is_training.sum())

    def sums(self, weights: Floats) -> Floats:
        """Return (1 + relabellings, statistics) sums of (statistics, N) weights; the first row has the true labels."""
        total = len(self.is_training)
        sums = np.empty((1 + len(self.drawn), len(weights)))
        sums[0] = weights @ self.is_training.astype(np.float64)
        step = max(1, BLOCK_CELLS // total)
        for start in range(0, len(self.drawn), step):
            labels = np.unpackbits(self.drawn[start : start + step], axis=1, count=total).astype(np.float64)
            sums[1 + start : 1 + start + len(labels)] = labels @ weights.T
        return sums


@dataclass(frozen=True, eq=False)
class FamilyResult:
    """The worst statistic of a family: its share of training records, and p before and after the correction."""

    family: str
    what: str
    share: float
    trials: float
    """As many independent records have the same uncertainty."""
    p: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """All families, and what a further table needs to be judged by the same standard."""

    families: tuple[FamilyResult, ...]
    smallest: NDArray[np.float64]
    """The smallest score over all families for each random relabelling, ascending."""
    scale: dict[str, float]
    """The number of independent statistics that a family is worth."""

    @property
    def p(self) -> float:
        """Return the corrected p of the worst family."""
        return min((result.adjusted for result in self.families), default=1.0)

    def is_found(self, scores: Sequence[float], level: float) -> bool:
        """Tell whether scores, p times the family's scale, would be significant."""
        allowed = math.floor(level * (1 + len(self.smallest)) + 1e-9) - 1
        return allowed >= 0 and min(scores) * SAME < self.smallest[allowed]


def judge(statistics: Iterable[Statistic], relabelling: Relabelling, emphasis: Mapping[str, float] | None = None) -> Judgement:
    """Test all statistics at once; `emphasis` says which part of the false alarms a family may cause, equal parts by default.

    Statistics that no label can change are left out.
    """
    measured: dict[str, list[Measured]] = {}
    informative = (statistic for statistic in statistics if np.ptp(statistic.weight) > 0)
    while batch := list(itertools.islice(informative, BATCH)):
        for statistic, result in zip(batch, _measure(batch, relabelling), strict=True):
            measured.setdefault(statistic.family, []).append(result)
    results, scores, scale = [], [], {}
    for family, members in measured.items():
        smallest = np.min([member.p for member in members], axis=0)
        scale[family] = COMMON / float(np.quantile(smallest, COMMON)) / (emphasis or {}).get(family, 1.0)
        scores.append(smallest * scale[family])
        results.append((family, min(members, key=lambda member: float(member.p[0]))))
    if not results:
        return Judgement((), np.ones(len(relabelling.drawn)), {})
    overall = np.min(scores, axis=0)
    families = tuple(
        FamilyResult(
            family, worst.what, worst.share, worst.trials, float(worst.p[0]), float((overall <= score[0] * SAME).mean())
        )
        for (family, worst), score in zip(results, scores, strict=True)
    )
    return Judgement(families, np.sort(overall[1:]), scale)


@dataclass(frozen=True, eq=False)
class Measured:
    """A statistic under all labels: approximate p, the true one first."""

    what: str
    share: float
    trials: float
    p: Floats


def _measure(batch: Sequence[Statistic], relabelling: Relabelling) -> list[Measured]:
    weights = np.array([statistic.weight for statistic in batch])
    sums = relabelling.sums(weights)
    p = Moments.of(weights, relabelling.chosen).tail(sums)
    totals, squares = weights.sum(axis=1), (weights**2).sum(axis=1)
    return [
        Measured(statistic.what, float(sums[0, i] / totals[i]), float(totals[i] ** 2 / squares[i]), p[:, i].copy())
        for i, statistic in enumerate(batch)
    ]


def share_hits(hits: Ints, group: Ints, members: Ints) -> Floats:
    """Return (N,): the hits of each record's group, divided among its members."""
    weight: Floats = (hits / members)[group]
    return weight
