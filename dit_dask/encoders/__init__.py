"""Encoders by name: generalised classes as features a classifier can learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dit_dask.config.registry import Registry
from dit_dask.encoders import tf
from dit_dask.encoders.names import NAMES
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Floats


class Encoder(Protocol):
    """Turns published classes and a target's codes[d] into the same features.

    An encoder whose classes have the same features for every target says so by `is_relative = False`.
    """

    def classes(self, release: Release, target: Codes) -> Floats:
        """Return (classes, f) features."""
        ...

    def target(self, release: Release, target: Codes) -> Floats:
        """Return the (f,) features of the target itself."""
        ...


@runtime_checkable
class ChangeEncoder(Encoder, Protocol):
    """An encoder with features from 0 to 1 that can encode what a removal changes, and nothing else."""

    def fractions(self, release: Release) -> Bools:
        """Return (f,): which features may be fractions; the others are 0 or 1."""
        ...

    def changes(self, release: Release) -> tuple[Floats, Floats] | None:
        """Return (gone, f) and (new, f); None where the difference is unknown, or the features of other classes change."""
        ...


def is_relative(encoder: Encoder) -> bool:
    """Whether the features of classes depend on the target; they do unless the encoder says otherwise."""
    return bool(getattr(encoder, "is_relative", True))


ENCODERS: Registry[Encoder] = Registry(
    "dit_dask.encoders", dict.fromkeys(NAMES, "dit_dask.encoders.by_kind:KINDS") | {"tf": tf.KIND}
)
