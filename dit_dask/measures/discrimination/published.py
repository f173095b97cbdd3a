"""What a release publishes of some attributes, and which records belong to each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.discrimination.contingency import number_combinations
from dit_dask.values.release import Release, Tree
from dit_dask.values.schema import MIN_DISCLOSED_COUNT, Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

BLOCK_CELLS = 2**24
NAMED_LEVELS = 6
NOT_PUBLISHED = "(not published)"
HIDDEN, RARE, NO_VALUE = "…", "(a rare value)", "(no value of the table)"


@dataclass(frozen=True, eq=False)
class Published:
    """The published combinations of some attributes: group[c] of each class, first[g] one class of each group.

    value[a][c] is the published value of class c, coverage[a][v, level] what that value covers.
    """

    attributes: tuple[Attribute, ...]
    value: tuple[Ints, ...]
    coverage: tuple[Bools, ...]
    group: Ints
    first: Ints

    @classmethod
    def of(cls, release: Release, positions: Sequence[int]) -> Published:
        """Take the attributes at some positions of the schema."""
        attributes = tuple(release.schema.quasi_identifiers[position] for position in positions)
        coverage = [
            release.published.coverage(position, len(attribute.levels))
            for position, attribute in zip(positions, attributes, strict=True)
        ]
        group = number_combinations([value for value, _ in coverage])
        first = np.unique(group, return_index=True)[1]
        return cls(attributes, tuple(value for value, _ in coverage), tuple(sets for _, sets in coverage), group, first)

    def label(self, group: int, rows: Sequence[Ints] | None = None) -> str | list[str]:
        """Name a published value; several attributes give a list. Without `rows` of `count_rows` rare levels are named too."""
        if group == len(self.first):
            return NOT_PUBLISHED
        position = self.first[group]
        names = [
            describe_coverage(attribute, sets[value[position]], None if rows is None else rows[number])
            for number, (attribute, value, sets) in enumerate(zip(self.attributes, self.value, self.coverage, strict=True))
        ]
        return names[0] if len(names) == 1 else names


def count_rows(table: Table, positions: Sequence[int]) -> list[Ints]:
    """Return for each attribute (levels,): how many rows of the table have a level."""
    sizes = [len(table.schema.quasi_identifiers[position].levels) for position in positions]
    return [
        np.bincount(table.codes[:, position], table.weights, size).astype(np.int64)
        for position, size in zip(positions, sizes, strict=True)
    ]


def describe_coverage(attribute: Attribute, covered: Bools, rows: Ints | None = None) -> str:
    """Name what a published value covers: a value, an interval, a node of the hierarchy, or a set.

    The whole domain is `*`. Of `rows`, the rows of each level, fewer than 10 give a level no name: the one person with the
    highest age or income would be shown by an end of an interval.
    """
    codes = np.flatnonzero(covered)
    if not len(codes):
        return NO_VALUE
    is_shown = np.ones(len(covered), bool) if rows is None else rows >= MIN_DISCLOSED_COUNT
    if len(codes) == 1:
        return str(attribute.levels[codes[0]]) if is_shown[codes[0]] else RARE
    if covered.all():
        return "*"
    low, high = int(codes[0]), int(codes[-1])
    if high - low == len(codes) - 1:
        if attribute.hierarchy is None:
            ends = (str(attribute.levels[end]) if is_shown[end] else HIDDEN for end in (low, high))
            return f"[{', '.join(ends)}]"
        tree = attribute.hierarchy
        nodes = np.flatnonzero((tree.low == low) & (tree.high == high))
        if len(nodes):
            is_rare = rows is not None and rows[codes].sum() < MIN_DISCLOSED_COUNT
            return RARE if is_rare else tree.names[nodes[0]] or "*"
    names = [str(attribute.levels[code]) for code in codes if is_shown[code]][:NAMED_LEVELS]
    more = len(codes) - len(names)
    return "{" + ", ".join([*names, *([f"{'and ' if names else ''}{more} more"] if more else [])]) + "}"


@dataclass(frozen=True, eq=False)
class Members:
    """Which class holds which distinct record, as (record, class, share of the record) triples."""

    record: Ints
    holder: Ints
    share: Floats
    exact: bool


def find_members(release: Release, table: Table) -> Members:
    """Find the class of every distinct record: by the split tree, else by what covers it.

    Where several classes cover a record, it is divided among them in proportion to their counts of its sensitive value;
    where none does, it was suppressed.
    """
    records = np.arange(table.distinct)
    if release.tree is not None:
        return Members(records, descend_all(release.tree, table.codes), np.ones(table.distinct), exact=True)
    levels = [len(attribute.levels) for attribute in release.schema.quasi_identifiers]
    coverage = [release.published.coverage(position, size) for position, size in enumerate(levels)]
    if all((sets.sum(axis=1) == 1).all() for _, sets in coverage):
        published = np.column_stack([sets.argmax(axis=1)[value] for value, sets in coverage])
        return _match_exact_values(published, table.codes)
    return _share_among_covering(release, table, coverage)


def descend_all(tree: Tree, codes: Codes) -> Ints:
    """Return (records,): the class of the leaf that each record reaches in the tree."""
    node = np.zeros(len(codes), np.int64)
    active = np.flatnonzero(tree.attribute[node] >= 0)
    while len(active):
        current = node[active]
        code = codes[active, tree.attribute[current]]
        first_child = tree.first_child[current].astype(np.int64)
        chosen = np.full(len(active), -1, np.int64)
        for step in range(int(tree.child_count[current].max())):
            child = np.minimum(first_child + step, len(tree.attribute) - 1)
            inside = (tree.branch_low[child] <= code) & (code <= tree.branch_high[child])
            inside &= (step < tree.child_count[current]) & (chosen < 0)
            chosen[inside] = child[inside]
        node[active] = chosen  # some branch covers every record of the table
        active = active[tree.attribute[chosen] >= 0]
    return tree.first_class[node].astype(np.int64)


def _match_exact_values(published: NDArray[Any], codes: Codes) -> Members:
    """Look every record up among classes that publish exact values."""
    import pandas as pd

    names = list(range(codes.shape[1]))
    classes = pd.DataFrame(published, columns=names).assign(holder=np.arange(len(published)))
    records = pd.DataFrame(codes, columns=names).assign(record=np.arange(len(codes)))
    both = records.merge(classes.drop_duplicates(names), on=names, how="inner").sort_values("record")
    return Members(both["record"].to_numpy(), both["holder"].to_numpy(), np.ones(len(both)), exact=True)


def _share_among_covering(release: Release, table: Table, coverage: Sequence[tuple[Ints, Bools]]) -> Members:
    """Divide every record among the classes that cover it, a block of records at a time."""
    step = max(1, BLOCK_CELLS // max(1, len(release.counts)))
    triples = []
    for start in range(0, table.distinct, step):
        block = slice(start, min(start + step, table.distinct))
        codes, secret = table.codes[block], table.secret[block]
        inside = np.ones((len(codes), len(release.counts)), bool)
        for position, (value, sets) in enumerate(coverage):
            inside &= sets.T[codes[:, position]][:, value]
        weights = np.where(inside, release.counts.T[secret], 0).astype(float)
        unmatched = weights.sum(axis=1) == 0
        weights[unmatched] = np.where(inside[unmatched], release.counts.sum(axis=1), 0)
        record, holder = np.nonzero(weights)
        triples.append((record + start, holder, weights[record, holder] / weights.sum(axis=1)[record]))
    record, holder, share = (np.concatenate(column) for column in zip(*triples, strict=True))
    return Members(record, holder, share, exact=bool((share == 1).all()))
