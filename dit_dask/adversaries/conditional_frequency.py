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
        return shares_of(counts_about(release, target))


def counts_about(release: Release, target: Codes) -> Ints:
    """Return (c, n): the counts of the classes that a target may be in."""
    if release.tree is not None:
        return release.counts[release.tree.descend(target)]
    chosen = release.counts[release.covers(target).all(axis=1)]
    return chosen if len(chosen) else release.counts


def shares_of(counts: Ints) -> Floats:
    """Return (n,): the share of each secret in classes that hold counts[c, n]."""
    together = counts.sum(axis=0)
    shares: Floats = together / together.sum()
    return shares


def _build(_parameters: Mapping[str, Any], _context: Context) -> ConditionalFrequency:
    return ConditionalFrequency()


KIND = Kind(Record(), _build)
