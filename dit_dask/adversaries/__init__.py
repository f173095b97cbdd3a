"""Adversaries by name: from a release to beliefs about one target's secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dit_dask.adversaries import bernoulli_nb, classifier, conditional_frequency, narrowest_class
from dit_dask.config.registry import Registry
from dit_dask.encoders import Encoder
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

IMPORT_PATH = classifier.KIND
PANEL = ("bernoulli-nb", "conditional-frequency")  # exact, cheap, and blind to different things
OVERLAP_PANEL = (*PANEL, "narrowest-class")


def default_panel(*, disjoint: bool) -> tuple[str, ...]:
    """Name the default adversaries; where several classes may cover one record, also the one that prefers the narrowest."""
    return PANEL if disjoint else OVERLAP_PANEL


class Adversary(Protocol):
    """An inference algorithm: learns from a release and predicts the secret of a target with codes[d]."""

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """Return (n,) probabilities over the whole domain of the secret, in schema order."""
        ...


ADVERSARIES: Registry[Adversary] = Registry(
    "dit_dask.adversaries",
    {
        "bernoulli-nb": bernoulli_nb.KIND,
        "conditional-frequency": conditional_frequency.KIND,
        "narrowest-class": narrowest_class.KIND,
    },
)
