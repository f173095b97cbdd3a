"""Adversaries by name: from a release to beliefs about one target's secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from dit_dask.adversaries import bernoulli_nb, classifier, conditional_frequency, narrowest_class
from dit_dask.config.registry import Registry
from dit_dask.encoders import Encoder
from dit_dask.encoders.tf import TF
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

IMPORT_PATH = classifier.KIND
PANEL = ("bernoulli-nb", "conditional-frequency")  # exact, cheap, and blind to different things
TABLE_READER = "published-tables"
OVERLAP_PANEL = (*PANEL, "narrowest-class")


def default_panel(*, disjoint: bool) -> tuple[str, ...]:
    """Name the default adversaries; where several classes may cover one record, also the one that prefers the narrowest."""
    return PANEL if disjoint else OVERLAP_PANEL


class Adversary(Protocol):
    """An inference algorithm: learns from a release and predicts the secret of a target with codes[d]."""

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """Return (n,) probabilities over the whole domain of the secret, in schema order."""
        ...


@runtime_checkable
class Learner(Protocol):
    """An adversary that learns before it knows the target, where the encoding is not relative to it."""

    def learn(self, release: Release, encoder: Encoder, target: Codes) -> Callable[[Codes], Floats]:
        """Return what predicts this target, and every other one if the encoder is not relative."""
        ...


@runtime_checkable
class Redrawable(Protocol):
    """An adversary that trains at random, so that every repeat of a test needs a training of its own."""

    def redraw(self, *purpose: object) -> Adversary:
        """Return the same adversary with randomness that depends on its seed and this purpose only."""
        ...


def redraw(adversary: Adversary, *purpose: object) -> Adversary:
    """Give an adversary its own randomness for one purpose; one that has none stays as it is."""
    return adversary.redraw(*purpose) if isinstance(adversary, Redrawable) else adversary


def beliefs_about(adversary: Adversary, release: Release, encoder: Encoder, targets: Codes) -> Floats:
    """Return (m, n) beliefs about targets[m, d] by an encoder that is not relative: what can be learned is learned once."""
    if isinstance(adversary, Learner):
        return np.stack(list(map(adversary.learn(release, encoder, targets[0]), targets)))
    return np.stack([adversary.beliefs(release, encoder, target) for target in targets])


def is_counted(adversary: Adversary, encoder: Encoder) -> bool:
    """Whether coverage and class counts give the beliefs of a counting adversary: those of naive Bayes only under TF."""
    return not isinstance(adversary, bernoulli_nb.BernoulliNB) or isinstance(encoder, TF)


ADVERSARIES: Registry[Adversary] = Registry(
    "dit_dask.adversaries",
    {
        "bernoulli-nb": bernoulli_nb.KIND,
        "conditional-frequency": conditional_frequency.KIND,
        "narrowest-class": narrowest_class.KIND,
        TABLE_READER: "dit_dask.adversaries.published_tables:KIND",
    },
)
