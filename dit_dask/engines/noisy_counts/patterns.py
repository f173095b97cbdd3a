"""What noisy counts make of a record: the counts of its tuple, in which order does not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Ints


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct (count of the record's own cell, multiset of all counts); a distance depends on nothing else.

    counts[m, k] descend, zeros at the end, and every further one of the `cells` values of the secret counts 0;
    own[m] is the last place that holds the record's count, so that one less there still descends.
    """

    cells: int
    counts: Ints
    own: Ints

    def __len__(self) -> int:
        return len(self.own)

    def take(self, chosen: Ints) -> Patterns:
        """Some of the patterns, in the given order."""
        return Patterns(self.cells, self.counts[chosen], self.own[chosen])

    def without(self) -> Ints:
        """Return (m, k): the counts after the record is gone; a tuple that only it had is left with zeros."""
        counts = self.counts.copy()
        counts[np.arange(len(self)), self.own] -= 1
        return counts


@dataclass(frozen=True, eq=False)
class Counted:
    """A table as patterns: of[r] is the pattern of each distinct record; the rest is what is predicted for it."""

    patterns: Patterns
    of: Ints
    predicted: Codes
    predicted_without: Codes


def count(table: Table) -> Counted:
    """Count every tuple's values of the secret and find the distinct patterns, fewest rows first."""
    new = np.ones(table.distinct, bool)
    new[1:] = (table.codes[1:] != table.codes[:-1]).any(axis=1)  # distinct records are in lexicographic order
    tuple_of, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    order = np.lexsort((table.secret, -table.weights, tuple_of))  # within a tuple: largest first, ties by value
    weights = table.weights[order]
    place = np.arange(table.distinct) - starts[tuple_of]
    counts = np.zeros((len(starts), int(place.max()) + 1), np.int64)
    counts[tuple_of, place] = weights
    vectors, vector_of = _distinct(np.column_stack([counts.sum(axis=1), counts]))
    own = np.empty(table.distinct, np.int64)
    own[order] = _last_equal(new | (np.diff(weights, prepend=0) != 0)) - starts[tuple_of]
    chosen, of = _distinct(np.column_stack([vector_of[tuple_of], own]))
    found = counts[vectors[vector_of[tuple_of[chosen]]]]
    patterns = Patterns(len(table.schema.sensitive.levels), found, own[chosen])
    return Counted(patterns, of, table.secret[order[starts]][tuple_of], _top_without(table, order, starts, tuple_of))


def _last_equal(first: Bools) -> Ints:
    """Return for each position the end of its run; `first` marks where runs begin."""
    ends = np.append(np.flatnonzero(first)[1:], len(first)) - 1
    found: Ints = ends[np.cumsum(first) - 1]
    return found


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each distinct key, in ascending order of keys, and the key of each row."""
    order = np.lexsort(keys.T[::-1])
    ahead = np.ones(len(keys), bool)
    ahead[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    of = np.empty(len(keys), np.int64)
    of[order] = np.cumsum(ahead) - 1
    return order[ahead], of


def _top_without(table: Table, order: Ints, starts: Ints, tuple_of: Ints) -> Codes:
    """Return (r,): the value with the largest count once the record is gone; ties go to the first value.

    Only the tuple's top record can change it: then the runner-up may win, or be tied and come first.
    """
    first = order[starts]
    single = np.diff(np.append(starts, table.distinct)) == 1
    second = order[np.where(single, starts, starts + 1)]
    left, rival = table.weights[first] - 1, np.where(single, 0, table.weights[second])
    beaten = (rival > left) | ((rival == left) & (table.secret[second] < table.secret[first]) & ~single)
    after = np.where(beaten, table.secret[second], table.secret[first])
    after = np.where(single & (left == 0), 0, after)  # nothing is left: all values are tied
    is_top = first[tuple_of] == np.arange(table.distinct)
    return np.where(is_top, after[tuple_of], table.secret[first][tuple_of]).astype(np.int32)
