"""Generalisation hierarchies: trees of values whose every node is a range of leaf codes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints

ROOT = "*"


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree in breadth-first order: the children of a node are neighbours, its leaves are low..high.

    All arrays have one entry per node; node 0 is the root. `leaves` are the labels in depth-first
    order: a leaf's code is its position there.
    """

    leaves: tuple[str, ...]
    names: tuple[str, ...]
    parent: Codes
    first_child: Codes
    child_count: Codes
    low: Codes
    high: Codes

    def preorder(self) -> tuple[Ints, Ints]:
        """Return (nodes,) each: the place of a node in a depth-first walk, and the place behind all nodes below it."""
        import numpy as np

        sizes = np.ones(len(self.names), np.int64)
        for node in range(len(self.names) - 1, 0, -1):  # children come after their parent
            sizes[self.parent[node]] += sizes[node]
        place = np.zeros(len(self.names), np.int64)
        for node, (first, count) in enumerate(zip(self.first_child, self.child_count, strict=True)):
            children = slice(first, first + count)
            place[children] = place[node] + 1 + np.cumsum(sizes[children]) - sizes[children]
        return place, place + sizes

    def node_of(self, name: str) -> int:
        """The leaf of a name, else the first node."""
        nodes = [node for node, other in enumerate(self.names) if other == name]
        return next((node for node in nodes if not self.child_count[node]), nodes[0])

    def paths(self) -> list[tuple[str, ...]]:
        """The names from each leaf up to the root, by leaf code."""
        found: list[tuple[str, ...]] = [()] * len(self.leaves)
        for node, count in enumerate(self.child_count):
            if count == 0:
                above = [node]
                while self.parent[above[-1]] >= 0:
                    above.append(int(self.parent[above[-1]]))
                found[self.low[node]] = tuple(self.names[name] for name in above)
        return found


def flat(labels: Sequence[str]) -> Hierarchy:
    """Put every label directly under one root."""
    return _number({"": list(labels)}, "")  # no label is empty, so none can be taken for the root


def build(paths: Sequence[Sequence[str]]) -> Hierarchy:
    """Make a tree of paths from leaf to root, which all share the root; leaves and siblings keep their order.

    Equal names one above the other are one node. Names may be those of other branches or levels: a node is known by its path.
    """
    short = [tuple(name for place, name in enumerate(path) if place == 0 or name != path[place - 1]) for path in paths]
    inner = {path[place:] for path in short for place in range(1, len(path))}
    children: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for path in short:
        full = (path[0], *path) if path in inner else path  # a leaf that has the name of the group above it
        for place in range(len(full) - 1, 0, -1):
            children.setdefault(full[place:], {})[full[place - 1 :]] = None
    root = short[0][-1:]
    return _number({node: list(below) for node, below in children.items()}, root, lambda node: node[0])


def with_leaf(hierarchy: Hierarchy, label: str) -> Hierarchy:
    """Add a leaf directly under the root; it gets the last code."""
    return build([*hierarchy.paths(), (label, hierarchy.names[0])])


def parse_levels(text: str, where: str) -> Hierarchy:
    """Read `leaf;level 1;level 2;…` lines as ARX writes them; the last level may be `*` or several groups."""
    form = "leaf;level 1;level 2;…"
    lines = text.splitlines()
    separator = ";" if lines and ";" in lines[0] else ","
    reader = csv.reader(lines, delimiter=separator)
    try:
        paths = {line: row for row, line in ((row, reader.line_num) for row in reader) if row}
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: not a line of {form}: {error}") from error
    if not paths:
        raise InputError(f"{where}: the hierarchy is empty; expected lines {form}")
    width = len(next(iter(paths.values())))
    above: dict[tuple[int, str], str] = {}
    leaves: set[str] = set()
    for line, path in paths.items():
        if len(path) != width or width < 2:
            raise InputError(f"{where}, line {line}: expected {max(width, 2)} cells {form}; got {len(path)}")
        if path[0] in leaves:
            raise InputError(f"{where}, line {line}: the leaf {path[0]!r} is listed twice")
        leaves.add(path[0])
        for level, (name, parent) in enumerate(pairwise(path)):
            if above.setdefault((level, name), parent) != parent:
                raise InputError(f"{where}, line {line}: {name!r} of level {level} is in two groups of level {level + 1}")
    tops = {path[-1] for path in paths.values()}
    return build([path if len(tops) == 1 else [*path, ROOT] for path in paths.values()])


def parse(text: str, where: str) -> Hierarchy:
    """Read `leaf;parent;…;*` lines; `where` names the file in errors."""
    reader = csv.reader(text.splitlines(), delimiter=";")
    try:
        paths = {line: row for row, line in ((row, reader.line_num) for row in reader) if row}
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: not a line of leaf;parent;…;{ROOT}: {error}") from error
    if not paths:
        raise InputError(f"{where}: the hierarchy is empty; expected lines leaf;parent;…;{ROOT}")
    parents = _parents(paths, where)
    children: dict[str, list[str]] = {}
    for node, parent in parents.items():
        children.setdefault(parent, []).append(node)
    return _number(children, next(iter(paths.values()))[-1])


def _parents(paths: Mapping[int, Sequence[str]], where: str) -> dict[str, str]:
    """Map each node but the root to its parent, siblings in order of first appearance, or say what is wrong."""
    parents: dict[str, dict[str, int]] = {}
    leaves: set[str] = set()
    root = next(iter(paths.values()))[-1]
    for line, path in paths.items():
        place = f"{where}, line {line}"
        _check_path(path, place)
        if path[0] in leaves:
            raise InputError(f"{place}: the leaf {path[0]!r} is listed twice")
        if path[-1] != root:
            raise InputError(f"{place}: two roots, {root!r} and {path[-1]!r}; expected one")
        leaves.add(path[0])
        # top down, so that an inner node counts as seen before the nodes below it
        for node, parent in reversed(list(pairwise(path))):
            parents.setdefault(node, {}).setdefault(parent, line)
    _check_graph(parents, leaves, where)
    return {node: next(iter(above)) for node, above in parents.items()}


def _check_graph(parents: dict[str, dict[str, int]], leaves: set[str], where: str) -> None:
    """Refuse cycles, nodes with two parents, and leaves that are parents; parents hold the line that named them."""
    for node, above in parents.items():
        if len(above) > 1:
            first, second = list(above)[:2]
            place = f"{where}, line {above[second]}"
            if _reaches(parents, node, node):
                raise InputError(f"{place}: {node!r} is its own ancestor (a cycle)")
            raise InputError(f"{place}: {node!r} has two parents, {first!r} and {second!r}")
    for leaf in sorted(leaves & {parent for above in parents.values() for parent in above}):
        raise InputError(f"{where}: {leaf!r} is a leaf and also the parent of other values")


def _check_path(path: Sequence[str], place: str) -> None:
    if len(path) < 2:
        raise InputError(f"{place}: expected leaf;parent;…;{ROOT}; got only {path[0]!r}")
    if "" in path:
        raise InputError(f"{place}: the path of {path[0]!r} has an empty level")
    for node in path:
        if path.count(node) > 1:
            raise InputError(f"{place}: {node!r} is its own ancestor (a cycle)")


def _reaches(parents: dict[str, dict[str, int]], start: str, goal: str) -> bool:
    """Tell whether goal is above start."""
    seen: set[str] = set()
    above = list(parents.get(start, ()))
    while above:
        node = above.pop()
        if node == goal:
            return True
        if node not in seen:
            seen.add(node)
            above += parents.get(node, ())
    return False


def _number(children: Mapping[Any, Sequence[Any]], root: Any, name_of: Callable[[Any], str] = str) -> Hierarchy:
    """Give nodes breadth-first numbers and leaves depth-first codes."""
    import numpy as np

    nodes, parent = [root], [-1]
    first: list[int] = []
    count: list[int] = []
    for node, key in enumerate(nodes):  # nodes grows while it is walked: that is the breadth-first queue
        below = children.get(key, [])
        first.append(len(nodes))
        count.append(len(below))
        nodes += below
        parent += [node] * len(below)
    names = [name_of(node) for node in nodes]
    low, high = np.zeros(len(names), np.int32), np.zeros(len(names), np.int32)
    leaves: list[str] = []
    stack = [0]
    while stack:
        node = stack.pop()
        if count[node] == 0:
            low[node] = high[node] = len(leaves)
            leaves.append(names[node])
        else:
            stack.extend(range(first[node] + count[node] - 1, first[node] - 1, -1))
    for node in range(len(names) - 1, -1, -1):
        if count[node]:
            low[node] = low[first[node]]
            high[node] = high[first[node] + count[node] - 1]
    parents, firsts, counts = (np.asarray(column, np.int32) for column in (parent, first, count))
    return Hierarchy(tuple(leaves), tuple(names), parents, firsts, counts, low, high)


def missing_leaf(hierarchy: Hierarchy, labels: Iterable[str]) -> str | None:
    """Return the first label that the hierarchy has no leaf for."""
    known = set(hierarchy.leaves)
    return next((label for label in labels if label not in known), None)
