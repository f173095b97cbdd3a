"""Which split of a tree changes when a person is removed: the first one on the way to one of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.release import Tree

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints

OTHER_CUT, OTHER_ATTRIBUTE = "other cut", "other attribute"
GONE, NEW = "no split without the person", "split only without the person"


@dataclass(frozen=True)
class SplitChange:
    """The highest split that differs: its level, 1 for the first split of the table, its attribute, and how it differs.

    `attribute_without` is that of the split which the rest of the table has there; None if it has none.
    """

    level: int
    attribute: str | None
    change: str
    attribute_without: str | None


def find_changed_split(before: Tree | None, after: Tree | None, targets: Codes, names: Sequence[str]) -> SplitChange | None:
    """Return the highest split on the ways of targets[m, d] that the removal changes; None if only counts do.

    Splits that none of the removed rows passes hold the same rows as before, so they change only below one that does; those of
    t-closeness, which compares every class with the whole table, may change elsewhere, too.
    """
    if before is None or after is None:
        return None
    found = [change for target in targets if (change := _compare(before, after, target, names)) is not None]
    return min(found, key=lambda change: change.level, default=None)


def _compare(before: Tree, after: Tree, target: Codes, names: Sequence[str]) -> SplitChange | None:
    node, other, level = 0, 0, 1
    while True:
        splits = int(before.attribute[node]), int(after.attribute[other])
        shown = tuple(None if split < 0 else names[split] for split in splits)
        if splits[0] != splits[1]:
            change = GONE if splits[1] < 0 else NEW if splits[0] < 0 else OTHER_ATTRIBUTE
            return SplitChange(level, shown[0], change, shown[1])
        if splits[0] < 0:
            return None
        branches, others = _branches(before, node), _branches(after, other)
        if not np.array_equal(branches, others):
            return SplitChange(level, shown[0], OTHER_CUT, shown[1])
        taken = int(np.flatnonzero((branches[:, 0] <= target[splits[0]]) & (target[splits[0]] <= branches[:, 1]))[0])
        node, other = int(before.first_child[node]) + taken, int(after.first_child[other]) + taken
        level += 1


def _branches(tree: Tree, node: int) -> Ints:
    """Return (children, 2): the codes that lead to each child of a node."""
    below = slice(int(tree.first_child[node]), int(tree.first_child[node] + tree.child_count[node]))
    ends: Ints = np.column_stack([tree.branch_low[below], tree.branch_high[below]])
    return ends
