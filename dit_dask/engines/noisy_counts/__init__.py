"""The test on differentially private counts: a tuple's counts are noised, clipped at 0 and normalised to beliefs.

The distance of a record depends on its pattern of counts only, so everything is computed once per pattern and is a
function of that pattern alone: no chunking or order of patterns can change a bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dit_dask.engines.noisy_counts.bins import binned
from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss, privacy_loss, released_beliefs
from dit_dask.engines.noisy_counts.patterns import Counted, Patterns, count
from dit_dask.engines.noisy_counts.simulation import COUPLINGS, Sampling, Simulated, check_samples, delta_interval, simulate
from dit_dask.kernels import laplace

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

__all__ = [
    "COUPLINGS",
    "SCALES",
    "Counted",
    "Patterns",
    "PrivacyLoss",
    "Sampling",
    "Simulated",
    "binned",
    "check_samples",
    "count",
    "delta_interval",
    "exact",
    "privacy_loss",
    "released_beliefs",
    "simulate",
]

SCALES = {"emd": 1.0, "tv": 0.5, "emd-v1": 0.25}  # multiples of each other here; no other distance is defined


def exact(patterns: Patterns, epsilon: float) -> Floats:
    """Return (m,): the distances under the Laplace mechanism on the scale of `emd`, to rounding."""
    return laplace.distances(patterns.counts, patterns.own, patterns.cells, epsilon)
