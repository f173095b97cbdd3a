"""What a release publishes of some attributes, and which records stand behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.discrimination.contingency import combined
from dit_dask.values.release import Release, Tree
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

BLOCK_CELLS = 2**24
NAMED_LEVELS = 6


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
    def of(cls, release: Release, places: Sequence[int]) -> Published:
        """Look at the attributes at some places of the schema."""
        attributes = tuple(release.schema.quasi_identifiers[place] for place in places)
        found = [
            release.published.coverage(place, len(attribute.levels))
            for place, attribute in zip(places, attributes, strict=True)
        ]
        group = combined([value for value, _ in found])
        first = np.unique(group, return_index=True)[1]
        return cls(attributes, tuple(value for value, _ in found), tuple(sets for _, sets in found), group, first)

    def label(self, group: int) -> str | list[str]:
        """Name a published value; several attributes give a list."""
        place = self.first[group]
        names = [
            described(attribute, sets[value[place]])
            for attribute, value, sets in zip(self.attributes, self.value, self.coverage, strict=True)
        ]
        return names[0] if len(names) == 1 else names


def described(attribute: Attribute, covered: Bools) -> str:
    """Name what a published value covers: a value, an interval, a node of the hierarchy, or a set."""
    codes = np.flatnonzero(covered)
    if len(codes) == 1:
        return str(attribute.levels[codes[0]])
    low, high = int(codes[0]), int(codes[-1])
    if high - low == len(codes) - 1:
        if attribute.hierarchy is None:
            return f"[{attribute.levels[low]}, {attribute.levels[high]}]"
        tree = attribute.hierarchy
        nodes = np.flatnonzero((tree.low == low) & (tree.high == high))
        if len(nodes):
            return tree.names[nodes[0]] or "*"
    names = [str(attribute.levels[code]) for code in codes[:NAMED_LEVELS]]
    more = f", and {len(codes) - NAMED_LEVELS} more" if len(codes) > NAMED_LEVELS else ""
    return "{" + ", ".join(names) + more + "}"


@dataclass(frozen=True, eq=False)
class Members:
    """Which class holds which distinct record, as (record, class, share of the record) triples."""

    record: Ints
    holder: Ints
    share: Floats
    exact: bool


def members(release: Release, table: Table) -> Members:
    """Find the class of every distinct record: by the split tree, else by what covers it.

    Where several classes cover a record it is shared out among them as their counts of its sensitive value; where none
    does it was suppressed.
    """
    everyone = np.arange(table.distinct)
    if release.tree is not None:
        return Members(everyone, descended(release.tree, table.codes), np.ones(table.distinct), exact=True)
    levels = [len(attribute.levels) for attribute in release.schema.quasi_identifiers]
    found = [release.published.coverage(place, size) for place, size in enumerate(levels)]
    if all((sets.sum(axis=1) == 1).all() for _, sets in found):
        published = np.column_stack([sets.argmax(axis=1)[value] for value, sets in found])
        return _matched(published, table.codes)
    return _covered(release, table, found)


def descended(tree: Tree, codes: Codes) -> Ints:
    """Return (records,): the class at the end of each record's way through the tree."""
    node = np.zeros(len(codes), np.int64)
    walking = np.flatnonzero(tree.attribute[node] >= 0)
    while len(walking):
        here = node[walking]
        code = codes[walking, tree.attribute[here]]
        below = tree.first_child[here].astype(np.int64)
        taken = np.full(len(walking), -1, np.int64)
        for step in range(int(tree.child_count[here].max())):
            child = np.minimum(below + step, len(tree.attribute) - 1)
            inside = (tree.branch_low[child] <= code) & (code <= tree.branch_high[child])
            inside &= (step < tree.child_count[here]) & (taken < 0)
            taken[inside] = child[inside]
        node[walking] = taken  # a record of the table always finds a branch
        walking = walking[tree.attribute[taken] >= 0]
    return tree.first_class[node].astype(np.int64)


def _matched(published: NDArray[Any], codes: Codes) -> Members:
    """Each class publishes exact values: look every record up among them."""
    import pandas as pd

    names = list(range(codes.shape[1]))
    classes = pd.DataFrame(published, columns=names).assign(holder=np.arange(len(published)))
    records = pd.DataFrame(codes, columns=names).assign(record=np.arange(len(codes)))
    both = records.merge(classes.drop_duplicates(names), on=names, how="inner").sort_values("record")
    return Members(both["record"].to_numpy(), both["holder"].to_numpy(), np.ones(len(both)), exact=True)


def _covered(release: Release, table: Table, found: Sequence[tuple[Ints, Bools]]) -> Members:
    step = max(1, BLOCK_CELLS // max(1, len(release.counts)))
    triples = []
    for start in range(0, table.distinct, step):
        block = slice(start, min(start + step, table.distinct))
        codes, secret = table.codes[block], table.secret[block]
        inside = np.ones((len(codes), len(release.counts)), bool)
        for place, (value, sets) in enumerate(found):
            inside &= sets.T[codes[:, place]][:, value]
        mine = np.where(inside, release.counts.T[secret], 0).astype(float)
        lost = mine.sum(axis=1) == 0
        mine[lost] = np.where(inside[lost], release.counts.sum(axis=1), 0)
        record, holder = np.nonzero(mine)
        triples.append((record + start, holder, mine[record, holder] / mine.sum(axis=1)[record]))
    record, holder, share = (np.concatenate(column) for column in zip(*triples, strict=True))
    return Members(record, holder, share, exact=bool((share == 1).all()))
