"""The properties that releases claim, re-checked on what is published; shares no code with any sanitizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dit_dask.values.release import Release, Tree
from dit_dask.values.table import Table, collapse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Ints

FEWEST_REPEATED = 20  # distinct records whose counts have a common divisor only if rows are repeated
MOST_COMPARISONS = 10**7  # of records with classes, where a release has no tree


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
class IdenticalRows:
    """What a release owes to identical rows: classes, and rows in them, whose claim holds only if each row is a person.

    `repeated`: every record of the table occurs in a multiple of so many rows, as after a join that repeats rows.
    """

    classes: int = 0
    records: int = 0
    repeated: int = 1


NO_IDENTICAL_ROWS = IdenticalRows()


@dataclass(frozen=True)
class Recheck:
    """What a release publishes, counted anew; `homogeneous`: the share of rows in classes with one sensitive value."""

    classes: int | None
    smallest_class: int | None
    holds: bool | None
    broken_classes: int
    broken_records: int
    homogeneous: float = 0.0
    identical: IdenticalRows = NO_IDENTICAL_ROWS


def recheck(release: Release, claim: Claim | None, table: Table) -> Recheck:
    """Group the published records by their published values and test every group."""
    keys = release.published.keys()
    order = np.lexsort(keys.T)
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(starts) - 1
    counts = np.add.reduceat(release.counts[order], np.flatnonzero(starts), axis=0, dtype=np.int64)
    size = counts.sum(axis=1)
    broken = np.zeros(len(size), bool) if claim is None else claim.broken(counts)
    holds = None if claim is None else not broken.any()
    homogeneous = float(size[(counts > 0).sum(axis=1) == 1].sum() / size.sum())
    identical = _identical_rows(release, claim, group, counts, table)
    return Recheck(len(size), int(size.min()), holds, int(broken.sum()), int(size[broken].sum()), homogeneous, identical)


def _identical_rows(release: Release, claim: Claim | None, group: Ints, counts: Ints, table: Table) -> IdenticalRows:
    """Test every group again with each distinct record counted once."""
    if table.ids is not None:
        table = collapse(table.schema, table.codes, table.secret)[0]
    if table.weights.max(initial=1) == 1:
        return NO_IDENTICAL_ROWS
    repeated = int(np.gcd.reduce(table.weights)) if table.distinct >= FEWEST_REPEATED else 1
    place = None if claim is None else place_records(release, table.codes)
    if claim is None or place is None:
        return IdenticalRows(repeated=repeated)
    distinct = np.zeros_like(counts)
    covered = place >= 0
    np.add.at(distinct, (group[place[covered]], table.secret[covered]), 1)
    only = claim.broken(np.minimum(distinct, counts)) & ~claim.broken(counts) & (distinct.sum(axis=1) > 0)
    return IdenticalRows(int(only.sum()), int(counts[only].sum()), repeated)


def place_records(release: Release, codes: Codes) -> Ints | None:
    """Return (records,): the class that each record is in, -1 where none covers it; None if that would take too long."""
    if release.tree is not None:
        return _descend(release.tree, codes)
    classes = len(release.counts)
    if classes * len(codes) > MOST_COMPARISONS:
        return None
    place = np.full(len(codes), -1, np.int64)
    for record, target in enumerate(codes):
        covering = np.flatnonzero(release.covers(target).all(axis=1))
        if len(covering):
            place[record] = covering[0]
    return place


def _descend(tree: Tree, codes: Codes) -> Ints:
    """Follow the branches of all records at once."""
    node = np.zeros(len(codes), np.int64)
    moving = np.arange(len(codes))
    while len(moving := moving[tree.attribute[node[moving]] >= 0]):
        at = node[moving]
        code, child = codes[moving, tree.attribute[at]], np.full(len(moving), -1, np.int64)
        for number in range(int(tree.child_count[at].max())):
            below = np.minimum(tree.first_child[at] + number, len(tree.attribute) - 1)
            inside = (number < tree.child_count[at]) & (tree.branch_low[below] <= code) & (code <= tree.branch_high[below])
            child = np.where(inside, below, child)
        node[moving] = np.where(child >= 0, child, node[moving])
        moving = moving[child >= 0]
    place: Ints = tree.first_class[node].astype(np.int64)
    return place
