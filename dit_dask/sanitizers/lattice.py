"""The lattice of full-domain generalisation: one level of its hierarchy for each attribute, and what records lose by it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.schema import Attribute, Schema
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints
    from dit_dask.values.hierarchy import Hierarchy

LOSS_UNIT = 2**30  # losses are whole numbers of this part of a cell, so that sums are equal in any order
MOST_NODES = 100_000
Bands = tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, eq=False)
class Level:
    """One level of an attribute: group[code], and of each group its code range and the loss of a cell."""

    group: Ints
    low: Codes
    high: Codes
    loss: Ints


@dataclass(frozen=True, eq=False)
class Lattice:
    """The levels of each attribute, from its values themselves up to its whole domain; nodes[v, d] has all combinations.

    Nodes are in the order that ties follow: fewest steps of generalisation, then the smaller level of the first attribute.
    """

    levels: tuple[tuple[Level, ...], ...]

    @cached_property
    def nodes(self) -> Ints:
        """Return (v, d)."""
        every = np.indices([len(levels) for levels in self.levels]).reshape(len(self.levels), -1).T
        return every[np.argsort(every.sum(axis=1), kind="stable")]

    def group(self, table: Table, node: Ints) -> Ints:
        """Return (records,): equal numbers are equal generalised tuples, in lexicographic order of their codes."""
        key, size = np.zeros(table.distinct, np.int64), 1
        for attribute, level in enumerate(node):
            chosen = self.levels[attribute][level]
            if size * len(chosen.low) > 2**62:
                key = np.unique(key, return_inverse=True)[1]
                size = int(key.max()) + 1
            key = key * len(chosen.low) + chosen.group[table.codes[:, attribute]]
            size *= len(chosen.low)
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    def least_losses(self, table: Table) -> tuple[Ints, Ints]:
        """Return (v,) each: the loss of a table at every node if nothing is suppressed, and the largest of one record."""
        total, largest = np.zeros(len(self.nodes), np.int64), np.zeros(len(self.nodes), np.int64)
        for attribute, levels in enumerate(self.levels):
            held = [level.loss[level.group[table.codes[:, attribute]]] for level in levels]
            total += np.array([(loss * table.weights).sum() for loss in held])[self.nodes[:, attribute]]
            largest += np.array([loss.max(initial=0) for loss in held])[self.nodes[:, attribute]]
        return total, largest


@lru_cache(maxsize=8)
def build_lattice(schema: Schema, bands: Bands) -> Lattice:
    """Build the levels of all attributes: those of hierarchies, or intervals of the widths in `bands`."""
    widths = dict(bands)
    return Lattice(tuple(_levels_of(attribute, widths) for attribute in schema.quasi_identifiers))


def count_nodes(schema: Schema, bands: Bands) -> tuple[list[int], int]:
    """Return the number of levels of each attribute, and of nodes."""
    widths = dict(bands)
    heights = [
        len(widths[one.name]) + 2 if one.hierarchy is None else int(_depths(one.hierarchy).max()) + 1
        for one in schema.quasi_identifiers
    ]
    return heights, math.prod(heights)


def _levels_of(attribute: Attribute, widths: Mapping[str, Sequence[float]]) -> tuple[Level, ...]:
    if attribute.hierarchy is not None:
        return _levels_of_hierarchy(attribute.hierarchy)
    values = attribute.values
    if values is None:
        raise TypeError("an attribute without hierarchy has values")
    everything = np.zeros(len(values), np.int64)
    exact = [Fraction(repr(value)) for value in values.tolist()]  # a quotient of floats may fall below a whole number
    bands = [[value // Fraction(repr(width)) for value in exact] for width in widths[attribute.name]]
    groups = [np.arange(len(values)), *(np.unique(band, return_inverse=True)[1] for band in bands), everything]
    return tuple(_number_level(group, values) for group in groups)


def _number_level(group: Ints, values: Floats) -> Level:
    """Number ascending groups of codes; a cell loses the width of what is published, in parts of the range."""
    first, numbered = np.unique(group, return_index=True, return_inverse=True)[1:]
    last = np.append(first[1:], len(group)) - 1
    span = values[-1] - values[0]
    share = (values[last] - values[first]) / span if span > 0 else np.zeros(len(first))
    return Level(numbered, first.astype(np.int32), last.astype(np.int32), np.rint(share * LOSS_UNIT).astype(np.int64))


def _depths(hierarchy: Hierarchy) -> Ints:
    depth = np.zeros(len(hierarchy.parent), np.int64)
    for node, parent in enumerate(hierarchy.parent.tolist()):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
    return depth


def _levels_of_hierarchy(hierarchy: Hierarchy) -> tuple[Level, ...]:
    """At level g a value is its ancestor, or itself, that is at most as deep as the deepest leaf less g."""
    depth, leaves = _depths(hierarchy), len(hierarchy.leaves)
    node = np.empty(leaves, np.int64)
    is_leaf = hierarchy.child_count == 0
    node[hierarchy.low[is_leaf]] = np.flatnonzero(is_leaf)
    levels = []
    for deepest in range(int(depth.max()), -1, -1):
        node = np.where(depth[node] > deepest, hierarchy.parent[node], node)
        starts = np.flatnonzero(np.diff(node, prepend=-1))
        chosen = node[starts]
        share = np.where(is_leaf[chosen], 0.0, (hierarchy.high[chosen] - hierarchy.low[chosen] + 1) / leaves)
        group = np.searchsorted(starts, np.arange(leaves), side="right") - 1
        loss = np.rint(share * LOSS_UNIT).astype(np.int64)
        levels.append(Level(group, hierarchy.low[chosen], hierarchy.high[chosen], loss))
    return tuple(levels)
