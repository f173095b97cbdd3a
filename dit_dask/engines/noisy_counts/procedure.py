"""The test on noisy counts as an engine runs it: closed form or simulation, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dit_dask import seeds
from dit_dask.engines.gain import Shift, mark_predictions
from dit_dask.engines.influence import EffectiveEpsilon, Estimates, EstimateSummary, Influence, Simulation
from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss, privacy_loss, released_beliefs
from dit_dask.engines.noisy_counts.patterns import count
from dit_dask.engines.noisy_counts.simulation import Sampling, Simulated, delta_interval, simulate
from dit_dask.kernels import laplace
from dit_dask.measures.utility.figures import Utility, measure_frequencies
from dit_dask.sanitizers.claims import Recheck
from dit_dask.sanitizers.noise import Protection
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Floats, Ints

WORST = 5  # records on which the noise itself is checked
ADVERSARY = "counts"  # the name of the one who reads the published counts
ESTIMATES = ("unbiased", "stderr")  # columns that a simulation adds to a part

counted = lru_cache(maxsize=2)(count)  # the tasks of one worker share the patterns of a table


@dataclass(frozen=True)
class NoisyCounts:
    """A mechanism, how its beliefs are compared, and the multiple of `emd` that is reported."""

    protection: Protection
    method: str
    sampling: Sampling
    scale: float
    external: ClassVar[None] = None
    names: ClassVar[tuple[str, ...]] = (ADVERSARY,)
    publishes_release: ClassVar[bool] = False

    def publish(self, _table: Table) -> Release:
        """Counts are no table."""
        raise TypeError("noisy counts publish no table")

    def with_external(self, _sanitizer: ExternalSanitizer) -> NoisyCounts:
        """Counts call nothing."""
        raise TypeError("noisy counts have no external sanitizer")

    def recheck(self, table: Table) -> tuple[Recheck, PrivacyLoss | None, Utility]:
        """Compare the noise with its epsilon, where samples can refute it, and noisy counts with the true ones."""
        loss = shown_loss(table, self)
        holds = None if loss is None else not loss.contradicts(self.protection.epsilon or 0.0)
        seed = self.sampling.seed
        return Recheck(None, None, holds, 0, 0), loss, measure_frequencies(table, self.publish_counts(table), seed)

    def publish_counts(self, table: Table) -> Release:
        """Draw the noise of every tuple of the table once; the counts are numbers >= 0, and need not be whole."""
        exact = Raw().release(table, seeds.stream(0))
        rng = seeds.stream(self.sampling.seed, "noisy counts", self.sampling.mechanism.key)
        noise = self.sampling.mechanism.noise(rng, exact.counts.size).reshape(exact.counts.shape)
        noisy: Any = np.maximum(exact.counts + noise, 0.0)
        return Release(exact.schema, exact.published, noisy)

    def summarise_estimates(self, table: Table, estimates: Estimates, loss: PrivacyLoss | None) -> EstimateSummary:
        """An interval for delta, and the epsilon that the noise loses at least."""
        if not estimates.by_record:
            return EstimateSummary()
        unbiased, stderr = estimates.by_record["unbiased"], estimates.by_record["stderr"]
        comparisons = distinct_patterns(table, estimates.records)
        interval = delta_interval(Simulated(unbiased, unbiased, stderr), self.sampling.samples, comparisons)
        epsilon = None if loss is None else EffectiveEpsilon(loss.epsilon, loss.confidence)
        return EstimateSummary(Simulation(float(unbiased.max()), interval, epsilon))


def applies(method: str, procedure: Any) -> str | None:
    """Return why a method does not run this procedure, or None if it does."""
    wanted = isinstance(procedure, NoisyCounts) and procedure.method == method
    return None if wanted else f"{method} is for noisy counts"


def closed_form(table: Table, records: Ints, procedure: NoisyCounts) -> Influence:
    """Return the exact distances of the Laplace mechanism."""
    found = counted(table)
    chosen, of = np.unique(found.of[records], return_inverse=True)
    patterns, epsilon = found.patterns.take(chosen), procedure.protection.epsilon or np.inf
    distance = procedure.scale * laplace.distances(patterns.counts, patterns.own, patterns.cells, epsilon)
    return _influence(table, records, distance[of], distance[of] / (2 * procedure.scale))


def simulation(table: Table, records: Ints, procedure: NoisyCounts) -> Influence:
    """Sample both sides of each record's pattern once, and give every record of the pattern the result."""
    found = counted(table)
    chosen, of = np.unique(found.of[records], return_inverse=True)
    sampled = simulate(found.patterns.take(chosen), procedure.sampling).take(of)
    scale = procedure.scale
    estimates = {"unbiased": scale * sampled.unbiased, "stderr": scale * sampled.stderr}
    return _influence(table, records, scale * sampled.distance, sampled.unbiased / 2, estimates)


def _influence(
    table: Table, records: Ints, distance: Floats, gain: Floats, estimates: Mapping[str, Floats] = MappingProxyType({})
) -> Influence:
    """The one adversary reads the counts; its expected gain is half of `emd`, for only the true value loses belief."""
    found = counted(table)
    sides = found.predicted[records], found.predicted_without[records]
    marks = mark_predictions(*sides, table.secret[records])
    shifts = {ADVERSARY: Shift(distance, gain, marks, knows_confidence=False)}
    return Influence(distance, *sides, estimates=dict(estimates), shifts=shifts)


def chunks(table: Table, records: Ints, _procedure: NoisyCounts, number: int) -> list[Ints]:
    """Cut records into about so many sets of neighbouring patterns, which share most of their samples."""
    pattern = counted(table).of[records]
    along = np.argsort(pattern, kind="stable")
    ends = [part[-1] for part in np.array_split(np.unique(pattern), number)[:-1] if len(part)]
    cuts = np.searchsorted(pattern[along], ends, side="right")
    return [part for part in np.split(records[along], cuts) if len(part)]


def distinct_patterns(table: Table, records: Ints) -> int:
    """How many patterns the records have: so many comparisons an interval for delta must hold for."""
    return len(np.unique(counted(table).of[records]))


def shown_loss(table: Table, procedure: NoisyCounts) -> PrivacyLoss | None:
    """Bound from below the ε that the noise loses, on the records it protects least; None where nothing is claimed."""
    claimed = procedure.protection.epsilon
    if procedure.method != "simulate" or claimed is None or np.isinf(claimed):
        return None
    patterns = counted(table).patterns
    distance = laplace.distances(patterns.counts, patterns.own, patterns.cells, claimed)
    worst = patterns.take(np.argsort(-distance, kind="stable")[:WORST])
    return privacy_loss(*released_beliefs(worst, procedure.sampling), delta_dp=procedure.protection.delta_dp)
