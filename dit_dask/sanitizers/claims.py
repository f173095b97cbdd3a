"""The properties that releases claim, re-checked on what is published; shares no code with any sanitizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Ints


class Claim(Protocol):
    """A property of an equivalence class."""

    def broken(self, counts: Ints) -> Bools:
        """Return (classes,): which classes with counts[class, secret] lack the property."""
        ...


@dataclass(frozen=True)
class KAnonymity:
    """At least k records in every class."""

    k: int

    def broken(self, counts: Ints) -> Bools:
        """Classes of fewer than k records."""
        small: Bools = counts.sum(axis=1) < self.k
        return small


@dataclass(frozen=True)
class LDiversity:
    """At least l records and l values in every class, none with more than a share of 1 / l."""

    l: int  # noqa: E741 - the name of the parameter in the literature

    def broken(self, counts: Ints) -> Bools:
        """Classes that let a value be guessed with more than 1 / l."""
        size = counts.sum(axis=1)
        few = (size < self.l) | ((counts > 0).sum(axis=1) < self.l)
        frequent: Bools = few | (counts.max(axis=1) * self.l > size)
        return frequent


@dataclass(frozen=True)
class AllOf:
    """Several claims at once."""

    claims: tuple[Claim, ...]

    def broken(self, counts: Ints) -> Bools:
        """Classes that lack any of the properties."""
        broken: Bools = np.logical_or.reduce([claim.broken(counts) for claim in self.claims])
        return broken


@dataclass(frozen=True)
class Recheck:
    """What a release publishes, counted anew."""

    classes: int | None
    smallest_class: int | None
    holds: bool | None
    broken_classes: int
    broken_records: int


def recheck(release: Release, claim: Claim | None) -> Recheck:
    """Group the published records by their published values and test every group."""
    keys = release.published.keys()
    order = np.lexsort(keys.T)
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    counts = np.add.reduceat(release.counts[order], np.flatnonzero(starts), axis=0, dtype=np.int64)
    size = counts.sum(axis=1)
    broken = np.zeros(len(size), bool) if claim is None else claim.broken(counts)
    holds = None if claim is None else not broken.any()
    return Recheck(len(size), int(size.min()), holds, int(broken.sum()), int(size[broken].sum()))
