"""How well scores tell releases with a person from releases without: AUC, and TPR at a given FPR, with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.intervals import lower_limit, upper_limit

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

FALSE_POSITIVE_RATES = {"tpr_at_10_percent": 0.1, "tpr_at_1_percent": 0.01}


@dataclass(frozen=True)
class Rate:
    """An estimate and its interval, which contains it."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> list[float]:
        """Both ends."""
        return [self.low, self.high]


def auc(present: Floats, absent: Floats) -> float:
    """The probability that a score with the person is above one without; ties count one half."""
    ascending = np.sort(absent)
    below, up_to = (np.searchsorted(ascending, present, side) for side in ("left", "right"))
    return float((below + up_to).sum()) / (2 * len(present) * len(absent))


def auc_rate(present: Floats, absent: Floats, rng: np.random.Generator, level: float) -> Rate:
    """The AUC with an exact interval, from disjoint pairs of scores that are put together at random.

    The score with the person wins a pair with the probability that the AUC is; a coin decides ties. So the number of wins
    is binomial, and the interval is that of Clopper and Pearson, widened to the estimate from all pairs where it has to be.
    """
    pairs = min(len(present), len(absent))
    ours, theirs = rng.permutation(present)[:pairs], rng.permutation(absent)[:pairs]
    wins = int(np.where(ours == theirs, rng.random(pairs) < 0.5, ours > theirs).sum())
    value, tail = auc(present, absent), (1 - level) / 2
    return Rate(value, min(value, lower_limit(wins, pairs, tail)), max(value, upper_limit(wins, pairs, tail)))


def tpr_at(present: Floats, absent: Floats, limit: float, level: float) -> Rate:
    """The largest share of scores with the person above a threshold that at most the share `limit` of those without is above.

    The threshold comes from the scores without the person alone, so the number of others above it is binomial.
    """
    allowed = int(np.floor(limit * len(absent) + 1e-9))  # 0.1 times 30 is 3
    hits, tail = int((present > np.sort(absent)[len(absent) - 1 - allowed]).sum()), (1 - level) / 2
    return Rate(hits / len(present), lower_limit(hits, len(present), tail), upper_limit(hits, len(present), tail))


def likelihood_ratios(present: Floats, absent: Floats, scored: Floats) -> Floats:
    """Return the scores' log-likelihood ratios between the normal laws fitted to values with and without the person.

    One further observation with the variance of all values keeps the laws of a few values from being infinitely narrow.
    """
    overall = float(np.concatenate([present, absent]).var())
    if overall == 0:  # nothing was learned from these values; any other one is news, in neither direction
        return np.zeros(len(scored))
    return _log_density(scored, present, overall) - _log_density(scored, absent, overall)


def _log_density(scored: Floats, fitted: Floats, overall: float) -> Floats:
    variance = (len(fitted) * fitted.var() + overall) / (len(fitted) + 1)
    density: Floats = -0.5 * (np.log(variance) + (scored - fitted.mean()) ** 2 / variance)
    return density
