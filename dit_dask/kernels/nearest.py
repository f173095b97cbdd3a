"""Exact nearest and second nearest rows of mixed data, by a tree whose bounds never exclude a nearest row.

A row is d numbers. A column of kind CATEGORY holds codes: equal ones are 0 apart, others `scale`. A column of kind CAPPED holds
values that are min(1, |x - y| / scale) apart, one of kind SQUARED (|x - y| / scale)²; there a missing value (NaN) is 0 from a
missing one and 1 from any other. The distance of two rows is the sum over the columns, from first to last, in that order.

Every term of a bound is at most the term that it stands for, and rounding is monotone: so a bound, added up in the same order,
is never above the rounded distance of any row below the node, and what is cut off could not have changed the result.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled, inner
from dit_dask.kernels.weigh import Floats, Longs

CATEGORY, CAPPED, SQUARED = 0, 1, 2
LEAF = 16
ROUNDS = 8
HAS_VALUE, HAS_MISSING = 1, 2
Masks = NDArray[np.uint64]


@inner
def term(difference: float, kind: int, scale: float) -> float:
    """Return how far apart two values of a numeric column are."""
    share = difference / scale
    return min(1.0, share) if kind == CAPPED else share * share


@inner
def apart(x: float, y: float, kind: int, scale: float) -> float:
    """Return the part of a distance that one column gives."""
    if x == y:
        return 0.0
    if kind == CATEGORY:
        return scale
    if np.isnan(x) or np.isnan(y):
        return 0.0 if np.isnan(x) and np.isnan(y) else 1.0
    return term(abs(x - y), kind, scale)


@inner
def bound(query: Floats, low: Floats, high: Floats, mask: Masks, kinds: Longs, scales: Floats, limit: float) -> float:
    """Return a lower bound on the distance of a query to every row below a node; any value >= limit is sufficient."""
    total = 0.0
    for column in range(len(query)):
        x, kind, scale = query[column], kinds[column], scales[column]
        if kind == CATEGORY:
            if (mask[column] >> np.uint64(int(x) & 63)) & np.uint64(1) == 0:
                total += scale
        elif np.isnan(x):
            if mask[column] & np.uint64(HAS_MISSING) == 0:
                total += 1.0
        else:
            gap = max(low[column] - x, x - high[column])
            if gap > 0.0:
                least = term(gap, kind, scale)
                total += min(1.0, least) if mask[column] & np.uint64(HAS_MISSING) else least
        if total >= limit:
            return total
    return total


@compiled
def search(queries: Floats, rows: Floats, copies: Longs, kinds: Longs, scales: Floats, nodes: Longs, bounds: Floats,
           masks: Masks, first: Floats, second: Floats, place: Longs) -> int:
    """Lower first[q] and second[q] to the two smallest distances to rows, copies counted; place[q] is the row of the first.

    Return how many rows and nodes were compared.
    """
    effort = 0
    stack = np.empty(len(nodes), np.int64)
    distance = np.empty(len(nodes))
    width = rows.shape[1]
    for number in range(len(queries)):
        query = queries[number]
        best, runner = first[number], second[number]
        stack[0], distance[0] = 0, 0.0
        top = 1
        while top > 0:
            top -= 1
            if distance[top] >= runner:
                continue
            node = stack[top]
            while nodes[node, 2] >= 0:
                left = nodes[node, 2]
                effort += 2
                near = bound(query, bounds[0, left], bounds[1, left], masks[left], kinds, scales, runner)
                far = bound(query, bounds[0, left + 1], bounds[1, left + 1], masks[left + 1], kinds, scales, runner)
                node = left
                if far < near:
                    near, far, node = far, near, left + 1
                if far < runner:
                    stack[top], distance[top] = 2 * left + 1 - node, far
                    top += 1
                if near >= runner:
                    node = -1
                    break
            if node < 0:
                continue
            effort += nodes[node, 1] - nodes[node, 0]
            for row in range(nodes[node, 0], nodes[node, 1]):
                total = 0.0
                for column in range(width):
                    total += apart(query[column], rows[row, column], kinds[column], scales[column])
                    if total >= runner:
                        break
                if total < runner:
                    if total < best:
                        runner = total if copies[row] > 1 else best
                        best = total
                        place[number] = row
                    else:
                        runner = total
        first[number], second[number] = best, runner
    return effort


@compiled
def grow(rows: Floats, kinds: Longs, scales: Floats, levels: Longs) -> tuple[Longs, Longs, Floats, Masks]:
    """Split distinct rows into a tree; return the order of the rows, nodes (start, stop, left child or -1), bounds and masks.

    levels[c] is the number of codes of a category. The right child follows the left one.
    """
    count, width = rows.shape
    order = np.arange(count)
    most = 2 * max(1, count) + 1
    nodes = np.empty((most, 3), np.int64)
    bounds = np.empty((2, most, width))
    masks = np.zeros((most, width), np.uint64)
    tally = np.zeros(max(1, levels.max()), np.int64)
    goes_left = np.zeros(len(tally), np.bool_)
    spare = np.empty(count, np.int64)
    nodes[0] = 0, count, -1
    used, node = 1, 0
    while node < used:
        start, stop = nodes[node, 0], nodes[node, 1]
        part = order[start:stop]
        column = survey(rows, part, kinds, scales, tally, bounds[:, node], masks[node])
        if stop - start > LEAF and column >= 0:
            if kinds[column] == CATEGORY:
                halve_codes(rows, part, column, tally, goes_left)
                middle = partition_codes(rows, part, column, goes_left, spare)
            else:
                middle = partition_values(rows, part, column, spare)
            nodes[node, 2] = used
            nodes[used] = start, start + middle, -1
            nodes[used + 1] = start + middle, stop, -1
            used += 2
        node += 1
    return order, nodes[:used].copy(), bounds[:, :used].copy(), masks[:used].copy()


@inner
def survey(rows: Floats, part: Longs, kinds: Longs, scales: Floats, tally: Longs, bounds: Floats, mask: Masks) -> int:
    """Write a node's bounds and masks; return the column along which its rows are farthest apart, -1 if they are equal."""
    chosen, widest = -1, 0.0
    size = len(part)
    for column in range(rows.shape[1]):
        bits = np.uint64(0)
        if kinds[column] == CATEGORY:
            for row in part:
                code = int(rows[row, column])
                bits |= np.uint64(1) << np.uint64(code & 63)
                tally[code] += 1
            equal = 0.0
            for row in part:
                code = int(rows[row, column])
                equal += float(tally[code]) * float(tally[code])
                tally[code] = 0
            spread = (1.0 - equal / (float(size) * float(size))) * scales[column]
            bounds[0, column] = bounds[1, column] = 0.0
        else:
            low, high, total, known = np.inf, -np.inf, 0.0, 0
            for row in part:
                value = rows[row, column]
                if np.isnan(value):
                    bits |= np.uint64(HAS_MISSING)
                else:
                    bits |= np.uint64(HAS_VALUE)
                    low, high = min(low, value), max(high, value)
                    total += value
                    known += 1
            centre = total / known if known else 0.0
            spread = float(size - known) * known / (float(size) * size) * 2.0
            for row in part:
                value = rows[row, column]
                if not np.isnan(value):
                    spread += term(abs(value - centre), kinds[column], scales[column]) * 1.4 / size
            if not low < high and known in (0, size):
                spread = 0.0
            bounds[0, column], bounds[1, column] = low, high
        mask[column] = bits
        if spread > widest:
            chosen, widest = column, spread
    return chosen


@inner
def halve_codes(rows: Floats, part: Longs, column: int, tally: Longs, goes_left: NDArray[np.bool_]) -> None:
    """Choose codes that make up about half of a part, the most common ones first, and at least one code not chosen."""
    for row in part:
        tally[int(rows[row, column])] += 1
        goes_left[int(rows[row, column])] = False
    taken = 0
    for turn in range(ROUNDS):
        best, others = -1, len(part) - taken
        for row in part:
            code = int(rows[row, column])
            if not goes_left[code] and (best < 0 or tally[code] > tally[best]):
                best = code
        if 2 * taken >= len(part) or (turn > 0 and tally[best] == others):
            break
        goes_left[best] = True
        taken += tally[best]
    for row in part:  # where there are many codes all are rare, and any choice is good
        code = int(rows[row, column])
        if 2 * (taken + tally[code]) <= len(part) and not goes_left[code]:
            goes_left[code] = True
            taken += tally[code]
    for row in part:
        tally[int(rows[row, column])] = 0


@inner
def partition_codes(rows: Floats, part: Longs, column: int, goes_left: NDArray[np.bool_], spare: Longs) -> int:
    """Reorder a part so that the chosen codes come first; return how many rows these are."""
    left, right = 0, 0
    for row in part:
        if goes_left[int(rows[row, column])]:
            part[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    part[left:] = spare[:right]
    return left


@inner
def partition_values(rows: Floats, part: Longs, column: int, spare: Longs) -> int:
    """Reorder a part so that values up to about the median come first, missing ones last; return how many the first are."""
    values = np.empty(len(part))
    known = 0
    for row in part:
        if not np.isnan(rows[row, column]):
            values[known] = rows[row, column]
            known += 1
    middle, top = np.median(values[:known]), values[:known].max()
    inclusive = middle < top or values[:known].min() == top  # in the last case only missing values go right
    left, right = 0, 0
    for row in part:
        value = rows[row, column]
        if value < middle or (inclusive and value == middle):
            part[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    part[left:] = spare[:right]
    return left
