"""Conditional frequency: the share of each secret in the target's own class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Codes, Floats, Ints


@dataclass(frozen=True)
class ConditionalFrequency:
    """Follows the split tree where the release has one, else sums over the covering classes."""

    def beliefs(self, release: Release, _encoder: Encoder, target: Codes) -> Floats:
        """A target that no class covers takes the counts of the node its path ends in, or of the whole release."""
        if release.tree is not None:
            chosen = release.counts[release.tree.descend(target)]
        else:
            chosen = release.counts[release.covers(target).all(axis=1)]
            chosen = chosen if len(chosen) else release.counts
        return shares_of(chosen)


def shares_of(counts: Ints) -> Floats:
    """Return (n,): the share of each secret in classes that hold counts[c, n]."""
    together = counts.sum(axis=0)
    shares: Floats = together / together.sum()
    return shares


def _build(_parameters: Mapping[str, Any], _context: Context) -> ConditionalFrequency:
    return ConditionalFrequency()


KIND = Kind(Record(), _build)
