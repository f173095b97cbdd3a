"""Conditional frequency: the share of each secret in the target's own class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.registry import Context, Kind
from dit_dask.release import Release
from dit_dask.spec import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dit_dask.encoders import Encoder


@dataclass(frozen=True)
class ConditionalFrequency:
    """Follows the split tree where the release has one, else sums over the covering classes."""

    def beliefs(self, release: Release, _encoder: "Encoder", target: "NDArray[np.int32]") -> "NDArray[np.float64]":
        """A target that no class covers takes the counts of the node its path ends in, or of the whole release."""
        if release.tree is not None:
            chosen = release.counts[release.tree.descend(target)]
        else:
            chosen = release.counts[release.covers(target).all(axis=1)]
            chosen = chosen if len(chosen) else release.counts
        held = chosen.sum(axis=0)
        shares: NDArray[np.float64] = held / held.sum()
        return shares


def _build(_parameters: Mapping[str, Any], _context: Context) -> ConditionalFrequency:
    return ConditionalFrequency()


KIND = Kind(Record(), _build)
