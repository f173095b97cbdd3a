"""The properties that releases claim, re-checked on what is published; shares no code with any sanitizer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dit_dask.kernels.descent import descend
from dit_dask.values.arrays import distinct
from dit_dask.values.release import Release, Tree
from dit_dask.values.table import Table, collapse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Ints

ENTROPY_TOLERANCE = 1e-9  # of entropies that are compared: logarithms of equal products differ by rounding
FEWEST_REPEATED = 20  # distinct records whose counts have a common divisor only if rows are repeated
MOST_PAIRS, BLOCK_TUPLES = 10**9, 256  # of tuples with classes, where the persons of a class are counted
MOST_COMPARISONS = 10**7  # of records with classes, where a release has no tree


class Claim(Protocol):
    """A property of an equivalence class."""

    def broken(self, counts: Ints, size: Ints, whole: Ints) -> Bools:
        """Return (classes,): which classes of size[class] persons, of whom counts[class, secret] have a secret, lack it.

        whole[secret] are the persons of the whole table who have it.
        """
        ...

    @property
    def words(self) -> str:
        """Its name with its numbers, as people write it."""
        ...


@dataclass(frozen=True)
class KAnonymity:
    """At least k records in every class."""

    k: int

    def broken(self, _counts: Ints, size: Ints, _whole: Ints) -> Bools:
        """Classes of fewer than k records."""
        small: Bools = size < self.k
        return small

    @property
    def words(self) -> str:
        """As people write it."""
        return f"{self.k}-anonymity"


@dataclass(frozen=True)
class LDiversity:
    """At least l records and l values in every class, none with more than a share of 1 / l."""

    l: int  # noqa: E741 - the name of the parameter in the literature

    def broken(self, counts: Ints, size: Ints, _whole: Ints) -> Bools:
        """Classes that let a value be guessed with more than 1 / l."""
        few = (size < self.l) | ((counts > 0).sum(axis=1) < self.l)
        frequent: Bools = few | (counts.max(axis=1) * self.l > size)
        return frequent

    @property
    def words(self) -> str:
        """As people write it."""
        return f"{self.l}-diversity"


@dataclass(frozen=True)
class EntropyDiversity:
    """At least l records in every class, and an entropy of values of at least ln l, up to ENTROPY_TOLERANCE."""

    l: float  # noqa: E741 - the name of the parameter in the literature

    def broken(self, counts: Ints, size: Ints, _whole: Ints) -> Bools:
        """Classes whose values are too unevenly distributed."""
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
        uneven: Bools = (size < self.l) | (entropy < np.log(self.l) - ENTROPY_TOLERANCE)
        return uneven

    @property
    def words(self) -> str:
        """As people write it."""
        return f"entropy {self.l:g}-diversity"


@dataclass(frozen=True)
class RecursiveDiversity:
    """In every class the most frequent value is rarer than c times all but the l - 1 most frequent ones together."""

    c: Fraction
    l: int  # noqa: E741 - the name of the parameter in the literature

    def broken(self, counts: Ints, size: Ints, _whole: Ints) -> Bools:
        """Classes with a value that is too frequent."""
        descending = -np.sort(-counts, axis=1)
        first, tail = descending[:, 0].tolist(), descending[:, self.l - 1 :].sum(axis=1).tolist()
        frequent = [most * self.c.denominator >= self.c.numerator * rest for most, rest in zip(first, tail, strict=True)]
        return np.array(frequent, bool) | (size < self.l)

    @property
    def words(self) -> str:
        """As people write it."""
        return f"recursive ({float(self.c):g}, {self.l})-diversity"


@dataclass(frozen=True)
class TCloseness:
    """The values of every class are distributed as those of the whole table, up to t."""

    t: Fraction
    is_ordered: bool = False

    def broken(self, counts: Ints, _size: Ints, whole: Ints) -> Bools:
        """Classes whose distribution is further off, compared in whole numbers."""
        mass, total = counts.sum(axis=1), int(whole.sum())
        difference = counts * total - whole * mass[:, None]
        apart = np.abs(np.cumsum(difference, axis=1) if self.is_ordered else difference).sum(axis=1)
        times = counts.shape[1] - 1 if self.is_ordered else 2
        limit = self.t * times * total
        far = [
            one * limit.denominator > limit.numerator * held for one, held in zip(apart.tolist(), mass.tolist(), strict=True)
        ]
        return np.array(far, bool)

    @property
    def words(self) -> str:
        """As people write it."""
        return f"{float(self.t):g}-closeness" + (" of ordered values" if self.is_ordered else "")


@dataclass(frozen=True)
class AllOf:
    """Several claims at once."""

    claims: tuple[Claim, ...]

    def broken(self, counts: Ints, size: Ints, whole: Ints) -> Bools:
        """Classes that lack any of the properties."""
        broken: Bools = np.logical_or.reduce([claim.broken(counts, size, whole) for claim in self.claims])
        return broken

    @property
    def words(self) -> str:
        """As people write it."""
        return " and ".join(claim.words for claim in self.claims)


def claimed_k(claim: Claim | None) -> int | None:
    """The largest k that a claim names; None if it names none."""
    members = claim.claims if isinstance(claim, AllOf) else (claim,)
    return max((one.k for one in members if isinstance(one, KAnonymity)), default=None)


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
    """What a release publishes, counted anew; `homogeneous`: the share of rows in classes with one sensitive value.

    `persons_unknown`: persons have several rows, and the release does not tell in which classes theirs are; `claim_unknown`:
    nor whether the claim holds. `claimed`: the claim in words.
    """

    classes: int | None
    smallest_class: int | None
    holds: bool | None
    broken_classes: int
    broken_records: int
    homogeneous: float = 0.0
    identical: IdenticalRows = NO_IDENTICAL_ROWS
    persons_unknown: bool = False
    claim_unknown: bool = False
    claimed: str | None = None


def recheck(release: Release, claim: Claim | None, table: Table | None = None) -> Recheck:
    """Group the published records by their published values and test every group; `table` is what was sanitised.

    Groups are counted in persons where the table has persons with several rows.
    """
    keys = release.published.keys()
    order = np.lexsort(keys.T)
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    group = np.empty(len(keys), np.int64)
    group[order] = np.cumsum(starts) - 1
    counts = np.add.reduceat(release.counts[order], np.flatnonzero(starts), axis=0, dtype=np.int64)
    rows = counts.sum(axis=1)
    homogeneous = float(rows[(counts > 0).sum(axis=1) == 1].sum() / max(1, rows.sum()))
    if table is not None and table.subject is not None:
        persons = count_persons(release, group, counts, table)
    else:
        persons = PersonCounts(counts, rows)
    whole = counts.sum(axis=0) if table is None else count_table(table)
    broken = np.zeros(len(rows), bool) if claim is None else claim.broken(persons.counts, persons.size, whole)
    holds = None if claim is None else not broken.any()
    if not persons.is_exact:
        holds = False if broken.any() else None
    smallest = int(persons.size.min()) if persons.is_exact else None
    identical = NO_IDENTICAL_ROWS if table is None else _identical_rows(release, claim, group, counts, table)
    figures = int(broken.sum()), int(rows[broken].sum()), homogeneous, identical
    unknown = not persons.is_exact, claim is not None and holds is None
    return Recheck(len(rows), smallest, holds, *figures, *unknown, None if claim is None else claim.words)


@dataclass(frozen=True, eq=False)
class PersonCounts:
    """The persons of each group, size[g], of whom counts[g, n] have each secret there; at most so many if it is not exact."""

    counts: Ints
    size: Ints
    is_exact: bool = True


def count_table(table: Table) -> Ints:
    """Return (n,): how many rows have each secret or, where persons have several, how many persons."""
    secrets = len(table.schema.sensitive.levels)
    if table.subject is None:
        return np.bincount(table.secret, table.weights, secrets).astype(np.int64)
    return np.bincount(distinct(table.subject * secrets + table.secret) % secrets, minlength=secrets)


def count_persons(release: Release, group: Ints, rows: Ints, table: Table) -> PersonCounts:
    """Count the persons whose rows[g, n] each group publishes; if rows may be in several groups, all who may be there."""
    if table.subject is None:
        raise TypeError("a table whose rows are persons is counted by its rows")
    placed = possible_groups(release, group, table)
    if placed is None:
        return PersonCounts(rows, rows.sum(axis=1), is_exact=False)
    record, found = placed
    groups, secrets = rows.shape
    person, secret, base = table.subject[record], table.secret[record], int(table.subject.max()) + 1
    cells, members = distinct((found * secrets + secret) * base + person), distinct(found * base + person)
    counts = np.bincount(cells // base, minlength=groups * secrets).reshape(groups, secrets)
    size = np.bincount(members // base, minlength=groups)
    covered = np.bincount(found * secrets + secret, table.weights[record], groups * secrets).astype(np.int64)
    is_exact = len(record) == len(distinct(record)) and np.array_equal(covered, rows.ravel())
    return PersonCounts(np.minimum(counts, rows), np.minimum(size, rows.sum(axis=1)), is_exact)


def possible_groups(release: Release, group: Ints, table: Table) -> tuple[Ints, Ints] | None:
    """Return pairs (record, group that its row may be in); None if finding them would take too long."""
    if release.tree is not None:
        return np.arange(table.distinct), group[_descend(release.tree, table.codes)]
    tuples, tuple_of = np.unique(table.codes, axis=0, return_inverse=True)
    if len(release.counts) * len(tuples) > MOST_PAIRS:
        return None
    columns = [release.published.coverage(place, len(one.levels)) for place, one in enumerate(table.schema.quasi_identifiers)]
    found = [np.empty((0, 2), np.int64)]
    for first in range(0, len(tuples), BLOCK_TUPLES):
        block = tuples[first : first + BLOCK_TUPLES]
        covers = np.ones((len(block), len(release.counts)), bool)
        for (value, covered), codes in zip(columns, block.T, strict=True):
            covers &= covered[:, codes].T[:, value]
        place, covering = np.nonzero(covers)
        found.append(np.column_stack([first + place, covering]))
    return _by_record(np.concatenate(found), tuple_of.ravel(), release, group, table)


def _by_record(found: Ints, tuple_of: Ints, release: Release, group: Ints, table: Table) -> tuple[Ints, Ints]:
    """Turn pairs (tuple, class) into distinct pairs (record, group) whose class publishes the secret of the record."""
    starts = np.searchsorted(found[:, 0], tuple_of)
    lengths = np.searchsorted(found[:, 0], tuple_of, "right") - starts
    record = np.repeat(np.arange(table.distinct), lengths)
    inside = np.arange(len(record)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    covering = found[np.repeat(starts, lengths) + inside, 1]
    kept = release.counts[covering, table.secret[record]] > 0
    groups = int(group.max(initial=0)) + 1
    pairs = distinct(record[kept] * groups + group[covering[kept]])
    return pairs // groups, pairs % groups


def _identical_rows(release: Release, claim: Claim | None, group: Ints, counts: Ints, table: Table) -> IdenticalRows:
    """Test every group again with each distinct record counted once."""
    if table.subject is not None:  # persons are known: equal rows of two are two
        return NO_IDENTICAL_ROWS
    if table.ids is not None:
        table = collapse(table.schema, table.codes, table.secret)[0]
    if table.weights.max(initial=1) == 1:
        return NO_IDENTICAL_ROWS
    repeated = int(np.gcd.reduce(table.weights)) if table.distinct >= FEWEST_REPEATED else 1
    once = None if claim is None else _count_once(release, group, counts, table)
    if claim is None or once is None:
        return IdenticalRows(repeated=repeated)
    least = np.minimum(once, counts)
    held = claim.broken(least, least.sum(axis=1), least.sum(axis=0))
    only = held & ~claim.broken(counts, counts.sum(axis=1), counts.sum(axis=0)) & (once.sum(axis=1) > 0)
    return IdenticalRows(int(only.sum()), int(counts[only].sum()), repeated)


def _count_once(release: Release, group: Ints, counts: Ints, table: Table) -> Ints | None:
    """Return (groups, n): the distinct records of each group; None if finding them would take too long."""
    once = np.zeros_like(counts)
    if release.tree is not None:  # every row is in the class that its record comes to: only repeated ones need be looked for
        repeated = np.flatnonzero(table.weights > 1)
        place = _descend(release.tree, table.codes[repeated])
        np.add.at(once, (group[place], table.secret[repeated]), table.weights[repeated] - 1)
        return counts - once
    found = place_records(release, table.codes)
    if found is None:
        return None
    covered = found >= 0
    np.add.at(once, (group[found[covered]], table.secret[covered]), 1)
    return once


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
    """Follow the branches of each record."""
    node = np.empty(len(codes), np.int64)
    ranges = tree.branch_low, tree.branch_high
    descend(tree.attribute, tree.first_child, tree.child_count, *ranges, np.ascontiguousarray(codes), node)
    place: Ints = tree.first_class[node].astype(np.int64)
    return place
