"""Narrowest class: the share of each secret in the class that says most about the target, where several cover it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.conditional_frequency import ConditionalFrequency, shares_of
from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

ROUNDING = 1e-9  # of a sum of logarithms; volumes that differ by less are taken as equal


@dataclass(frozen=True)
class NarrowestClass:
    """Conditional frequency in the covering class that covers the fewest tuples of the domain; equally narrow ones together."""

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """Where there is a split tree, or at most one class covers the target, this is conditional frequency."""
        if release.tree is not None:
            return ConditionalFrequency().beliefs(release, encoder, target)
        covering = np.flatnonzero(release.covers(target).all(axis=1))
        if not len(covering):
            return shares_of(release.counts)
        return shares_of(release.counts[covering[are_narrowest(release.published.widths(covering))]])


def are_narrowest(widths: Ints) -> Bools:
    """Return (m,): which of the classes with widths[m, d] cover the fewest tuples; products could be too large for a float."""
    volume = np.log(widths).sum(axis=1)
    narrowest: Bools = volume <= volume.min() + ROUNDING
    return narrowest


def _build(_parameters: Mapping[str, Any], _context: Context) -> NarrowestClass:
    return NarrowestClass()


KIND = Kind(Record(), _build)
