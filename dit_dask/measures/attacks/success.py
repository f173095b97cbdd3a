"""Success rates of attacks, and the risk: what succeeds more often against the training records than against the control.

The formulas are anonymeter's (Giomi et al. 2023): rates and their errors are the centre and half width of Wilson's interval,
and the error of the risk is propagated from both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """The centre of Wilson's interval and its half width."""

    value: float
    error: float

    @classmethod
    def of(cls, successes: float, attacks: int, confidence: float) -> Rate:
        """Estimate the success rate of so many attacks."""
        from scipy.special import ndtri

        z = float(ndtri((1 + confidence) / 2))
        total = attacks + z * z
        spread = max(0.0, successes * (attacks - successes) / attacks)
        return cls((successes + z * z / 2) / total, z / total * math.sqrt(spread + z * z / 4))


@dataclass(frozen=True)
class AttackResult:
    """Attacks on training records, the same attacks on the control, and guesses; `name` is what was attacked.

    Successes are expectations where something is drawn at random, so they need not be whole numbers. `weight` is the number by
    which an excess is multiplied: attacks on a random part of the training records find a leak with the part's probability.
    """

    name: str
    attacks: int
    successes: float
    control_attacks: int
    control_successes: float
    naive_rate: float
    confidence: float = CONFIDENCE
    weight: float = 1.0

    @property
    def rate(self) -> float:
        """The success rate against training records, as anonymeter estimates it."""
        return Rate.of(self.successes, self.attacks, self.confidence).value

    @property
    def control_rate(self) -> float:
        """The success rate against the control."""
        return Rate.of(self.control_successes, self.control_attacks, self.confidence).value

    @property
    def baseline_rate(self) -> float:
        """The success rate of guesses, as anonymeter estimates it from as many guesses."""
        return Rate.of(self.naive_rate * self.attacks, self.attacks, self.confidence).value

    @property
    def is_better_than_guessing(self) -> bool:
        """Whether the attack succeeds more often than guesses do: else its figures say nothing."""
        return self.rate > self.baseline_rate

    def interval(self, comparisons: int = 1) -> tuple[float, float]:
        """Return the interval of the risk, corrected for so many comparisons."""
        value, error = self._residual(1 - (1 - self.confidence) / comparisons)
        return _within(value - error), _within(value + error)

    @property
    def risk(self) -> float:
        """(rate - control rate) / (1 - control rate), at least 0."""
        return _within(self._residual(self.confidence)[0])

    def _residual(self, confidence: float) -> tuple[float, float]:
        attack = Rate.of(self.successes, self.attacks, confidence)
        control = Rate.of(self.control_successes, self.control_attacks, confidence)
        rest = 1 - control.value
        error = math.hypot(attack.error / rest, control.error * (1 - attack.value) / rest**2)
        return self.weight * (attack.value - control.value) / rest, self.weight * error


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))


def worst_interval(results: Sequence[AttackResult]) -> tuple[float, float]:
    """Return the interval of the largest risk.

    Its lower end is corrected for choosing the largest; its upper end is the largest one, below which all of them must be.
    """
    lows = [one.interval(len(results))[0] for one in results]
    return max(lows), max(one.interval()[1] for one in results)
