"""A sanitised table: equivalence classes with what they publish and what they hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.schema import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tree:
    """How a sanitizer split the records; one entry per node, node 0 is the root, children are neighbours.

    A child takes the codes branch_low..branch_high of its parent's `attribute` (-1: a class);
    it holds the classes first_class .. first_class + class_count - 1.
    """

    attribute: "NDArray[np.int32]"
    first_child: "NDArray[np.int32]"
    child_count: "NDArray[np.int32]"
    branch_low: "NDArray[np.int32]"
    branch_high: "NDArray[np.int32]"
    first_class: "NDArray[np.int32]"
    class_count: "NDArray[np.int32]"

    def descend(self, target: "NDArray[np.int32]") -> slice:
        """Follow a target's codes as far as its branches exist; return the classes of the node reached."""
        node = 0
        while self.attribute[node] >= 0:
            first = self.first_child[node]
            below = slice(first, first + self.child_count[node])
            code = target[self.attribute[node]]
            covering = np.flatnonzero((self.branch_low[below] <= code) & (code <= self.branch_high[below]))
            if not len(covering):
                break
            node = first + covering[0]
        start = self.first_class[node]
        return slice(int(start), int(start + self.class_count[node]))


@dataclass(frozen=True, eq=False)
class Release:
    """Classes that publish the code ranges low[c, d]..high[c, d] and hold counts[c, secret] records."""

    schema: Schema
    low: "NDArray[np.int32]"
    high: "NDArray[np.int32]"
    counts: "NDArray[np.int64]"
    tree: Tree | None = None

    def covers(self, target: "NDArray[np.int32]") -> "NDArray[np.bool_]":
        """Return (classes, d): where the published value covers the target's value."""
        return (self.low <= target) & (target <= self.high)
