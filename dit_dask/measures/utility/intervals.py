"""How rows are spread inside published intervals of numbers and dates, and among published labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.release import RangeShares, Release, SetShares

if TYPE_CHECKING:
    from dit_dask.measures.utility.original import Buckets
    from dit_dask.values.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class LabelShares:
    """Labels, ordered ones too: each that a published value covers has the same share; value[c] of each class."""

    codes: RangeShares | SetShares

    @property
    def value(self) -> Ints:
        """Return (classes,)."""
        return self.codes.value

    def inside(self, first: int, last: int) -> Floats:
        """Return (values,): the share of each value that lies in the codes first..last."""
        return self.codes.inside(first, last)

    def spread(self, buckets: Buckets) -> Floats:
        """Return (values, buckets): how a published value is divided among the buckets."""
        inside = [self.inside(int(first), int(last)) for first, last in zip(buckets.first, buckets.last, strict=True)]
        if buckets.has_rest:
            whole = self.inside(0, len(buckets.of) - 1)
            inside.append(np.maximum(whole - sum(inside), 0.0))
        return np.column_stack(inside)


@dataclass(frozen=True, eq=False)
class IntervalShares(LabelShares):
    """Numbers and dates: uniform between low[v] and high[v], on the scale of scale[code]; a single number is itself."""

    scale: Floats
    low: Floats
    high: Floats

    def inside(self, first: int, last: int) -> Floats:
        """Return (values,): the share of each interval that lies between the numbers of two codes."""
        common = np.minimum(self.high, self.scale[last]) - np.maximum(self.low, self.scale[first])
        length, share = self.high - self.low, self.codes.inside(first, last)
        np.divide(np.maximum(common, 0.0), length, out=share, where=length > 0)
        return share

    def spread(self, buckets: Buckets) -> Floats:
        """Return (values, buckets): buckets meet halfway between the numbers of two neighbours."""
        edges = self.scale[buckets.last[:-1]] / 2 + self.scale[buckets.first[1:]] / 2
        length = (self.high - self.low)[:, None]
        below = np.zeros((len(length), buckets.count + 1))
        below[:, -1] = 1.0
        np.divide(edges - self.low[:, None], length, out=below[:, 1:-1], where=length > 0)
        return np.where(length > 0, np.diff(np.clip(below, 0.0, 1.0), axis=1), super().spread(buckets))


def published_shares(release: Release) -> list[LabelShares]:
    """How each quasi-identifier of a release is spread; a set of numbers counts from its lowest to its highest."""
    found: list[LabelShares] = []
    for place, attribute in enumerate(release.schema.quasi_identifiers):
        codes = release.published.shares(place, len(attribute.levels))
        if attribute.values is None or attribute.kind == "ordinal":
            found.append(LabelShares(codes))
        else:
            scale, (low, high) = attribute.values / 2, codes.ends()  # halves: no difference of two is infinite
            found.append(IntervalShares(codes, scale, scale[low], scale[high]))
    return found
