"""Encoders by name: generalised classes as features a classifier can learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dit_dask.config.registry import Registry
from dit_dask.encoders import tf
from dit_dask.encoders.names import NAMES
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats


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


def is_relative(encoder: Encoder) -> bool:
    """Whether the features of classes depend on the target; they do unless the encoder says otherwise."""
    return bool(getattr(encoder, "is_relative", True))


ENCODERS: Registry[Encoder] = Registry(
    "dit_dask.encoders", dict.fromkeys(NAMES, "dit_dask.encoders.by_kind:KINDS") | {"tf": tf.KIND}
)
