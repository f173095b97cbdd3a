"""A sanitised table: equivalence classes with what they publish and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """How a sanitizer split the records; one entry per node, node 0 is the root, children are neighbours.

    A child takes the codes branch_low..branch_high of its parent's `attribute` (-1: a class);
    it holds the classes first_class .. first_class + class_count - 1.
    """

    attribute: Codes
    first_child: Codes
    child_count: Codes
    branch_low: Codes
    branch_high: Codes
    first_class: Codes
    class_count: Codes

    def descend(self, target: Codes) -> slice:
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
class RangeShares:
    """The distinct published ranges of an attribute: value[c] of each class, low[v]..high[v] of each value."""

    value: Ints
    low: Ints
    high: Ints

    def inside(self, first: int, last: int) -> Floats:
        """Return (values,): the share of each value's codes that lies in first..last."""
        common = np.minimum(self.high, last) - np.maximum(self.low, first) + 1
        share: Floats = np.maximum(common, 0) / (self.high - self.low + 1)
        return share

    def ends(self) -> tuple[Ints, Ints]:
        """Return (values,) each: the lowest and the highest code."""
        return self.low, self.high


@dataclass(frozen=True, eq=False)
class SetShares:
    """The distinct published sets of an attribute: value[c] of each class, reached[v, code] codes of a value below a code."""

    value: Ints
    reached: Ints

    def inside(self, first: int, last: int) -> Floats:
        """Return (values,): the share of each value's codes that lies in first..last; an empty value has none anywhere."""
        return (self.reached[:, last + 1] - self.reached[:, first]) / np.maximum(self.reached[:, -1], 1)

    def ends(self) -> tuple[Ints, Ints]:
        """Return (values,) each: the lowest and the highest code; of an empty value both are 0."""
        low = (self.reached[:, 1:] > 0).argmax(axis=1)
        high = (self.reached == self.reached[:, -1:]).argmax(axis=1) - 1
        return low, np.maximum(high, 0)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Published values that are ranges of codes: low[c, d]..high[c, d]."""

    low: Codes
    high: Codes

    def covers(self, target: Codes) -> Bools:
        """Return (classes, d)."""
        return (self.low <= target) & (target <= self.high)

    def coverage(self, attribute: int, levels: int) -> tuple[Ints, Bools]:
        """Return which distinct value of an attribute each class publishes, and (values, levels) what those cover."""
        ends, value = np.unique(self.low[:, attribute].astype(np.int64) * levels + self.high[:, attribute], return_inverse=True)
        code = np.arange(levels)
        return value, (ends[:, None] // levels <= code) & (code <= ends[:, None] % levels)

    def shares(self, attribute: int, levels: int) -> RangeShares:
        """How the codes of an attribute's distinct values are spread, without a table of values and levels."""
        ends, value = np.unique(self.low[:, attribute].astype(np.int64) * levels + self.high[:, attribute], return_inverse=True)
        return RangeShares(value, ends // levels, ends % levels)

    def ends(self, attribute: int) -> tuple[Codes, Codes, Bools]:
        """Return (classes,) each: the lowest and the highest code of an attribute, and whether all between are covered."""
        return self.low[:, attribute], self.high[:, attribute], np.ones(len(self.low), bool)

    def widths(self, classes: Ints) -> Ints:
        """Return (m, d): how many codes the values of some classes cover."""
        return self.high[classes].astype(np.int64) - self.low[classes] + 1

    def keys(self) -> Codes:
        """Return (classes, …): equal rows publish the same values."""
        return np.concatenate([self.low, self.high], axis=1)

    def only(self, kept: Bools | Ints) -> Ranges:
        """The values of some classes."""
        return Ranges(self.low[kept], self.high[kept])


@dataclass(frozen=True, eq=False)
class Sets:
    """Published values that are any sets of codes: class c has row value[c, d] of sets[d][values, levels]; rows differ."""

    value: Codes
    sets: tuple[Bools, ...]

    def covers(self, target: Codes) -> Bools:
        """Return (classes, d)."""
        columns = zip(self.sets, target, self.value.T, strict=True)
        return np.column_stack([sets[:, code][value] for sets, code, value in columns])

    def coverage(self, attribute: int, _levels: int) -> tuple[Ints, Bools]:
        """Return which distinct value of an attribute each class publishes, and (values, levels) what those cover."""
        return self.value[:, attribute].astype(np.int64), self.sets[attribute]

    def shares(self, attribute: int, levels: int) -> SetShares:
        """How the codes of an attribute's distinct values are spread."""
        sets = self.sets[attribute]
        reached = np.zeros((len(sets), levels + 1), np.int64)
        np.cumsum(sets, axis=1, out=reached[:, 1:])
        return SetShares(self.value[:, attribute].astype(np.int64), reached)

    def ends(self, attribute: int) -> tuple[Codes, Codes, Bools]:
        """Return (classes,) each: the lowest and the highest code of an attribute, and whether all between are covered."""
        sets, value = self.sets[attribute], self.value[:, attribute]
        low = sets.argmax(axis=1)
        high = sets.shape[1] - 1 - sets[:, ::-1].argmax(axis=1)
        is_range = np.count_nonzero(sets, axis=1) == high - low + 1
        return low.astype(np.int32)[value], high.astype(np.int32)[value], is_range[value]

    def widths(self, classes: Ints) -> Ints:
        """Return (m, d): how many codes the values of some classes cover."""
        columns = zip(self.sets, self.value[classes].T, strict=True)
        return np.column_stack([np.count_nonzero(sets[value], axis=1) for sets, value in columns])

    def keys(self) -> Codes:
        """Return (classes, d): equal rows publish the same values."""
        return self.value

    def only(self, kept: Bools | Ints) -> Sets:
        """The values of some classes."""
        return Sets(self.value[kept], self.sets)


@dataclass(frozen=True, eq=False)
class Difference:
    """What a removal changes: the classes of `base`, a release of the whole table, that are gone, and the new ones."""

    base: Release
    gone: Ints
    new: Ints


@dataclass(frozen=True, eq=False)
class Release:
    """Classes with the values they publish, holding counts[c, secret] records; the difference where a sanitizer knows it."""

    schema: Schema
    published: Ranges | Sets
    counts: Ints
    tree: Tree | None = None
    difference: Difference | None = None

    def covers(self, target: Codes) -> Bools:
        """Return (classes, d): where the published value covers the target's value."""
        return self.published.covers(target)

    @property
    def suppressed(self) -> Bools:
        """Return (classes,): which publish the whole domain of every attribute, beside others that do not."""
        levels = [len(attribute.levels) for attribute in self.schema.quasi_identifiers]
        whole = (self.published.widths(np.arange(len(self.counts))) == levels).all(axis=1)
        return np.zeros_like(whole) if whole.all() else whole

    def only(self, kept: Bools | Ints) -> Release:
        """Some of the classes."""
        return Release(self.schema, self.published.only(kept), self.counts[kept])

    def without_row(self, place: int, secret: int) -> Release:
        """Take one row with this secret out of a class; a class that is empty then is gone, and so is the tree."""
        counts = self.counts.copy()
        counts[place, secret] -= 1
        if counts[place].any():
            return Release(self.schema, self.published, counts)
        kept = np.arange(len(counts)) != place
        return Release(self.schema, self.published.only(kept), counts[kept])
