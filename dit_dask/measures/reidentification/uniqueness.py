"""How many persons are unique in the population that a table was drawn from, estimated from the sizes of its classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

SMALL_FRACTION = 0.1  # Dankar et al. (2012) use Pitman's model up to this sampling fraction
MOST_RESIDUAL = 1e-6  # of the equations of the negative binomial model, relative to their right sides


@dataclass(frozen=True)
class Uniqueness:
    """Estimated uniques of the population by model, None where a model has no solution; `chosen` names the one to report."""

    zayatz: float | None
    negative_binomial: float | None
    pitman: float | None
    chosen: str | None

    @property
    def estimate(self) -> float | None:
        """The uniques by the chosen model."""
        return None if self.chosen is None else getattr(self, self.chosen)


@dataclass(frozen=True, eq=False)
class SizeHistogram:
    """How many classes have each size: sizes ascend, and counts are of the sample; `population` is that of persons."""

    sizes: Ints
    counts: Ints
    population: int

    @classmethod
    def of(cls, class_sizes: Ints, population: int) -> SizeHistogram:
        """Count the classes of each size."""
        sizes, counts = np.unique(class_sizes, return_counts=True)
        return cls(sizes, counts, population)

    @property
    def persons(self) -> int:
        """The persons of the sample."""
        return int(self.sizes @ self.counts)

    @property
    def classes(self) -> int:
        """The classes of the sample."""
        return int(self.counts.sum())

    @property
    def fraction(self) -> float:
        """The share of the population that the sample has."""
        return self.persons / self.population

    def of_size(self, size: int) -> int:
        """The number of classes of one size."""
        return int(self.counts[self.sizes == size].sum())


def estimate_uniques(histogram: SizeHistogram) -> Uniqueness:
    """Estimate by three models and choose one by the rule of Dankar et al. (2012), as ARX does.

    Up to a tenth of the population: Pitman's model, else Zayatz's. Above: the smaller one of Zayatz's and the negative
    binomial.
    """
    if histogram.fraction >= 1:  # the sample is the population
        unique = float(histogram.of_size(1))
        return Uniqueness(unique, unique, unique, "zayatz")
    if not histogram.of_size(1):
        return Uniqueness(0.0, 0.0, 0.0, "zayatz")
    models = {name: _valid(model(histogram), histogram) for name, model in MODELS.items()}
    zayatz, binomial = models["zayatz"], models["negative_binomial"]
    if histogram.fraction <= SMALL_FRACTION:
        chosen = "pitman" if models["pitman"] else "zayatz"
    else:
        chosen = "zayatz" if not binomial or (zayatz is not None and zayatz < binomial) else "negative_binomial"
    return Uniqueness(**models, chosen=chosen if models[chosen] is not None else None)


def _valid(estimate: float, histogram: SizeHistogram) -> float | None:
    return float(estimate) if math.isfinite(estimate) and 0 <= estimate <= histogram.population else None


def zayatz(histogram: SizeHistogram) -> float:
    """Zayatz (1991): a unique of the sample is one of the population with the probability that Bayes' rule gives.

    Classes of the population are taken to have the sizes of those of the sample; sampling is without replacement.
    """
    from scipy.stats import hypergeom

    drawn_once = hypergeom.pmf(1, histogram.population, histogram.sizes, histogram.persons)
    joint = histogram.counts * drawn_once
    return float(histogram.of_size(1) * joint[0] / joint.sum() / histogram.fraction)


def estimate_classes(histogram: SizeHistogram) -> float:
    """The number of classes of the population: Shlosser's estimator as Haas and Stokes (1998) modify it."""
    size, count, share = histogram.sizes.astype(float), histogram.counts.astype(float), histogram.fraction
    left = (1 - share) ** size
    squares = (size * share**2 * (1 - share**2) ** (size - 1) * count).sum()
    missed = (left * ((1 + share) ** size - 1) * count).sum()
    ratio = (left * count).sum() / (size * share * (1 - share) ** (size - 1) * count).sum()
    return float(histogram.classes + histogram.of_size(1) * squares / missed * ratio**2)


def negative_binomial(histogram: SizeHistogram) -> float:
    """Chen and Keller-McNulty (1998): a class of the population has 1 + Y persons, Y negative binomial.

    Its two parameters are those that make the expected numbers of classes with one and with two persons in the sample right.
    """
    from scipy.optimize import least_squares

    classes, share = estimate_classes(histogram), histogram.fraction
    wanted = np.array([histogram.of_size(1), histogram.of_size(2)], float)
    if wanted[1] == 0 or not math.isfinite(classes):
        return math.nan

    def expected(parameters: Floats) -> Floats:
        shape, success = np.exp(parameters[0]), 1 / (1 + np.exp(-parameters[1]))
        through = (1 - share) * (1 - success)
        common = np.exp(shape * (np.log(success) - np.log1p(-through)))
        once = share * common * (1 + shape * through / (1 - through))
        twice = share**2 / 2 * common * shape * (1 - success) * (2 - (1 - shape) * through) / (1 - through) ** 2
        return np.array([classes * once, classes * twice])

    found = [least_squares(lambda at: expected(at) / wanted - 1, start, method="trf") for start in STARTS]
    best = min(found, key=lambda one: float(one.cost))
    if float(np.abs(best.fun).max()) > MOST_RESIDUAL:
        return math.nan
    shape, success = np.exp(best.x[0]), 1 / (1 + np.exp(-best.x[1]))
    return float(classes * success**shape)


STARTS = ((0.0, 0.0), (-2.0, -3.0), (2.0, 2.0), (-3.0, -6.0))


def pitman(histogram: SizeHistogram) -> float:
    """Hoshino (2001): class sizes follow Pitman's sampling formula, with the parameters of largest likelihood.

    The expected uniques of a population of N are Γ(θ + 1) / Γ(θ + α) · N^α for a large N.
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln

    size, count = histogram.sizes.astype(float), histogram.counts.astype(float)
    persons, classes = histogram.persons, histogram.classes
    if classes in (1, persons):  # the likelihood grows towards the edge of the parameters
        return math.nan

    def parameters(at: Floats) -> tuple[float, float]:
        alpha = 1 / (1 + math.exp(-at[0]))
        return math.exp(at[1]) - alpha, alpha

    def loss(at: Floats) -> float:
        theta, alpha = parameters(at)
        splits = (classes - 1) * math.log(alpha) + gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1)
        inside = (count * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        return -float(splits + inside - gammaln(theta + persons) + gammaln(theta + 1))

    bounds = ((-12.0, 12.0), (-12.0, math.log(persons) + 12))
    found = [minimize(loss, start, method="L-BFGS-B", bounds=bounds) for start in ((0.0, 0.0), (1.0, 3.0), (-2.0, 5.0))]
    best = min(found, key=lambda one: float(one.fun))
    if any(math.isclose(at, edge, abs_tol=1e-3) for at, edges in zip(best.x, bounds, strict=True) for edge in edges):
        return math.nan
    theta, alpha = parameters(best.x)
    return math.exp(float(gammaln(theta + 1) - gammaln(theta + alpha)) + alpha * math.log(histogram.population))


MODELS: dict[str, Callable[[SizeHistogram], float]] = {
    "zayatz": zayatz,
    "negative_binomial": negative_binomial,
    "pitman": pitman,
}
