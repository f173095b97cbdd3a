"""The tree that Mondrian grows from a table, what it publishes, and how it changes when one record is removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dit_dask.kernels import mondrian as kernel
from dit_dask.kernels import mondrian_persons
from dit_dask.kernels.exact_engine import evaluate
from dit_dask.kernels.predicates import Rule
from dit_dask.sanitizers.predicates import Predicates
from dit_dask.values.hierarchy import Hierarchy
from dit_dask.values.release import Difference, Ranges, Release, Tree
from dit_dask.values.schema import Schema
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

MOST_TREES = 32  # that are kept where each secret needs one


class Domain(NamedTuple):
    """The attributes as the flat arrays that kernels.mondrian describes."""

    numbers: Floats
    attributes: Codes
    spans: Floats
    tree: Codes
    turns: Codes
    node_widths: Floats


@dataclass(frozen=True, eq=False)
class Grown:
    """A table's tree: rows[m, d + 2] in its order, its nodes, the position of each distinct record in that order.

    Where persons have several rows, persons[m, 2] has the person of each row, and the number of its pair (person, secret).
    """

    schema: Schema
    rule: Rule
    rows: Codes
    nodes: Codes
    place: Codes
    persons: Codes | None = None

    @property
    def domain(self) -> Domain:
        """The attributes as flat arrays."""
        return flatten_schema(self.schema)

    @property
    def secrets(self) -> int:
        """The number of sensitive values."""
        return len(self.schema.sensitive.levels)


def partition(table: Table, predicates: Predicates, only: int = -1) -> Grown:
    """Partition the distinct records; with `only`, as if the table had one record less of that secret to be compared to."""
    rows, persons = flatten_rows(table), number_pairs(table)
    domain, secrets = flatten_schema(table.schema), len(table.schema.sensitive.levels)
    rule = predicates.rule(_count_secrets(rows, persons, secrets), only)
    if persons is None:
        order, nodes = kernel.partition(rows, rule, *domain, secrets)
    else:
        order, nodes = mondrian_persons.partition(rows, persons, rule, *domain, secrets)
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    # records in the order of the tree: a node is then a range of memory too
    return Grown(table.schema, rule, rows[order], nodes, position, None if persons is None else persons[order])


grow = lru_cache(maxsize=2)(partition)  # the last trees are kept, for the release and the tasks of one process need the same


class Classes(NamedTuple):
    """Published classes in the order of the tree: code ranges low[c, d]..high[c, d], counts[c, n], and where each starts."""

    low: Codes
    high: Codes
    counts: Ints
    starts: Codes


@lru_cache(maxsize=2)
def build_release(grown: Grown) -> Release:
    """Publish every class of the tree; kept, so that what is learned from it is learned once."""
    order = np.arange(len(grown.rows), dtype=np.int32)
    classes = _list_classes(grown.rows, order, grown.nodes, grown.secrets)
    first = np.searchsorted(classes.starts, grown.nodes[:, kernel.START])
    last = np.searchsorted(classes.starts, grown.nodes[:, kernel.STOP])
    return Release(grown.schema, Ranges(classes.low, classes.high), classes.counts, _build_tree(grown.nodes, first, last))


def _list_classes(rows: Codes, order: Codes, lines: Codes, secrets: int) -> Classes:
    lines = lines[lines[:, kernel.ATTRIBUTE] < 0]
    lines = lines[np.argsort(lines[:, kernel.START])]
    counts = kernel.count_secrets(rows, order, lines[:, kernel.START : kernel.STOP + 1], secrets)
    ranges = lines[:, -2 * (rows.shape[1] - 2) :]
    return Classes(ranges[:, ::2].copy(), ranges[:, 1::2].copy(), counts, lines[:, kernel.START])


def _build_tree(nodes: Codes, first: Ints, last: Ints) -> Tree:
    header = nodes[:, : kernel.STATE].T.copy()
    return Tree(
        header[kernel.ATTRIBUTE],
        header[kernel.FIRST],
        header[kernel.COUNT],
        header[kernel.LEAST],
        header[kernel.MOST],
        first.astype(np.int32),
        (last - first).astype(np.int32),
    )


class Change(NamedTuple):
    """Without a record, the subtree of line `root`, with these classes, replaces that of `node`."""

    node: int
    root: int
    classes: Classes


class RecordRemover:
    """Computes what the removal of a record changes, in work arrays that are reused: the base tree and room after it."""

    def __init__(self, grown: Grown) -> None:
        self.grown = grown
        self.nodes = np.concatenate([grown.nodes, np.zeros_like(grown.nodes)])
        self.order = np.concatenate([np.arange(len(grown.rows), dtype=np.int32)] * 2)
        self.rows = grown.rows.copy()
        domain = grown.domain
        self.scratch = kernel.scratch(self.rows, domain.attributes, domain.tree, grown.secrets)
        self.slots = np.zeros(len(grown.rows), np.int32)
        self.coverage = np.zeros((0, len(domain.spans), grown.secrets), np.int32)
        self.fallen = np.zeros((0, grown.secrets), np.int32)
        self.steps = np.empty((2, grown.secrets), np.int32)
        self.log = np.empty((len(grown.nodes) + 1, 2), np.int32)

    def changes(self, record: int) -> tuple[Codes, list[Change]]:
        """Return the lines of the base tree and of the subtrees grown after it, and the replaced subtrees in its order."""
        grown, target = self.grown, self.grown.place[record]
        tops = np.array([len(grown.rows), len(grown.nodes), 0])
        self.order, self.nodes = evaluate(
            self.rows,
            grown.rule,
            *grown.domain,
            self.order,
            self.nodes,
            *self.scratch,
            np.array([target], np.int32),
            self.slots,
            self.coverage,
            self.fallen,
            self.steps,
            tops,
            self.log,
        )
        replaced = self.log[: np.argmax(self.log[:, 0] < 0)].tolist()
        ends = [root for _, root in replaced[1:]] + [int(tops[1])]
        self.rows[target, -1] -= 1
        changes = [
            Change(node, root, _list_classes(self.rows, self.order, self.nodes[root:end], grown.secrets))
            for (node, root), end in zip(replaced, ends, strict=True)
        ]
        self.rows[target, -1] += 1
        changes.sort(key=lambda change: int(grown.nodes[change.node, kernel.START]))
        return self.nodes[: tops[1], : kernel.STATE].copy(), changes


class PersonRemover:
    """Computes what the removal of a person's rows changes: the base tree, whose subtrees are grown again behind it."""

    def __init__(self, grown: Grown, persons: Codes) -> None:
        self.grown, self.persons = grown, persons
        self.nodes = np.concatenate([grown.nodes, np.zeros_like(grown.nodes)])
        self.order = np.concatenate([np.arange(len(grown.rows), dtype=np.int32)] * 2)
        domain = grown.domain
        self.scratch = mondrian_persons.person_scratch(grown.rows, persons, domain.attributes, domain.tree, grown.secrets)
        self.waiting = np.empty(len(grown.nodes), np.int32)
        self.by_person = np.argsort(persons[:, 0], kind="stable").astype(np.int32)
        self.sorted = persons[self.by_person, 0]

    def changes(self, record: int) -> tuple[Codes, list[Change]]:
        """Return the lines of the base tree and of the subtrees grown after it, and the replaced subtrees in its order."""
        grown = self.grown
        person = self.persons[grown.place[record], 0]
        gone = self.by_person[slice(*np.searchsorted(self.sorted, [person, person + 1]))]
        tops, log = np.array([len(grown.rows), len(grown.nodes)]), np.empty((len(gone) + 1, 2), np.int32)
        self.order, self.nodes = mondrian_persons.remove(
            grown.rows,
            self.persons,
            grown.rule,
            *grown.domain,
            self.order,
            self.nodes,
            tops,
            gone,
            log,
            self.waiting,
            *self.scratch,
        )
        replaced = log[: np.argmax(log[:, 0] < 0)].tolist()
        ends = [root for _, root in replaced[1:]] + [int(tops[1])]
        changes = [
            Change(node, root, _list_classes(grown.rows, self.order, self.nodes[root:end], grown.secrets))
            for (node, root), end in zip(replaced, ends, strict=True)
        ]
        changes.sort(key=lambda change: int(grown.nodes[change.node, kernel.START]))
        return self.nodes[: tops[1], : kernel.STATE].copy(), changes


class Splicer:
    """Makes the releases without each record, or its person: that of the whole tree with a few subtrees replaced."""

    def __init__(self, grown: Grown) -> None:
        order = np.arange(len(grown.rows), dtype=np.int32)
        self.grown, self.full = grown, _list_classes(grown.rows, order, grown.nodes, grown.secrets)
        self.base = build_release(grown)
        self.spans = np.searchsorted(self.full.starts, grown.nodes[:, kernel.START : kernel.STOP + 1]).T
        self.remover = RecordRemover(grown) if grown.persons is None else PersonRemover(grown, grown.persons)

    def without(self, record: int) -> Release:
        """Remove one record, or its person."""
        lines, changes = self.remover.changes(record)
        low, high, counts = _splice_classes(self.full, self.spans, changes)
        tree, difference = _splice_tree(lines, self.spans, changes), _list_differences(self.base, self.spans, changes)
        return Release(self.grown.schema, Ranges(low, high), counts, tree, difference)


def leave_one_out(grown: Grown, records: Ints) -> Iterator[Release]:
    """Yield the release without each record, or its person."""
    splicer = Splicer(grown)
    for record in records:
        yield splicer.without(int(record))


def leave_one_out_by_secret(table: Table, predicates: Predicates, records: Ints) -> Iterator[Release]:
    """Yield the release without each record, from one tree for each secret: t-closeness compares to the table without it.

    All records of a secret leave the same distribution behind, so that tree is as any other of a fixed rule.
    """

    @lru_cache(maxsize=MOST_TREES)
    def remover_of(secret: int) -> Splicer:
        return Splicer(partition(table, predicates, secret))

    for record in records:
        yield remover_of(int(table.secret[record])).without(int(record))


def _list_differences(base: Release, spans: Ints, changes: list[Change]) -> Difference:
    """Number the replaced classes, and those in their place, which are behind what earlier changes added."""
    gone, new, added = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for node, _, own in changes:
        begin, end = spans[:, node].tolist()
        gone.append(np.arange(begin, end))
        new.append(np.arange(begin, begin + len(own.starts)) + added)
        added += len(own.starts) - (end - begin)
    return Difference(base, np.concatenate(gone), np.concatenate(new))


def _splice_classes(full: Classes, spans: Ints, changes: list[Change]) -> tuple[Codes, Codes, Ints]:
    """Return low, high and counts with the classes of the changed subtrees in place of spans[2, nodes] of the full ones."""
    low, high, counts = [], [], []
    done = 0
    for node, _, own in changes:
        kept = slice(done, int(spans[0, node]))
        low += [full.low[kept], own.low]
        high += [full.high[kept], own.high]
        counts += [full.counts[kept], own.counts]
        done = int(spans[1, node])
    rest = slice(done, None)
    return (
        np.concatenate([*low, full.low[rest]]),
        np.concatenate([*high, full.high[rest]]),
        np.concatenate([*counts, full.counts[rest]]),
    )


def _splice_tree(lines: Codes, spans: Ints, changes: list[Change]) -> Tree:
    """Link the changed subtrees; the lines of the replaced ones stay, but are unreachable."""
    base_count = spans.shape[1]
    first, last = np.zeros(len(lines), np.int64), np.zeros(len(lines), np.int64)
    first[:base_count], last[:base_count] = spans
    shift = 0
    roots = [*sorted(change.root for change in changes), len(lines)]
    for node, root, own in changes:
        begin, end = spans[:, node]
        grown = slice(root, roots[roots.index(root) + 1])
        first[grown] = begin + shift + np.searchsorted(own.starts, lines[grown, kernel.START])
        last[grown] = begin + shift + np.searchsorted(own.starts, lines[grown, kernel.STOP])
        more = len(own.starts) - (end - begin)
        first[:base_count] += np.where(spans[0] >= end, more, 0)
        last[:base_count] += np.where(spans[1] >= end, more, 0)
        shift += more
        lines[node, : kernel.START] = lines[root, : kernel.START]
    return _build_tree(lines, first, last)


def _count_secrets(rows: Codes, persons: Codes | None, secrets: int) -> Ints:
    """Return (secrets,): the records of each secret, or its pairs with a person."""
    if persons is None:
        return np.bincount(rows[:, -2], rows[:, -1], secrets).astype(np.int64)
    first = np.unique(persons[:, 1], return_index=True)[1]
    return np.bincount(rows[first, -2], minlength=secrets)


def flatten_rows(table: Table) -> Codes:
    """Return the distinct records as the kernels take them: codes, secret, weight."""
    rows = np.empty((table.distinct, table.codes.shape[1] + 2), np.int32)
    rows[:, :-2], rows[:, -2], rows[:, -1] = table.codes, table.secret, table.weights
    return rows


def number_pairs(table: Table) -> Codes | None:
    """Return (records, 2): the person of each record, and the number of its pair (person, secret), where persons have rows."""
    if table.subject is None:
        return None
    pairs = np.unique(table.subject * len(table.schema.sensitive.levels) + table.secret, return_inverse=True)[1]
    return np.column_stack([table.subject, pairs.ravel()]).astype(np.int32)


@lru_cache(maxsize=8)
def flatten_schema(schema: Schema) -> Domain:
    """Return the attributes as the flat arrays of the kernels, once for each schema."""
    numbers: list[Floats] = [np.zeros(0)]
    trees: list[Codes] = [np.zeros((1, 5), np.int32)]  # a placeholder where no attribute is categorical
    turns: list[Codes] = [np.zeros(0, np.int32)]
    widths: list[Floats] = [np.zeros(1)]
    attributes = np.zeros((len(schema.quasi_identifiers), 4), np.int32)
    spans = np.zeros(len(attributes))
    for position, attribute in enumerate(schema.quasi_identifiers):
        attributes[position] = -1, 0, len(attribute.levels), -1
        if attribute.values is not None:
            attributes[position, 0] = sum(map(len, numbers))
            spans[position] = attribute.values[-1] - attribute.values[0]
            numbers.append(attribute.values)
        elif attribute.hierarchy is not None:
            hierarchy, base = attribute.hierarchy, sum(map(len, trees))
            attributes[position, 1], attributes[position, 3] = base, sum(map(len, turns))
            depth = _compute_depths(hierarchy)
            columns = (hierarchy.low, hierarchy.high, hierarchy.first_child + base, hierarchy.child_count, depth)
            trees.append(np.column_stack(columns).astype(np.int32))
            turns.append(_list_turns(hierarchy, depth))
            leaves = hierarchy.high - hierarchy.low + 1
            widths.append(np.where(hierarchy.child_count > 0, leaves / len(hierarchy.leaves), 0.0))
    flat = (np.concatenate(numbers), attributes, spans, np.concatenate(trees), np.concatenate(turns), np.concatenate(widths))
    return Domain(*flat)


def _compute_depths(hierarchy: Hierarchy) -> Codes:
    """Return how far below the root each node is; parents come before their children."""
    depth = np.zeros(len(hierarchy.parent), np.int32)
    for node, parent in enumerate(hierarchy.parent.tolist()):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
    return depth


def _list_turns(hierarchy: Hierarchy, depth: Codes) -> Codes:
    """Return, for each depth and code one after the other, which child of its ancestor there leads to the code."""
    turns = np.zeros((depth.max() + 1, len(hierarchy.leaves)), np.int32)
    for node in range(1, len(depth)):
        parent = hierarchy.parent[node]
        turns[depth[parent], hierarchy.low[node] : hierarchy.high[node] + 1] = node - hierarchy.first_child[parent]
    return turns.ravel()
