"""The counts that beliefs are computed from, with all records and without each target, for sanitizers of the exact engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels.exact_coverage import cover
from dit_dask.kernels.exact_engine import evaluate
from dit_dask.sanitizers.mondrian_tree import Grown, grow, partition
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.sanitizers.raw import number_tuples
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints


class Counts(NamedTuple):
    """Published records by secret, for t targets.

    coverage[t, d, n]: those whose value of an attribute covers the target's; fallen[t, n]: those of the class or node that the
    target falls into; totals[n]: all of them but one of the secret removed[t], if that is not -1. Where other rows are removed
    for each target, totals[t, n].
    """

    coverage: Codes
    fallen: Codes
    totals: Ints
    removed: Codes


class Needs(NamedTuple):
    """Which counts are needed; the others have no lines."""

    coverage: bool
    fallen: bool


class CountSource(Protocol):
    """The counts of one table and sanitizer: places[m] of the distinct records; equal places have equal counts."""

    @property
    def places(self) -> Ints | Codes:
        """Return (m,); targets with neighbouring places share work."""
        ...

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Yield the counts of the targets, distinct places in ascending order, with all records, then without each.

        The second counts may overwrite the first.
        """
        ...


class MondrianCounts:
    """The tree of the whole table and one descent of all targets; a place is that of the record in the tree."""

    def __init__(self, grown: Grown) -> None:
        self.grown, self.places = grown, grown.place
        self.totals = count_by_secret(grown.rows[:, -2], grown.rows[:, -1], grown.secrets)

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Cover the targets by the whole tree, then replace what the removal of each changes."""
        descent = _Descent(self.grown, targets.astype(np.int32), needs)
        coverage, fallen = descent.count_with()
        yield Counts(coverage, fallen, self.totals, np.full(len(targets), -1, np.int32))
        yield Counts(*descent.count_without(), self.totals, self.grown.rows[targets, -2].copy())


class ReferenceCounts:
    """Trees of a rule that compares to the whole table: without a record, all of its secret leave the same table behind.

    So the targets of each secret descend in a tree of their own. A place is that of the record in the tree of the whole table,
    after those of all records of smaller secrets.
    """

    def __init__(self, table: Table, predicates: Predicates) -> None:
        self.table, self.predicates, self.grown = table, predicates, grow(table, predicates)
        self.totals = count_by_secret(table.secret, table.weights, self.grown.secrets)
        self.places = table.secret.astype(np.int64) * table.distinct + self.grown.place
        self._record = np.argsort(self.grown.place)

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Cover the targets by the whole tree, then by that of their secret without each of them."""
        secret, place = targets // self.table.distinct, targets % self.table.distinct
        coverage, fallen = _Descent(self.grown, place.astype(np.int32), needs).count_with()
        yield Counts(coverage, fallen, self.totals, np.full(len(targets), -1, np.int32))
        for value in np.unique(secret):
            alike = np.flatnonzero(secret == value)
            grown = partition(self.table, self.predicates, int(value))
            descent = _Descent(grown, grown.place[self._record[place[alike]]], needs)
            descent.count_with()
            some_coverage, some_fallen = descent.count_without()
            if needs.coverage:
                coverage[alike] = some_coverage
            if needs.fallen:
                fallen[alike] = some_fallen
        yield Counts(coverage, fallen, self.totals, secret.astype(np.int32))


class _Descent:
    """Counts of chosen rows of a tree: with all records, then without each; the second overwrite the first."""

    def __init__(self, grown: Grown, chosen: Codes, needs: Needs) -> None:
        self.grown, self.chosen, self.needs = grown, chosen, needs
        self.slots = np.zeros(len(grown.rows), np.int32)
        self.slots[chosen] = np.arange(len(chosen), dtype=np.int32)
        self.counts = allocate(len(chosen), len(grown.domain.spans), grown.secrets, needs)
        self.steps = np.empty((len(self.counts[0]) + 1, grown.secrets), np.int32)
        self.rows, self.order = grown.rows.copy(), np.arange(len(grown.rows), dtype=np.int32)
        self.scratch = kernel.scratch(self.rows, grown.domain.attributes, grown.domain.tree, grown.secrets)

    def count_with(self) -> tuple[Codes, Codes]:
        """Return coverage and fallen by the whole tree."""
        grown, rows, (coverage, fallen) = self.grown, self.rows, self.counts
        cover(rows, self.order, grown.nodes, -1, 0, self.chosen, self.slots, coverage, self.scratch[1], self.steps)
        if self.needs.fallen:
            fallen[:] = count_alike(_number_classes(grown), rows[:, -2], rows[:, -1], grown.secrets, self.chosen)
        return self.counts

    def count_without(self) -> tuple[Codes, Codes]:
        """Replace what the removal of each changes."""
        grown = self.grown
        evaluate(
            self.rows,
            grown.rule,
            *grown.domain,
            self.order,
            grown.nodes.copy(),
            *self.scratch,
            self.chosen.copy(),
            self.slots,
            *self.counts,
            self.steps,
            np.array([len(self.order), len(grown.nodes), 0]),
            np.empty((0, 2), np.int32),
        )
        return self.counts


class RawCounts:
    """Counts of equal values and of equal tuples; a place is the number of the record."""

    def __init__(self, table: Table) -> None:
        self.table, self.places = table, np.arange(table.distinct)
        self.secrets = len(table.schema.sensitive.levels)
        self.totals = count_by_secret(table.secret, table.weights, self.secrets)

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Count the records that share a value or the tuple with each target; its removal takes one from each count."""
        table, removed = self.table, self.table.secret[targets]
        coverage, fallen = allocate(len(targets), table.codes.shape[1], self.secrets, needs)
        if needs.coverage:
            for attribute, codes in enumerate(table.codes.T):
                coverage[:, attribute] = count_alike(codes, table.secret, table.weights, self.secrets, targets)
        if needs.fallen:
            fallen[:] = count_alike(number_tuples(table), table.secret, table.weights, self.secrets, targets)
        yield Counts(coverage, fallen, self.totals, np.full(len(targets), -1, np.int32))
        if needs.coverage:
            coverage[np.arange(len(targets)), :, removed] -= 1
        if needs.fallen:
            fallen[np.arange(len(targets)), removed] -= 1
            alone = np.flatnonzero(~fallen.any(axis=1))  # no class covers them any more: they fall into the whole release
            fallen[alone] = self.totals
            fallen[alone, removed[alone]] -= 1
        yield Counts(coverage, fallen, self.totals, removed)


class SuppressedCounts:
    """One class that covers everyone; a place is a secret."""

    def __init__(self, table: Table) -> None:
        self.places, self.attributes = table.secret, table.codes.shape[1]
        self.secrets = len(table.schema.sensitive.levels)
        self.totals = count_by_secret(table.secret, table.weights, self.secrets)

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Every count is that of the whole table."""
        removed = targets.astype(np.int32)
        coverage, fallen = allocate(len(targets), self.attributes, self.secrets, needs)
        coverage[:], fallen[:] = self.totals, self.totals
        yield Counts(coverage, fallen, self.totals, np.full(len(targets), -1, np.int32))
        if needs.coverage:
            coverage[np.arange(len(targets)), :, removed] -= 1
        if needs.fallen:
            fallen[np.arange(len(targets)), removed] -= 1
        yield Counts(coverage, fallen, self.totals, removed)


def allocate(targets: int, attributes: int, secrets: int, needs: Needs) -> tuple[Codes, Codes]:
    """Return coverage[t, d, n] and fallen[t, n] of zeros, without lines where they are not needed."""
    coverage = np.zeros((targets if needs.coverage else 0, attributes, secrets), np.int32)
    return coverage, np.zeros((targets if needs.fallen else 0, secrets), np.int32)


def count_by_secret(secret: Codes, weights: Ints | Codes, secrets: int) -> Ints:
    """Return (n,): the rows with each secret."""
    return np.bincount(secret, weights, secrets).astype(np.int64)


def count_alike(keys: Ints | Codes, secret: Codes, weights: Ints | Codes, secrets: int, targets: Ints | Codes) -> Codes:
    """Return (t, n): the rows by secret that have the same key as each target; memory for these keys only."""
    is_wanted = np.zeros(int(keys.max()) + 1, bool)
    is_wanted[keys[targets]] = True
    line = np.cumsum(is_wanted) - 1
    chosen = np.flatnonzero(is_wanted[keys])
    cells = line[keys[chosen]] * secrets + secret[chosen]
    counts = np.bincount(cells, weights[chosen], (int(line[-1]) + 1) * secrets).astype(np.int32)
    alike: Codes = counts.reshape(-1, secrets)[line[keys[targets]]]
    return alike


def _number_classes(grown: Grown) -> Ints:
    """Return (rows,): the number of the class of each row of the tree."""
    is_start = np.zeros(len(grown.rows), bool)
    is_start[grown.nodes[grown.nodes[:, kernel.ATTRIBUTE] < 0, kernel.START]] = True
    return np.cumsum(is_start) - 1
