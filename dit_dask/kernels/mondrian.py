"""Mondrian's top-down partition of weighted distinct records, by the rules of the published programs.

Records are codes[m, d], secret[m] and weights[m]. A node of the tree is a range `part` of one permutation
of them. Its state[2 d] holds, for each attribute, the current code bounds (low, high) of a numeric one or
(hierarchy node, 0) of a categorical one; its widths[d] are the normalised widths of that state.

The attributes come as flat arrays, hierarchies one after the other:
numbers: values of all numeric attributes; attributes[d, 3]: first position in `numbers` or -1 if categorical,
root node, number of levels; spans[d]: ranges of the numeric ones; tree[nodes, 4]: first leaf code, last leaf code,
first child, child count; node_widths[nodes].

A rule is (need, diverse, strict): `need` records a part or, if diverse, `need`-diversity; strict checks both sides.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Rule = tuple[int, bool, bool]

LAST = 2147483647
compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def count_values(codes: Ints, weights: Longs, part: Longs, attribute: int, tally: Longs, present: Ints) -> int:
    """Weigh each value of the part into tally (all zero before) and list the values, sorted, in present; return how many."""
    found = 0
    low, high = LAST, -1
    for record in part:
        code = codes[record, attribute]
        if tally[code] == 0:
            present[found] = code
            found += 1
            low, high = min(low, code), max(high, code)
        tally[code] += weights[record]
    if high - low < 8 * found:
        found = 0
        for code in range(low, high + 1):
            if tally[code] > 0:
                present[found] = code
                found += 1
    else:
        ordered = np.sort(present[:found])
        for index in range(found):  # a slice assignment would take seconds to compile
            present[index] = ordered[index]
    return found


@compiled
def extremes(codes: Ints, part: Longs, attribute: int) -> tuple[int, int]:
    """Return the lowest and highest code of the part."""
    low, high = LAST, -1
    for record in part:
        code = codes[record, attribute]
        low, high = min(low, code), max(high, code)
    return low, high


@compiled
def median(tally: Longs, present: Ints, size: int) -> int:
    """Return the position in present[found] of the split value, or -1 where it is the last one."""
    middle, last = size // 2, len(present) - 1
    position, reached = 0, tally[present[0]]
    while reached < middle:
        position += 1
        reached += tally[present[position]]
    return -1 if position == last else position


@compiled
def all_diverse(
    codes: Ints, secret: Ints, weights: Longs, part: Longs, attribute: int, bucket: Ints, need: int, counts: Longs
) -> bool:
    """Tell whether every non-empty part that bucket[code] makes is need-diverse; counts[parts, n] is zero before and after."""
    for record in part:
        counts[bucket[codes[record, attribute]], secret[record]] += weights[record]
    valid = True
    for index in range(counts.shape[0]):
        size, most = 0, 0
        for value in range(counts.shape[1]):
            size += counts[index, value]
            most = max(most, counts[index, value])
            counts[index, value] = 0
        # no value above size / l implies at least l values and at least l records
        valid = valid and most * need <= size
    return valid


@compiled
def try_numeric(
    codes: Ints, secret: Ints, weights: Longs, part: Longs, attribute: int, size: int, rule: Rule,
    tally: Longs, present: Ints, bucket: Ints, counts: Longs,
) -> tuple[int, int, int, int]:
    """Return (lowest, highest, split, following) codes of the part; split is -1 where none is valid, else bucket is set."""
    need, diverse, strict = rule
    if size // 2 < need:
        low, high = extremes(codes, part, attribute)
        return low, high, -1, -1
    found = count_values(codes, weights, part, attribute, tally, present)
    position = median(tally, present[:found], size)
    left = 0
    for index in range(found):
        bucket[present[index]] = index > position
        if index <= position:
            left += tally[present[index]]
        tally[present[index]] = 0
    valid = position >= 0
    if valid and diverse:
        valid = all_diverse(codes, secret, weights, part, attribute, bucket, need, counts[:2])
    elif valid and strict:
        valid = size - left >= need
    if valid:
        return present[0], present[found - 1], present[position], present[position + 1]
    return present[0], present[found - 1], -1, -1


@compiled
def try_categorical(
    codes: Ints, secret: Ints, weights: Longs, part: Longs, attribute: int, node: int, rule: Rule,
    tree: Ints, tally: Longs, bucket: Ints, counts: Longs,
) -> int:
    """Return how many children the hierarchy node has if all non-empty ones are valid, else 0; bucket is set."""
    need, diverse, _ = rule
    first, children = tree[node, 2], tree[node, 3]
    if children == 0:
        return 0
    for child in range(children):
        for code in range(tree[first + child, 0], tree[first + child, 1] + 1):
            bucket[code] = child
    if diverse:
        valid = all_diverse(codes, secret, weights, part, attribute, bucket, need, counts[:children])
        return children if valid else 0
    for record in part:
        tally[bucket[codes[record, attribute]]] += weights[record]
    valid = True
    for child in range(children):
        valid = valid and not 0 < tally[child] < need
        tally[child] = 0
    return children if valid else 0


@compiled
def arrange(codes: Ints, part: Longs, attribute: int, bucket: Ints, parts: int, moved: Longs) -> Longs:
    """Reorder the part by bucket, stably; return the (parts + 1,) positions where each bucket begins."""
    begins = np.zeros(parts + 1, np.int64)
    for record in part:
        begins[bucket[codes[record, attribute]] + 1] += 1
    for index in range(parts):
        begins[index + 1] += begins[index]
    cursor = begins[:-1].copy()
    for record in part:
        index = bucket[codes[record, attribute]]
        moved[cursor[index]] = record
        cursor[index] += 1
    for place in range(len(part)):
        part[place] = moved[place]
    return begins


@compiled
def choose_split(
    codes: Ints, secret: Ints, weights: Longs, part: Longs, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats,
    tree: Ints, state: Ints, widths: Floats, tally: Longs, present: Ints, bucket: Ints, counts: Longs,
) -> tuple[int, int, int, int]:
    """Return (attribute, parts, split, following) of the widest attribute that splits, or attribute -1; tighten the state."""
    allowed = np.ones(len(spans), np.bool_)
    size = 0
    for record in part:
        size += weights[record]
    while True:
        attribute = -1
        for candidate in range(len(spans)):  # ties go to the first
            if allowed[candidate] and (attribute < 0 or widths[candidate] > widths[attribute]):
                attribute = candidate
        if attribute < 0:
            return -1, 0, -1, -1
        first = attributes[attribute, 0]
        if first >= 0:
            low, high, split, following = try_numeric(
                codes, secret, weights, part, attribute, size, rule, tally, present, bucket, counts
            )
            state[2 * attribute], state[2 * attribute + 1] = low, high
            if spans[attribute] > 0.0:
                widths[attribute] = (numbers[first + high] - numbers[first + low]) / spans[attribute]
            if split >= 0:
                return attribute, 2, split, following
        else:
            parts = try_categorical(
                codes, secret, weights, part, attribute, state[2 * attribute], rule, tree, tally, bucket, counts
            )
            if parts > 0:
                return attribute, parts, -1, -1
        allowed[attribute] = False


@compiled
def set_root(attributes: Ints, spans: Floats, node_widths: Floats, state: Ints, widths: Floats) -> None:
    """Give the root the whole domain."""
    for attribute in range(len(spans)):
        if attributes[attribute, 0] >= 0:
            state[2 * attribute], state[2 * attribute + 1] = 0, attributes[attribute, 2] - 1
            widths[attribute] = 1.0 if spans[attribute] > 0.0 else 0.0
        else:
            state[2 * attribute] = attributes[attribute, 1]
            widths[attribute] = node_widths[attributes[attribute, 1]]


@compiled
def set_child(
    index: int, attribute: int, split: int, following: int, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints,
    node_widths: Floats, state: Ints, widths: Floats, entry: Ints,
) -> None:
    """Turn a copy of the parent's state into that of child `index`, and note in its entry the codes that lead to it."""
    first = attributes[attribute, 0]
    if first >= 0:
        if index == 0:
            state[2 * attribute + 1] = split
            entry[5], entry[6] = 0, split
        else:
            state[2 * attribute] = following
            entry[5], entry[6] = split + 1, LAST
        reach = numbers[first + state[2 * attribute + 1]] - numbers[first + state[2 * attribute]]
        widths[attribute] = reach / spans[attribute]
    else:
        child = tree[state[2 * attribute], 2] + index
        state[2 * attribute] = child
        widths[attribute] = node_widths[child]
        entry[5], entry[6] = tree[child, 0], tree[child, 1]


@compiled
def lengthen(rows: NDArray[Any], more: int) -> NDArray[Any]:
    """Return a copy with room for twice as many rows, and `more`."""
    longer = np.zeros((2 * len(rows) + more, rows.shape[1]), rows.dtype)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            longer[row, column] = rows[row, column]
    return longer


@compiled
def copy_row(rows: NDArray[Any], source: int, target: int) -> None:
    """Copy one row over another."""
    for column in range(rows.shape[1]):
        rows[target, column] = rows[source, column]


@compiled
def partition(
    codes: Ints, secret: Ints, weights: Longs, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats,
    tree: Ints, node_widths: Floats, secrets: int, parts_most: int,
) -> tuple[Longs, Ints, Ints]:
    """Build the tree with an explicit stack.

    Returns order[m], the permutation of which every node is a range; nodes[N, 7]: attribute (-1 for a class),
    first child, child count, start, stop, and the lowest and highest code of the parent's attribute that lead here;
    states[N, 2 d].
    """
    records, dimensions = codes.shape
    levels = parts_most
    for attribute in range(dimensions):
        levels = max(levels, attributes[attribute, 2])
    tally, moved = np.zeros(levels, np.int64), np.empty(records, np.int64)
    present, bucket = np.empty(levels, np.int32), np.empty(levels, np.int32)
    counts = np.zeros((parts_most, secrets), np.int64)
    order = np.arange(records)
    nodes, states, widths = np.zeros((64, 7), np.int32), np.zeros((64, 2 * dimensions), np.int32), np.zeros((64, dimensions))
    nodes[0, 4] = records
    set_root(attributes, spans, node_widths, states[0], widths[0])
    used = 1
    stack = [0]
    while len(stack) > 0:
        node = stack.pop()
        start, stop = nodes[node, 3], nodes[node, 4]
        part = order[start:stop]
        attribute, parts, split, following = choose_split(
            codes, secret, weights, part, rule, numbers, attributes, spans,
            tree, states[node], widths[node], tally, present, bucket, counts,
        )
        nodes[node, 0] = attribute
        if attribute < 0:
            continue
        if used + parts > len(nodes):
            nodes, states, widths = lengthen(nodes, parts), lengthen(states, parts), lengthen(widths, parts)
        begins = arrange(codes, part, attribute, bucket, parts, moved)
        nodes[node, 1] = used
        for index in range(parts):
            if begins[index] < begins[index + 1]:
                nodes[used, 3], nodes[used, 4] = start + begins[index], start + begins[index + 1]
                copy_row(states, node, used)
                copy_row(widths, node, used)
                set_child(
                    index, attribute, split, following, numbers, attributes, spans, tree, node_widths,
                    states[used], widths[used], nodes[used],
                )
                used += 1
        nodes[node, 2] = used - nodes[node, 1]
        for child in range(used - 1, nodes[node, 1] - 1, -1):
            stack.append(child)
    return order, nodes[:used].copy(), states[:used].copy()


@compiled
def publish(
    secret: Ints, weights: Longs, order: Longs, ranges: Ints, states: Ints, attributes: Ints, tree: Ints, secrets: int
) -> tuple[Ints, Ints, Longs]:
    """Return low[c, d], high[c, d] and counts[c, secrets] of the classes at ranges[c, 2] of order with states[c, 2 d]."""
    classes, dimensions = len(states), len(attributes)
    low, high = np.empty((classes, dimensions), np.int32), np.empty((classes, dimensions), np.int32)
    counts = np.zeros((classes, secrets), np.int64)
    for index in range(classes):
        for attribute in range(dimensions):
            if attributes[attribute, 0] >= 0:
                low[index, attribute], high[index, attribute] = states[index, 2 * attribute], states[index, 2 * attribute + 1]
            else:
                node = states[index, 2 * attribute]
                low[index, attribute], high[index, attribute] = tree[node, 0], tree[node, 1]
        for place in range(ranges[index, 0], ranges[index, 1]):
            counts[index, secret[order[place]]] += weights[order[place]]
    return low, high, counts
