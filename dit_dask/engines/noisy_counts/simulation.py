"""The test on noisy counts as published: sampled beliefs with and without a record, compared coordinate by coordinate."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.engines.noisy_counts.patterns import Patterns
from dit_dask.errors import InputError
from dit_dask.kernels import sampled_beliefs as kernel
from dit_dask.kernels.mechanisms import Mechanism

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

COUPLINGS = ("independent", "common")
MEMORY = 120_000_000  # bytes of samples that one task holds; with scratch and compiled code it stays under 200 MB


@dataclass(frozen=True)
class Sampling:
    """How beliefs are sampled: `common` gives both sides, and all patterns, the same noise."""

    mechanism: Mechanism
    seed: int
    samples: int = 25_000
    coupling: str = "independent"

    def stream(self, counts: Ints, cells: int) -> np.random.Generator:
        """Open the stream of a count vector; it knows nothing of other vectors, order or place."""
        if self.coupling == "common":
            return seeds.stream(self.seed, "noisy counts", self.mechanism.key, cells, "common")
        vector = ",".join(str(count) for count in counts if count)
        return seeds.stream(self.seed, "noisy counts", self.mechanism.key, cells, vector)


@dataclass(frozen=True, eq=False)
class Simulated:
    """One entry per pattern: the published estimate, and 2 (mean p_t − mean p_t⁻) with its standard error."""

    distance: Floats
    unbiased: Floats
    stderr: Floats

    def take(self, of: Ints) -> Simulated:
        """From patterns to records."""
        return Simulated(self.distance[of], self.unbiased[of], self.stderr[of])


@dataclass(frozen=True, eq=False)
class _Block:
    """The beliefs of one count vector: each coordinate ascending, and the totals that they were divided by."""

    ascending: Floats
    total: Floats


class _Blocks:
    """Blocks by count vector, as many as fit in memory; a block that is drawn again has the same bits."""

    def __init__(self, sampling: Sampling, cells: int) -> None:
        self._sampling, self._cells = sampling, cells
        self._room = MEMORY // (8 * (cells + 1) * sampling.samples) - (sampling.coupling == "common")
        self.common = draw(sampling, np.zeros(0, np.int64), cells) if sampling.coupling == "common" else None
        self._held: OrderedDict[bytes, _Block] = OrderedDict()

    def __call__(self, counts: Ints) -> _Block:
        key = counts.tobytes()
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        while len(self._held) >= self._room:
            self._held.popitem(last=False)
        noise = draw(self._sampling, counts, self._cells) if self.common is None else self.common.copy()
        total = kernel.normalise(noise, counts)
        kernel.ascending(noise)
        self._held[key] = _Block(noise, total)
        return self._held[key]


def check_samples(samples: int, cells: int, where: str) -> None:
    """Refuse what cannot be estimated or held: two count vectors and their noise must fit in memory at once."""
    most = MEMORY // (24 * (cells + 1))
    if samples < 2:
        raise InputError(f"{where}.samples must be an integer >= 2; got {samples}")
    if samples > most:
        raise InputError(f"{where}.samples must be at most {most:,} for a secret of {cells} values; got {samples:,}")


def draw(sampling: Sampling, counts: Ints, cells: int) -> Floats:
    """Return (cells, samples) noise for a count vector, one cell after the other."""
    rng = sampling.stream(counts, cells)
    noise = np.empty((cells, sampling.samples))
    for row in noise:
        row[:] = sampling.mechanism.noise(rng, sampling.samples)
    return noise


def simulate(patterns: Patterns, sampling: Sampling) -> Simulated:
    """Sample both sides of every pattern and compare; neighbours in ascending order share most work."""
    check_samples(sampling.samples, patterns.cells, "simulate")
    blocks = _Blocks(sampling, patterns.cells)
    sides = zip(patterns.counts, patterns.without(), patterns.own, strict=True)
    found = np.array([_compare(blocks, *side) for side in sides]).reshape(-1, 3)
    distance, difference, variance = found.T
    return Simulated(distance, 2 * difference, 2 * np.sqrt(variance / sampling.samples))


def _compare(blocks: _Blocks, counts: Ints, after: Ints, own: np.int64) -> tuple[float, float, float]:
    """Return Eq. (1) summed, the difference of the mean beliefs in the record's own value, and N times its variance."""
    ours, theirs = blocks(counts), blocks(after)
    mine, left = ours.ascending[own], theirs.ascending[own]
    if blocks.common is None:
        variance = mine.var(ddof=1) + left.var(ddof=1)
    else:
        noise = blocks.common[own]
        variance = (_belief(noise, counts[own], ours) - _belief(noise, after[own], theirs)).var(ddof=1)
    return kernel.gap(ours.ascending, theirs.ascending), mine.mean() - left.mean(), variance


def _belief(noise: Floats, count: np.int64, block: _Block) -> Floats:
    """Return (N,) beliefs in one cell in the order of their draws."""
    belief: Floats = (1 + np.maximum(0, count + noise)) / block.total
    return belief


def delta_interval(simulated: Simulated, samples: int, comparisons: int, confidence: float = 0.95) -> tuple[float, float]:
    """An interval for delta, the largest true distance, from the unbiased estimates of `comparisons` distinct patterns.

    Student's t with Bonferroni's correction holds for all patterns at once, so also for the largest. It is approximate
    only where the mean of N bounded beliefs is not yet normal.
    """
    from scipy.special import stdtrit

    reach = float(stdtrit(samples - 1, 1 - (1 - confidence) / (2 * comparisons)))
    low, high = simulated.unbiased - reach * simulated.stderr, simulated.unbiased + reach * simulated.stderr
    return float(np.clip(low.max(), 0, 2)), float(np.clip(high.max(), 0, 2))
