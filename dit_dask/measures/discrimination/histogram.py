"""Entropies from count histograms: how many values occur how often; histograms merge exactly in any order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Ints


MAX_BINCOUNT = 2**22
NOTHING_TO_REFINE = "the target has one value: there is nothing to refine, so the rate is 1 by convention"


@dataclass(frozen=True, eq=False)
class CountHistogram:
    """times[i] values occur sizes[i] times each; sizes ascend."""

    sizes: Ints
    times: Ints

    @classmethod
    def of(cls, counts: NDArray[Any]) -> CountHistogram:
        """Build the histogram of integer counts, one a value; values that do not occur are left out."""
        counts = counts[counts > 0].astype(np.int64, copy=False)
        if len(counts) and counts.max() > MAX_BINCOUNT:
            return cls(*np.unique(counts, return_counts=True))
        times = np.bincount(counts)
        sizes = np.flatnonzero(times)
        return cls(sizes, times[sizes])

    @classmethod
    def merge(cls, histograms: Iterable[CountHistogram]) -> CountHistogram:
        """Add histograms of different values; sums of integers do not depend on the order."""
        parts = list(histograms)
        sizes, position = np.unique(np.concatenate([part.sizes for part in parts]), return_inverse=True)
        times = np.zeros(len(sizes), np.int64)
        np.add.at(times, position, np.concatenate([part.times for part in parts]))
        return cls(sizes, times)

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return int(self.sizes @ self.times)

    @property
    def values(self) -> int:
        """How many values occur."""
        return int(self.times.sum())


def plug_in(histogram: CountHistogram) -> float:
    """Entropy in bits of the frequencies as they are; summed without rounding error, so equal tables give equal bits."""
    rows, pairs = histogram.rows, zip(histogram.sizes.tolist(), histogram.times.tolist(), strict=True)
    return math.fsum(times * size * math.log2(rows / size) for size, times in pairs) / rows


def miller_madow(histogram: CountHistogram) -> float:
    """The plug-in entropy plus its first-order bias, (values - 1) / 2N nats."""
    return plug_in(histogram) + (histogram.values - 1) / (2 * histogram.rows * math.log(2))


def grassberger(histogram: CountHistogram) -> float:
    """Grassberger's estimate of 2003, with less bias than Miller-Madow where many values are rare."""
    from scipy.special import digamma

    rows, sizes = histogram.rows, histogram.sizes.astype(float)
    sign = np.where(histogram.sizes % 2, -1.0, 1.0)
    inner = digamma(sizes) + 0.5 * sign * (digamma((sizes + 1) / 2) - digamma(sizes / 2))
    return (math.log(rows) - math.fsum((histogram.times * sizes * inner).tolist()) / rows) / math.log(2)


ESTIMATORS: dict[str, Callable[[CountHistogram], float]] = {
    "plug-in": plug_in,
    "miller-madow": miller_madow,
    "grassberger": grassberger,
}


@dataclass(frozen=True)
class Rate:
    """A discrimination rate with the two entropies it is made of; `reason` is set where a convention decided."""

    value: float
    entropy: float
    conditional: float
    reason: str = ""


def compute_rate(target: CountHistogram, keys: CountHistogram, pairs: CountHistogram, estimator: str = "plug-in") -> Rate:
    """Return 1 - H(X|Y) / H(X) from the histograms of X, of Y and of the pairs."""
    if estimator != "plug-in" and target.values == target.rows > 1:
        raise InputError(
            f"estimator: {estimator} needs values that repeat, and every row has its own value of the target; expected plug-in"
        )
    entropy = ESTIMATORS[estimator]
    before, after = entropy(target), entropy(pairs) - entropy(keys)
    if target.values < 2:
        return Rate(1.0, 0.0, 0.0, NOTHING_TO_REFINE)
    return Rate(min(1.0, max(0.0, 1 - after / before)), before, max(0.0, after))
