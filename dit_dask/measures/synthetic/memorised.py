"""All tests of whether training was memorised, and the smallest leak that they would have found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.measures.synthetic.nearness import Nearness
from dit_dask.measures.synthetic.noisy_copies import FAMILY as NOISY
from dit_dask.measures.synthetic.noisy_copies import noisy_copy_statistics
from dit_dask.measures.synthetic.pool import Pool, View
from dit_dask.measures.synthetic.relabelling import Judgement, Moments, Relabelling, Statistic, judge
from dit_dask.measures.synthetic.reuse import reuse_statistics
from dit_dask.measures.synthetic.space import Neighbours

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

SEED = 0
IDENTICAL = "identical records"
# copies are the plainest leak, and few of them are the hardest to find; noisy copies are found with a small part
EMPHASIS = {
    IDENTICAL: 0.85,
    NOISY: 0.05,
    "rare values": 0.04,
    "all columns": 0.02,
    "correlated columns": 0.02,
    "random columns": 0.02,
}
FEW_TAILS = (0.01, 0.05, 0.2)
TRIALS = 20
NEEDED = 18
RATIO = 1.3


@dataclass(frozen=True, eq=False)
class Findings:
    """The neighbours of the synthetic records in every view, and of some training records as if they had been copied."""

    pool: Pool
    views: Mapping[View, Neighbours]
    planted: Neighbours

    @property
    def whole(self) -> View:
        """Return the view of all columns with Gower's distance."""
        return self.pool.views[0]

    def nearness(self, view: View) -> Nearness:
        """Return who is nearest in a view."""
        return Nearness.of(self.views[view], self.pool.rows(view)[1])

    def densities(self, near: Nearness) -> Floats:
        """Return the density of each distinct row that a synthetic or planted record equals; NaN for others."""
        holder = np.zeros(len(near.members), np.int64)
        holder[near.group] = np.arange(len(near.group))
        wanted = np.union1d(near.neighbours.row[near.identical], self.planted.row)
        density = np.full(len(near.members), np.nan)
        density[wanted] = self.pool.density(holder[wanted], SEED)
        return density

    def statistics(self, near: Nearness, density: Floats) -> Iterator[Statistic]:
        """Yield the statistics of all families."""
        yield from whole_statistics(near, density)
        for view in self.pool.views[1:]:
            names = ", ".join(self.pool.names[column] for column in view.columns)
            is_whole = len(view.columns) == len(self.pool.names)
            subject = f"{view.distance}: " if is_whole else f"{names}: "
            in_view = self.nearness(view)
            yield from in_view.statistics(view.family, subject, FEW_TAILS)
            if not is_whole:
                yield in_view.count_identical(view.family, subject)
        yield from reuse_statistics(self.pool.codes, self.pool.synthetic_codes, self.pool.names, SEED)
        yield from noisy_copy_statistics(self.pool, SEED)


def whole_statistics(near: Nearness, density: Floats) -> Iterator[Statistic]:
    """Yield the statistics of all columns, and those of identical records."""
    yield from near.statistics("all columns")
    yield near.count_identical("all columns")
    yield from near.weigh_identical(IDENTICAL, density)


def judge_findings(findings: Findings, relabelling: Relabelling) -> tuple[Judgement, Nearness, Floats]:
    """Test everything; also return what planting needs."""
    near = findings.nearness(findings.whole)
    density = findings.densities(near)
    return judge(findings.statistics(near, density), relabelling, EMPHASIS), near, density


def choose_planted(pool: Pool, most: int) -> Ints:
    """Return the positions of the real records that are copied on trial."""
    total = len(pool.is_training)
    rng = seeds.stream(SEED, "closeness", "planted")
    return np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))


@dataclass(frozen=True, eq=False)
class Planting:
    """Copies of training records are put in the place of synthetic records, to see from which number on they are found.

    Who is in training is drawn anew in each trial: what the true labels show must not help to find the copies.
    """

    near: Nearness
    density: Floats
    positions: Ints
    planted: Neighbours
    relabelling: Relabelling
    judgement: Judgement
    level: float

    def smallest_leak(self) -> float | None:
        """Return the smallest share of copies that is found in 18 of 20 trials; None if all copies would not be."""
        records = len(self.near.neighbours.first)
        counts = sorted({math.ceil(RATIO**step) for step in range(int(math.log(records, RATIO)) + 1)} | {records})
        low, high = 0, len(counts) - 1
        if not self.is_found(counts[high]):
            return None
        while low < high:
            middle = (low + high) // 2
            if self.is_found(counts[middle]):
                high = middle
            else:
                low = middle + 1
        return counts[high] / records

    def is_found(self, count: int) -> bool:
        """Tell whether so many copies are found in most trials."""
        missed = 0
        for trial in range(TRIALS):
            missed += not self._finds(count, trial)
            if missed > TRIALS - NEEDED:
                return False
        return True

    def _finds(self, count: int, trial: int) -> bool:
        rng = seeds.stream(SEED, "closeness", "trial", count, trial)
        is_training = np.unpackbits(self.relabelling.drawn[trial], count=len(self.near.group)).astype(np.float64)
        copied = np.flatnonzero(is_training[self.positions])
        if not len(copied):
            return False
        where = rng.choice(len(self.near.neighbours.first), count, replace=False)
        who = rng.choice(copied, count, replace=count > len(copied))
        copies = Neighbours(self.planted.first[who], self.planted.second[who], self.planted.row[who])
        near = self.near.replace_records(where, copies)
        statistics = [one for one in whole_statistics(near, self.density) if np.ptp(one.weight) > 0]
        if not statistics:
            return False
        weights = np.array([statistic.weight for statistic in statistics])
        p = Moments.of(weights, self.relabelling.chosen).tail(weights @ is_training)
        return self.judgement.is_found(self._scores(statistics, p), self.level)

    def _scores(self, statistics: Sequence[Statistic], p: Floats) -> list[float]:
        """Scale each p as its family was; a family without identical records had no scale, and has as many statistics."""
        own = {family: float(len([one for one in statistics if one.family == family])) for family in EMPHASIS}
        scale = {family: self.judgement.scale.get(family, own[family] / EMPHASIS[family]) for family in EMPHASIS}
        return [float(value) * scale[statistic.family] for statistic, value in zip(statistics, p, strict=True)]
