"""Counts of published records by secret that cover a target's value, by attribute, and naive Bayes beliefs from them.

coverage[t, d, n] is additive over classes: those of a whole subtree can be added or taken away. Without lines it is not kept.
slots[record] is a target's place in coverage. Rows, order and nodes are those of kernels.mondrian.
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled, inner, long
from dit_dask.kernels.mondrian import ATTRIBUTE, COUNT, FIRST, LEAST, MOST, PAST, START, STATE, STOP
from dit_dask.kernels.weigh import Floats, Ints, Longs, sort

FEW_TARGETS = 4
SPARSE = 32  # codes that lie further apart than this are sorted and searched, closer ones are ranked by a list of all of them


@inner
def classes_under(nodes: Ints, node: int) -> tuple[int, int]:
    """Return the range of lines that holds the classes under a node; empty for node -1."""
    if node < 0:
        return 0, 0
    if nodes[node, ATTRIBUTE] < 0:
        return node, node + 1
    return nodes[node, FIRST], nodes[node, PAST]


@inner
def cover_few(
    rows: Ints, order: Ints, nodes: Ints, node: int, sign: int, targets: Ints, slots: Ints, coverage: Ints
) -> None:
    """Add sign times the classes under the node to the coverage of the targets, class by class."""
    dimensions, secret, weight = coverage.shape[1], rows.shape[1] - 2, rows.shape[1] - 1
    ranges = STATE + 2 * dimensions
    first, past = classes_under(nodes, node)
    for line in range(first, past):
        if nodes[line, ATTRIBUTE] >= 0:
            continue
        for target in targets:
            for attribute in range(dimensions):
                column = ranges + 2 * attribute
                if nodes[line, column] <= rows[target, attribute] <= nodes[line, column + 1]:
                    held = coverage[slots[target], attribute]
                    for place in range(nodes[line, START], nodes[line, STOP]):
                        record = order[place]
                        held[rows[record, secret]] += sign * rows[record, weight]


@inner
def rank_codes(rows: Ints, targets: Ints, attribute: int, values: Longs) -> tuple[int, int, int]:
    """Prepare values[0] for `rank`, which counts the targets' codes below a code; return (count, low, reach)."""
    low = high = long(rows[targets[0], attribute])
    for target in targets:
        code = long(rows[target, attribute])
        low, high = min(low, code), max(high, code)
    count, reach = long(len(targets)), high - low + 1
    if reach > SPARSE * count:
        for place in range(count):
            values[0, place] = rows[targets[place], attribute]
        sort(values, count)
        return count, low, long(0)
    for offset in range(reach):
        values[0, offset] = 0
    for target in targets:
        values[0, rows[target, attribute] - low] = 1
    count = long(0)
    for offset in range(reach):
        count, values[0, offset] = count + values[0, offset], count
    return count, low, reach


@inner
def rank(values: Longs, count: int, low: int, reach: int, code: int) -> int:
    """Return how many of the codes that `rank_codes` has prepared are below the code."""
    if reach > 0:
        offset = code - low
        if offset <= 0:
            return 0
        return values[0, offset] if offset < reach else count
    first, last = long(0), count
    while first < last:
        middle = (first + last) // 2
        if values[0, middle] < code:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def add_steps(
    rows: Ints, order: Ints, nodes: Ints, node: int, sign: int, attribute: int, values: Longs, count: int, low: int, reach: int,
    steps: Ints,
) -> None:
    """Add sign times the classes under the node at the ranks where their coverage starts and ends: steps[rank, n]."""
    secret, weight = rows.shape[1] - 2, rows.shape[1] - 1
    column = nodes.shape[1] + 2 * (attribute - (rows.shape[1] - 2))
    first, past = classes_under(nodes, node)
    for line in range(first, past):
        if nodes[line, ATTRIBUTE] < 0:
            begin = rank(values, count, low, reach, long(nodes[line, column]))
            end = rank(values, count, low, reach, long(nodes[line, column + 1]) + 1)
            for place in range(nodes[line, START], nodes[line, STOP] if begin < end else 0):
                record = order[place]
                steps[begin, rows[record, secret]] += sign * rows[record, weight]
                steps[end, rows[record, secret]] -= sign * rows[record, weight]


@inner
def cover_many(
    rows: Ints, order: Ints, nodes: Ints, old: int, new: int, targets: Ints, slots: Ints, coverage: Ints,
    values: Longs, steps: Ints,
) -> None:
    """Do the same for two nodes with differences steps[t + 1, n] along the sorted codes of the t targets."""
    secrets = coverage.shape[2]
    for attribute in range(coverage.shape[1]):
        count, low, reach = rank_codes(rows, targets, attribute, values)
        for step in range(count + 1):
            for value in range(secrets):
                steps[step, value] = 0
        for sign in range(-1, 2, 2):
            add_steps(rows, order, nodes, old if sign < 0 else new, sign, attribute, values, count, low, reach, steps)
        for step in range(1, count):
            for value in range(secrets):
                steps[step, value] += steps[step - 1, value]
        for target in targets:
            step = rank(values, count, low, reach, long(rows[target, attribute]))
            for value in range(secrets):
                coverage[slots[target], attribute, value] += steps[step, value]


@compiled
def cover(
    rows: Ints, order: Ints, nodes: Ints, old: int, new: int, targets: Ints, slots: Ints, coverage: Ints,
    values: Longs, steps: Ints,
) -> None:
    """Replace the classes under the old node by those under the new one in the coverage of the targets; -1: no node."""
    if len(coverage) == 0:
        return
    if len(targets) > FEW_TARGETS:
        cover_many(rows, order, nodes, old, new, targets, slots, coverage, values, steps)
        return
    for sign in range(-1, 2, 2):
        cover_few(rows, order, nodes, old if sign < 0 else new, sign, targets, slots, coverage)


@inner
def count_fallen(rows: Ints, order: Ints, nodes: Ints, root: int, codes: Ints, counts: Ints) -> None:
    """Set counts[n] to the secrets of the node under the root where the path of these codes ends."""
    node = long(root)
    while nodes[node, ATTRIBUTE] >= 0:
        first, code = long(nodes[node, FIRST]), codes[nodes[node, ATTRIBUTE]]
        past = first + nodes[node, COUNT]
        child = first
        while child < past and not nodes[child, LEAST] <= code <= nodes[child, MOST]:
            child += 1
        if child == past:
            break
        node = child
    for value in range(len(counts)):
        counts[value] = 0
    for place in range(nodes[node, START], nodes[node, STOP]):
        record = order[place]
        counts[rows[record, rows.shape[1] - 2]] += rows[record, rows.shape[1] - 1]


@compiled
def posterior(coverage: Ints, totals: Longs, secrets: Ints) -> Floats:
    """Return the (t, n) beliefs of BernoulliNB(alpha=1) of targets whose features are all set.

    coverage[t, d, n]; totals[n]: published records of each class; secrets[t]: the class that has one record less (-1: none).
    """
    targets, dimensions, values = coverage.shape
    beliefs = np.empty((targets, values))
    for target in range(targets):
        belief = beliefs[target]
        for value in range(values):
            belief[value] = totals[value] - (value == secrets[target])
        for attribute in range(dimensions):
            peak = 0.0
            for value in range(values):
                total = totals[value] - (value == secrets[target])
                belief[value] *= (coverage[target, attribute, value] + 1.0) / (total + 2.0)
                peak = max(peak, belief[value])
            for value in range(values):  # no underflow of the largest belief, for any number of attributes, without logarithms
                belief[value] /= peak
        total_belief = 0.0
        for value in range(values):
            total_belief += belief[value]
        for value in range(values):
            belief[value] /= total_belief
    return beliefs
