"""Bernoulli naive Bayes: what scikit-learn's BernoulliNB would predict, without training it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.kernels.naive_bayes import posterior
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Codes, Floats


@dataclass(frozen=True)
class BernoulliNB:
    """Laplace smoothing of 1, learned prior, features binarised at 0."""

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """Learn relative to the target."""
        return self.learn(release, encoder, target)(target)

    def learn(self, release: Release, encoder: Encoder, target: Codes) -> Callable[[Codes], Floats]:
        """Count, for each feature and secret, the records that have it; the rest is closed form."""
        counts = release.counts.astype(float)
        features = (encoder.classes(release, target) > 0).astype(float)
        coverage, totals = features.T @ counts, counts.sum(axis=0)
        return lambda target: posterior(coverage, totals, encoder.target(release, target) > 0)


def _build(_parameters: Mapping[str, Any], _context: Context) -> BernoulliNB:
    return BernoulliNB()


KIND = Kind(Record(), _build)
