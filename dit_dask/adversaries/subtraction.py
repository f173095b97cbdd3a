"""What published tables imply by subtraction: the rest of a cell beyond cells of another table, in chains, and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.published_tables import OUTSIDE, Grouping, KnownCounts, KnownSums

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

NONE = -1
MOST_RESTS = 128  # subtractions; what longer chains would add is not looked for
MOST_PASSES = 10  # in which bounds tighten each other


@dataclass(frozen=True, eq=False)
class Rest:
    """Table `outer` beyond the cells of table `inner` that lie inside one of its cells: inner cell cells[i] in outer of[i].

    Tables are numbered, derived ones after the published; `target` is the number of what is left, or NONE if nothing is.
    has_rest[outer cells]: something is left of the cell.
    """

    outer: int
    inner: int
    grouping: Grouping
    cells: Ints
    of: Ints
    has_rest: Bools
    target: int


@lru_cache(maxsize=64)
def list_rests(groupings: tuple[Grouping, ...]) -> tuple[Rest, ...]:
    """Subtract tables from each other and from what is left, until nothing new is found."""
    tables, found = list(groupings), list[Rest]()
    numbers = {_key(grouping): number for number, grouping in reversed(list(enumerate(tables)))}
    pairs = [(outer, inner) for outer in range(len(tables)) for inner in range(len(tables)) if outer != inner]
    while pairs and len(found) < MOST_RESTS:
        outer, inner = pairs.pop(0)
        nested = _subtract(tables[outer], tables[inner])
        if nested is None:
            continue
        grouping, cells, of = nested
        left = grouping.cell_of[grouping.cell_of != OUTSIDE]
        target = numbers.setdefault(_key(grouping), len(tables)) if len(left) else NONE
        found.append(Rest(outer, inner, grouping, cells, of, np.bincount(left, minlength=grouping.cells) > 0, target))
        if target == len(tables):
            pairs += [pair for other in range(len(tables)) for pair in ((target, other), (other, target))]
            tables.append(grouping)
    return tuple(found)


def _key(grouping: Grouping) -> tuple[bool, int, bytes]:
    return grouping.by_secret, grouping.cells, grouping.cell_of.astype(np.int64).tobytes()


def _subtract(first: Grouping, second: Grouping) -> tuple[Grouping, Ints, Ints] | None:
    """Return what is left of the first table's cells beyond the second's that lie inside them, and those pairs of cells."""
    if first.by_secret != second.by_secret:
        return None
    inside = second.cell_of != OUTSIDE
    outer = np.full(second.cells, -2)
    outer[second.cell_of[inside]] = first.cell_of[inside]
    is_whole = np.bincount(second.cell_of[inside], first.cell_of[inside] != outer[second.cell_of[inside]], second.cells) == 0
    inner = np.flatnonzero(is_whole & (outer >= 0))
    if not len(inner):
        return None
    is_left = first.cell_of != OUTSIDE
    is_left[inside] &= ~np.isin(second.cell_of[inside], inner)
    has_inner = np.isin(first.cell_of, outer[inner])
    left = np.where(is_left & has_inner, first.cell_of, OUTSIDE)
    return Grouping(left, first.cells, first.by_secret), inner, outer[inner]


def subtract_counts(groupings: tuple[Grouping, ...], known: Sequence[KnownCounts]) -> list[tuple[Grouping, KnownCounts]]:
    """Return the published tables and those derived, with the bounds that all of them imply for each other.

    Numbers with noise are certain of nothing, so they are returned as they are.
    """
    if any(one.rate is not None for one in known):
        return list(zip(groupings, known, strict=True))
    rests, tables = list_rests(groupings), list(groupings)
    low, high, guesses = ([getattr(one, side).copy() for one in known] for side in ("low", "high", "guess"))
    for _ in range(MOST_PASSES):
        before = [bound.copy() for bound in (*low, *high)]
        for rest in rests:
            least, most = _bound_rest(rest, low, high)
            if rest.target == len(low):
                tables.append(rest.grouping)
                low.append(least)
                high.append(most)
                guesses.append(least)
            elif rest.target != NONE:
                np.maximum(low[rest.target], least, out=low[rest.target])
                np.minimum(high[rest.target], most, out=high[rest.target])
        if len(before) == 2 * len(low) and all(map(np.array_equal, before, (*low, *high))):
            break
    bounded = [KnownCounts(*sides) for sides in zip(low, high, guesses, strict=True)]
    return list(zip(tables, bounded, strict=True))


def _bound_rest(rest: Rest, low: list[Floats], high: list[Floats]) -> tuple[Floats, Floats]:
    """Tighten the bounds of a cell and of the cells inside it by each other, in place; return those of what is left."""
    outer_low, outer_high, inner_low, inner_high = low[rest.outer], high[rest.outer], low[rest.inner], high[rest.inner]
    least, most = np.zeros_like(outer_low), np.zeros_like(outer_high)
    np.add.at(least, rest.of, inner_low[rest.cells])
    np.add.at(most, rest.of, inner_high[rest.cells])
    np.maximum(outer_low, least, out=outer_low)
    is_whole = np.zeros((len(outer_low), 1), bool)
    is_whole[rest.of] = ~rest.has_rest[rest.of, None]
    np.minimum(outer_high, np.where(is_whole, most, np.inf), out=outer_high)
    with np.errstate(invalid="ignore"):  # an unknown number minus an unknown number
        others_most = most[rest.of] - inner_high[rest.cells]
        lowest = np.where(is_whole[rest.of] & np.isfinite(others_most), outer_low[rest.of] - others_most, 0.0)
        highest = outer_high[rest.of] - (least[rest.of] - inner_low[rest.cells])
        inner_low[rest.cells] = np.maximum(inner_low[rest.cells], lowest)
        inner_high[rest.cells] = np.minimum(inner_high[rest.cells], np.maximum(highest, inner_low[rest.cells]))
        remaining = np.where(np.isinf(most), 0.0, np.maximum(outer_low - most, 0.0))
    return remaining, np.maximum(outer_high - least, 0.0)


def subtract_sums(groupings: tuple[Grouping, ...], sums: Sequence[KnownSums]) -> list[tuple[Grouping, KnownSums]]:
    """Return the published tables of sums and those derived, of which cells are known if all that they are made of is shown."""
    tables = list(zip(groupings, sums, strict=True))
    for _ in range(MOST_PASSES):
        shown = sum(int(one.is_shown.sum()) for _, one in tables)
        for rest in list_rests(groupings):
            left = _sum_rest(rest, tables[rest.outer][1], tables[rest.inner][1])
            if rest.target == len(tables):
                tables.append((rest.grouping, left))
            elif rest.target != NONE:
                tables[rest.target] = rest.grouping, _either(tables[rest.target][1], left)
        if shown == sum(int(one.is_shown.sum()) for _, one in tables):
            break
    return tables


def _sum_rest(rest: Rest, outer: KnownSums, inner: KnownSums) -> KnownSums:
    persons, is_shown, low, high = outer.persons.copy(), outer.is_shown.copy(), outer.low.copy(), outer.high.copy()
    np.subtract.at(persons, rest.of, inner.persons[rest.cells])
    np.subtract.at(low, rest.of, inner.high[rest.cells])
    np.subtract.at(high, rest.of, inner.low[rest.cells])
    np.logical_and.at(is_shown, rest.of, inner.is_shown[rest.cells])
    return KnownSums(persons, is_shown, low, high)


def _either(first: KnownSums, second: KnownSums) -> KnownSums:
    """What two ways to know the same cells say: the narrower bounds where both do."""
    both = first.is_shown & second.is_shown
    low = np.where(both, np.maximum(first.low, second.low), np.where(first.is_shown, first.low, second.low))
    high = np.where(both, np.minimum(first.high, second.high), np.where(first.is_shown, first.high, second.high))
    persons = np.where(first.is_shown, first.persons, second.persons)
    return KnownSums(persons, first.is_shown | second.is_shown, low, high)
