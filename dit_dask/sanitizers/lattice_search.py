"""The node of a lattice that loses least, for a table and for the table without each of its records.

A node is feasible if at most the allowed share of records is in classes that are not valid, and if these records, suppressed,
are themselves a valid class. Where no node is, all records are one class, whose claim does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dit_dask.kernels.classes import judge_classes
from dit_dask.sanitizers.lattice import LOSS_UNIT, Bands, Lattice, build_lattice
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.kernels.predicates import Rule
    from dit_dask.values.arrays import Bools, Codes, Ints

LOSSES = ("certainty", "discernibility")
NOWHERE = -1  # instead of a node: all records are one class
INFINITE = np.iinfo(np.int64).max
MOST_KEPT = 16  # nodes whose classes are kept while releases are made


class Goal(NamedTuple):
    """What is searched for."""

    predicates: Predicates
    suppression: Fraction
    loss: str
    bands: Bands

    def most_suppressed(self, rows: int) -> int:
        """How many records may be suppressed."""
        return int(self.suppression * rows)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a table at a node: of[record], counts[c, n], size[c], a record of each, and the loss of a record[c]."""

    of: Ints
    counts: Ints
    size: Ints
    first: Ints
    loss: Ints


def group_classes(table: Table, lattice: Lattice, node: Ints) -> Classes:
    """Generalise a table."""
    secrets = len(table.schema.sensitive.levels)
    of = lattice.group(table, node)
    classes = int(of.max()) + 1
    counts = np.bincount(of * secrets + table.secret, table.weights, classes * secrets).astype(np.int64).reshape(-1, secrets)
    first = np.empty(classes, np.int64)
    first[of[::-1]] = np.arange(table.distinct)[::-1]
    loss = np.zeros(classes, np.int64)
    for attribute, level in enumerate(node):
        chosen = lattice.levels[attribute][level]
        loss += chosen.loss[chosen.group[table.codes[first, attribute]]]
    return Classes(of, counts, counts.sum(axis=1), first, loss)


def judge(counts: Ints, rule: Rule) -> tuple[Bools, Bools]:
    """Return (c,) which classes are valid, and (c, n) which are without a record of each secret."""
    valid, without = np.zeros(len(counts), bool), np.zeros(counts.shape, bool)
    judge_classes(counts, rule, valid, without)
    return valid, without


def _allowed(counts: Ints, rule: Rule) -> Bools:
    """Return (m,): whether records with counts[m, n] may be suppressed together; none at all may."""
    return judge(counts, rule)[0] | ~counts.any(axis=1)


class _Frontier:
    """The nodes in the order of the least that they can lose, without those below a node that suppresses too much."""

    def __init__(self, table: Table, lattice: Lattice, goal: Goal) -> None:
        self.lattice, self.goal = lattice, goal
        self.least, self.largest = lattice.least_losses(table)
        if goal.loss != "certainty":
            self.least = np.zeros_like(self.least)
        self._too_low = np.empty((0, lattice.nodes.shape[1]), np.int64)

    def __iter__(self) -> Iterator[int]:
        for node in np.argsort(self.least, kind="stable"):
            if not (self.lattice.nodes[node] <= self._too_low).all(axis=1).any():
                yield int(node)

    def is_excluded(self, node: int, size: Ints, most: int) -> bool:
        """Whether more than `most` records are in classes that are too small; then all nodes below are skipped.

        Their classes are smaller still, whatever else is asked for. No other property is lost for good by splitting a class.
        """
        if size[size < self.goal.predicates.need].sum() <= most:
            return False
        self._too_low = np.concatenate([self._too_low, self.lattice.nodes[[node]]])
        return True


def find_node(table: Table, lattice: Lattice, goal: Goal) -> int:
    """Return the number of the best node."""
    rule = goal.predicates.rule(np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)))
    frontier = _Frontier(table, lattice, goal)
    full, best = LOSS_UNIT * len(lattice.levels), (INFINITE, NOWHERE)
    for node in frontier:
        if frontier.least[node] > best[0]:
            break
        classes = group_classes(table, lattice, lattice.nodes[node])
        if frontier.is_excluded(node, classes.size, goal.most_suppressed(table.rows)):
            continue
        valid = judge(classes.counts, rule)[0]
        suppressed = int(classes.size[~valid].sum())
        if suppressed > goal.most_suppressed(table.rows) or not _allowed(classes.counts[~valid].sum(axis=0)[None], rule)[0]:
            continue
        if goal.loss == "certainty":
            loss = int((classes.size * classes.loss)[valid].sum()) + suppressed * full
        else:
            loss = int((classes.size[valid] ** 2).sum()) + suppressed * table.rows
        best = min(best, (loss, node))
    return best[1]


@lru_cache(maxsize=2)
def find_nodes_without(table: Table, goal: Goal) -> Ints:
    """Return (records,): the number of the best node without each record; the last are kept, for all tasks of a process."""
    lattice = build_lattice(table.schema, goal.bands)
    totals = np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels))
    if goal.predicates.t is None:
        parts = [(np.arange(table.distinct), goal.predicates.rule(totals))]
    else:  # all records of a secret leave the same distribution behind, to which classes are compared
        parts = [
            (np.flatnonzero(table.secret == one), goal.predicates.rule(totals, int(one))) for one in np.unique(table.secret)
        ]
    loss, best = np.full(table.distinct, INFINITE), np.full(table.distinct, NOWHERE)
    frontier = _Frontier(table, lattice, goal)
    for node in frontier:
        if frontier.least[node] - frontier.largest.max() > loss.max():
            break
        classes = group_classes(table, lattice, lattice.nodes[node])
        # without a record at most one less is suppressed, whoever it is
        if frontier.is_excluded(node, classes.size, goal.most_suppressed(table.rows - 1) + 1):
            continue
        for records, rule in parts:
            outcome = _remove_each(table, classes, records, rule, goal)
            is_better = (outcome < loss[records]) | ((outcome == loss[records]) & (outcome < INFINITE) & (node < best[records]))
            loss[records[is_better]], best[records[is_better]] = outcome[is_better], node
    return best


def _remove_each(table: Table, classes: Classes, records: Ints, rule: Rule, goal: Goal) -> Ints:
    """Return (m,): the loss without each of the records, infinite where the node is not feasible then."""
    valid, without = judge(classes.counts, rule)
    of, secret = classes.of[records], table.secret[records]
    before, after, size = valid[of], without[of, secret], classes.size[of]
    held = classes.counts[~valid].sum(axis=0)
    count = int(held.sum())
    suppressed = count - np.where(before, 0, size) + np.where(after, 0, size - 1)
    feasible = suppressed <= goal.most_suppressed(table.rows - 1)
    if not feasible.any():
        return np.full(len(records), INFINITE)
    # the suppressed records are as before; or one less; or a class more or less
    (allowed,), (without_one,) = judge(held[None], rule)
    feasible &= np.where(before & after, allowed or count == 0, True) & np.where(~before & ~after, without_one[secret], True)
    moved = np.flatnonzero(feasible & (before != after))
    if len(moved):
        cells, place = np.unique(of[moved] * len(held) + secret[moved], return_inverse=True)
        moved_class, moved_secret = cells // len(held), cells % len(held)
        left = classes.counts[moved_class].copy()
        left[np.arange(len(cells)), moved_secret] -= valid[moved_class]  # a class that becomes invalid has lost the record
        sums = held + np.where(valid[moved_class, None], left, -left)
        feasible[moved] &= _allowed(sums, rule)[place.ravel()]
    full = LOSS_UNIT * table.codes.shape[1]
    if goal.loss == "certainty":
        total = int((classes.size * classes.loss)[valid].sum()) + count * full
        own = classes.loss[of]
        loss = total - size * np.where(before, own, full) + (size - 1) * np.where(after, own, full)
    else:
        squares = int((classes.size[valid] ** 2).sum()) - np.where(before, size**2, 0) + np.where(after, (size - 1) ** 2, 0)
        loss = squares + suppressed * (table.rows - 1)
    return np.where(feasible, loss, INFINITE)


@lru_cache(maxsize=2)
def publish(table: Table, goal: Goal) -> Release:
    """Search, generalise and suppress; the last releases are kept, for all tasks of a process."""
    lattice = build_lattice(table.schema, goal.bands)
    node = find_node(table, lattice, goal) if table.distinct else NOWHERE
    if node == NOWHERE or not table.distinct:
        return _assemble(table, *_everything(table, min(table.distinct, 1)))
    rule = goal.predicates.rule(np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)))
    classes = group_classes(table, lattice, lattice.nodes[node])
    low, high = _ranges(table, lattice, lattice.nodes[node], classes)
    return _assemble(table, low, high, classes.counts, judge(classes.counts, rule)[0])


def leave_one_out(table: Table, goal: Goal, records: Ints) -> Iterator[Release]:
    """Yield what `publish` would return without each record."""
    lattice, nodes = build_lattice(table.schema, goal.bands), find_nodes_without(table, goal)
    totals = np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)).astype(np.int64)

    @lru_cache(maxsize=MOST_KEPT)
    def prepare(node: int) -> tuple[Classes, Codes, Codes]:
        classes = group_classes(table, lattice, lattice.nodes[node])
        return classes, *_ranges(table, lattice, lattice.nodes[node], classes)

    @lru_cache(maxsize=MOST_KEPT)
    def judge_at(node: int, secret: int) -> tuple[Bools, Bools]:
        return judge(prepare(node)[0].counts, goal.predicates.rule(totals, secret))

    for record in records:
        secret, node = int(table.secret[record]), int(nodes[record])
        if node == NOWHERE:
            low, high, counts, valid = _everything(table, 1)
            counts[0, secret] -= 1
            yield _assemble(table, low, high, counts, valid)
            continue
        classes, low, high = prepare(node)
        whole, without = judge_at(node, secret if goal.predicates.t is not None else -1)
        counts, valid, own = classes.counts.copy(), whole.copy(), classes.of[record]
        counts[own, secret] -= 1
        valid[own] = without[own, secret]
        yield _assemble(table, low, high, counts, valid)


def _ranges(table: Table, lattice: Lattice, node: Ints, classes: Classes) -> tuple[Codes, Codes]:
    """Return (c, d) each: the code ranges that classes publish."""
    chosen = [lattice.levels[attribute][level] for attribute, level in enumerate(node)]
    group = [level.group[table.codes[classes.first, attribute]] for attribute, level in enumerate(chosen)]
    low = np.column_stack([level.low[one] for level, one in zip(chosen, group, strict=True)])
    return low, np.column_stack([level.high[one] for level, one in zip(chosen, group, strict=True)])


def _everything(table: Table, classes: int) -> tuple[Codes, Codes, Ints, Bools]:
    """One class of all records, that covers the whole domain; none of a table without records."""
    last = np.array([len(attribute.levels) - 1 for attribute in table.schema.quasi_identifiers], np.int32)
    totals = np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)).astype(np.int64)
    return np.zeros((classes, len(last)), np.int32), np.tile(last, (classes, 1)), totals[None][:classes], np.ones(classes, bool)


def _assemble(table: Table, low: Codes, high: Codes, counts: Ints, valid: Bools) -> Release:
    """Publish the valid classes, then one of all suppressed records."""
    present = counts.any(axis=1)
    kept, gone = valid & present, counts[~valid & present]
    if not len(gone):
        return Release(table.schema, Ranges(low[kept], high[kept]), counts[kept])
    whole_low, whole_high, _, _ = _everything(table, 1)
    ranges = Ranges(np.concatenate([low[kept], whole_low]), np.concatenate([high[kept], whole_high]))
    return Release(table.schema, ranges, np.concatenate([counts[kept], gone.sum(axis=0)[None]]))
