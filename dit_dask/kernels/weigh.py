"""Which codes occur among a few records of a table, how often, and on which side of a split they fall.

rows[m, d + 2] holds a record's codes, then its secret, then its weight; a part is a list of row numbers.
Scratch that several functions share: tally[levels], zero before and after; values[2, levels]; and counts[parts, n + EXTRA],
zero before and after, with a row for each part of a split: the weight of each secret, the size, the largest of these weights,
and more that kernels.predicates derives from them.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import inner, long

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FEW = 40
EXTRA = 11  # columns of a row of counts behind those of the secrets


@inner
def weigh(rows: Ints, part: Ints, attribute: int, tally: Longs, values: Longs) -> int:
    """Write the part's distinct codes in ascending order to values[0] and their weights to values[1]; return how many."""
    if len(part) <= FEW:
        return weigh_few(rows, part, attribute, values)
    weight = rows.shape[1] - 1
    found = long(0)
    low = high = long(rows[part[0], attribute])
    for record in part:
        code = long(rows[record, attribute])
        if tally[code] == 0:
            values[0, found] = code
            found += 1
            low, high = min(low, code), max(high, code)
        tally[code] += rows[record, weight]
    if high - low < 8 * found:
        found = long(0)
        for code in range(low, high + 1):
            if tally[code] > 0:
                values[0, found] = code
                found += 1
    else:
        sort(values, found)
    for place in range(found):
        values[1, place] = tally[values[0, place]]
        tally[values[0, place]] = 0
    return found


@inner
def weigh_few(rows: Ints, part: Ints, attribute: int, values: Longs) -> int:
    """Do the same by insertion, which does not touch the memory of the large tally."""
    weight = rows.shape[1] - 1
    found = long(0)
    for record in part:
        code = rows[record, attribute]
        place = found
        while place > 0 and values[0, place - 1] >= code:
            place -= 1
        if place == found or values[0, place] != code:
            for later in range(found, place, -1):
                values[0, later], values[1, later] = values[0, later - 1], values[1, later - 1]
            values[0, place], values[1, place] = code, 0
            found += 1
        values[1, place] += rows[record, weight]
    return found


@inner
def sort(values: Longs, count: int) -> None:
    """Sort values[0, :count] a few bits at a time; values[1] is overwritten."""
    low = high = values[0, 0]
    for place in range(count):
        low, high = min(low, values[0, place]), max(high, values[0, place])
    bits = 1
    while (high - low) >> bits > 0:
        bits += 1
    passes = (bits + 9) // 10
    width = (bits + passes - 1) // passes
    ends = np.empty(1 << width, np.int64)
    for turn in range(passes):
        source, shift = turn % 2, turn * width
        for digit in range(len(ends)):
            ends[digit] = 0
        for place in range(count):
            ends[((values[source, place] - low) >> shift) & (len(ends) - 1)] += 1
        total = 0
        for digit in range(len(ends)):
            total, ends[digit] = total + ends[digit], total
        for place in range(count):
            digit = ((values[source, place] - low) >> shift) & (len(ends) - 1)
            values[1 - source, ends[digit]] = values[source, place]
            ends[digit] += 1
    for place in range(count if passes % 2 else 0):
        values[0, place] = values[1, place]


@inner
def side(code: int, split: int, turns: Ints, turn: int) -> int:
    """Return the part of a split that has the code: turns[turn + code] down a hierarchy; turn is -1 for a numeric split."""
    if turn >= 0:
        return turns[turn + code]
    return 1 if code > split else 0


@inner
def count_parts(
    rows: Ints, part: Ints, attribute: int, split: int, turns: Ints, turn: int, diverse: bool, counts: Longs
) -> None:
    """Fill the rows of counts of the parts that have records: the size only, unless diverse."""
    secret, weight, secrets = rows.shape[1] - 2, rows.shape[1] - 1, counts.shape[1] - EXTRA
    for record in part:
        index = side(rows[record, attribute], split, turns, turn)
        counts[index, secrets] += rows[record, weight]
        if diverse:
            held = counts[index, rows[record, secret]] + rows[record, weight]
            counts[index, rows[record, secret]] = held
            counts[index, secrets + 1] = max(held, counts[index, secrets + 1])


@inner
def clear_parts(rows: Ints, part: Ints, attribute: int, turns: Ints, turn: int, counts: Longs) -> None:
    """Set the rows that count_parts filled to zero."""
    secrets = counts.shape[1] - EXTRA
    if turn < 0:
        for column in range(secrets + EXTRA):
            counts[0, column] = counts[1, column] = 0
        return
    for record in part:
        count = counts[turns[turn + rows[record, attribute]]]
        if count[secrets] > 0:
            for column in range(secrets + EXTRA):
                count[column] = 0


@inner
def arrange(
    rows: Ints, part: Ints, attribute: int, split: int, turns: Ints, turn: int, parts: int, ends: Longs, moved: Ints
) -> None:
    """Reorder the part by side, stably; ends[parts] becomes the position after each side's last record."""
    for index in range(parts):
        ends[index] = 0
    for record in part:
        ends[side(rows[record, attribute], split, turns, turn)] += 1
    total = 0
    for index in range(parts):
        total, ends[index] = total + ends[index], total
    for record in part:
        index = side(rows[record, attribute], split, turns, turn)
        moved[ends[index]] = record
        ends[index] += 1
    for place in range(len(part)):  # a slice assignment would take seconds to compile
        part[place] = moved[place]
