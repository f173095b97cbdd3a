"""The likelihood-ratio attack on every person: learn from one half of the releases, attack the other half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.measures.membership.epsilon import EpsilonBound, Sides, bound_epsilon
from dit_dask.measures.membership.rates import FALSE_POSITIVE_RATES, Rate, auc, auc_rate, likelihood_ratios, tpr_at

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

LEVEL = 0.95  # of the intervals of AUC and TPR
WITH, WITHOUT = 0, 1


@dataclass(frozen=True)
class AttackRates:
    """AUC and TPR of one attack; `tpr` has the rates of FALSE_POSITIVE_RATES by their names."""

    auc: Rate
    tpr: dict[str, Rate]

    @classmethod
    def of(cls, scores: Sides, rng: np.random.Generator) -> AttackRates:
        """Rate scores with and without somebody."""
        tpr = {name: tpr_at(scores.present, scores.absent, limit, LEVEL) for name, limit in FALSE_POSITIVE_RATES.items()}
        return cls(auc_rate(scores.present, scores.absent, rng, LEVEL), tpr)

    def by_name(self) -> dict[str, Rate]:
        """All rates."""
        return {"auc": self.auc, **self.tpr}


@dataclass(frozen=True, eq=False)
class PersonAttack:
    """What one person's releases teach: values of the chosen statistic, and log-likelihood ratios, in both halves."""

    values: tuple[Sides, Sides]
    scores: tuple[Sides, Sides]


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Rates of each person and of all together, the bound on epsilon, and the mean AUC of each statistic by itself."""

    persons: Sequence[AttackRates]
    pooled: AttackRates
    epsilon: EpsilonBound
    statistics: Sequence[float]


def attack(
    values: Floats, delta_dp: float, confidence: float, open_stream: Callable[[object], np.random.Generator]
) -> AttackResult:
    """Attack with values[persons, statistics, 2, releases]: with the person first; `open_stream` takes a person's number."""
    attacks = [attack_person(one) for one in values]
    pooled = tuple(
        Sides(*(np.concatenate([getattr(one.scores[half], side) for one in attacks]) for side in ("present", "absent")))
        for half in (0, 1)
    )
    return AttackResult(
        [AttackRates.of(one.scores[1], open_stream(number)) for number, one in enumerate(attacks)],
        AttackRates.of(pooled[1], open_stream("pooled")),
        bound_epsilon([one.values for one in attacks], (pooled[0], pooled[1]), delta_dp, confidence),
        [float(np.mean([auc(one[place, WITH], one[place, WITHOUT]) for one in values])) for place in range(values.shape[1])],
    )


def attack_person(values: Floats) -> PersonAttack:
    """Choose the statistic of values[statistics, 2, releases] that tells most in the first half, and fit its laws there.

    Scores of the first half, which choose a threshold for all persons, come from laws fitted to the other quarter.
    """
    half = values.shape[2] // 2
    first = values[:, :, :half]
    place = int(np.argmax([abs(auc(one[WITH], one[WITHOUT]) - 0.5) for one in first]))
    learned, attacked = first[place], values[place, :, half:]
    quarter = half // 2
    parts = learned[:, :quarter], learned[:, quarter:]
    crossed = [score(other, part) for part, other in (parts, parts[::-1])]
    choosing = Sides(*(np.concatenate([getattr(one, side) for one in crossed]) for side in ("present", "absent")))
    return PersonAttack((Sides(*learned), Sides(*attacked)), (choosing, score(learned, attacked)))


def score(learned: Floats, attacked: Floats) -> Sides:
    """Score releases by laws fitted to others: learned[2, releases] and attacked[2, releases]."""
    return Sides(*(likelihood_ratios(learned[WITH], learned[WITHOUT], side) for side in attacked))
