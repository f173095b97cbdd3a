"""Encoders by name: generalised classes as features a classifier can learn from."""

from typing import TYPE_CHECKING, Protocol

from dit_dask.encoders import tf
from dit_dask.registry import Registry
from dit_dask.release import Release

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Encoder(Protocol):
    """Turns published classes and a target's codes[d] into the same features."""

    def classes(self, release: Release, target: "NDArray[np.int32]") -> "NDArray[np.float64]":
        """Return (classes, f) features."""
        ...

    def target(self, release: Release, target: "NDArray[np.int32]") -> "NDArray[np.float64]":
        """Return the (f,) features of the target itself."""
        ...


ENCODERS: Registry[Encoder] = Registry("dit_dask.encoders", {"tf": tf.KIND})
