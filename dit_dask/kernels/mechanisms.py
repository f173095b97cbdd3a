"""The noise of differentially private counts (one row moves one count by 1, so the sensitivity is 1).

The mechanism's own failure probability is always `delta_dp`: the test's delta, the largest distance, is another thing.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray


class Mechanism(Protocol):
    """Additive noise, independent of the counts."""

    @property
    def has_closed_form(self) -> bool:
        """Whether kernels.laplace has the exact distances of this noise."""
        ...

    @property
    def key(self) -> str:
        """Return name and parameters, which name its random streams."""
        ...

    def noise(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return (size,) independent draws."""
        ...


@dataclass(frozen=True)
class Laplace:
    """Density ½ε e^(−ε|x|): ε-differentially private; ε = inf adds nothing."""

    epsilon: float
    has_closed_form: ClassVar[bool] = True

    @property
    def key(self) -> str:
        """Return name and parameters."""
        return f"laplace epsilon={float(self.epsilon)!r}"

    def noise(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw exponentials with random signs: the law of Generator.laplace, without its logarithms."""
        draws = rng.standard_exponential(size)
        draws *= 1.0 / self.epsilon
        signs = np.unpackbits(np.frombuffer(rng.bytes((size + 7) // 8), np.uint8), count=size)
        return np.where(signs, -draws, draws)


@dataclass(frozen=True)
class Geometric:
    """P(k) ∝ e^(−ε|k|) on the integers: ε-differentially private; ε = inf adds nothing."""

    epsilon: float
    has_closed_form: ClassVar[bool] = False

    @property
    def key(self) -> str:
        """Return name and parameters."""
        return f"geometric epsilon={float(self.epsilon)!r}"

    def noise(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return differences of two geometric draws; a double represents every integer that occurs."""
        success = -math.expm1(-self.epsilon)
        up, down = rng.geometric(success, size), rng.geometric(success, size)
        return (up - down).astype(np.float64)


@dataclass(frozen=True)
class Gaussian:
    """Normal noise of standard deviation sigma; sigma = 0 adds nothing."""

    sigma: float
    has_closed_form: ClassVar[bool] = False

    @property
    def key(self) -> str:
        """Return name and parameters."""
        return f"gaussian sigma={float(self.sigma)!r}"

    def noise(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Return (size,) independent draws."""
        return rng.standard_normal(size) * self.sigma


def gaussian_delta_dp(sigma: float, epsilon: float) -> float:
    """The smallest delta_dp for which normal noise is (epsilon, delta_dp)-private (Balle and Wang 2018, theorem 8).

    It is Φ(a) − e^ε Φ(b) with a = 1/(2σ) − εσ and b = a − 1/σ; since b² − a² = 2ε, both terms have the factor e^(−a²/2).
    """
    from scipy.special import erfcx, ndtr

    a = 0.5 / sigma - epsilon * sigma
    factor, minus_b = 0.5 * math.exp(-0.5 * a * a), 1.0 / sigma - a
    if a > 0:
        return float(ndtr(a) - factor * erfcx(minus_b / math.sqrt(2)))
    return float(factor * (erfcx(-a / math.sqrt(2)) - erfcx(minus_b / math.sqrt(2))))


def gaussian_sigma(epsilon: float, delta_dp: float) -> float:
    """The smallest sigma that is (epsilon, delta_dp)-private: the analytic Gaussian mechanism."""
    from scipy.optimize import brentq

    if math.isinf(epsilon):
        return 0.0

    def excess(log_sigma: float) -> float:
        return gaussian_delta_dp(math.exp(log_sigma), epsilon) - delta_dp

    low = high = 0.0
    while excess(low) <= 0:
        low -= 1.0
    while excess(high) > 0:
        high += 1.0
    return math.exp(float(brentq(excess, low, high, xtol=1e-13, rtol=1e-14)))
