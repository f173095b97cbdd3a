"""How many published records of each secret cover a target's value, attribute by attribute, and what naive Bayes makes of it.

coverage[t, d, n] is additive over classes: those of a whole subtree can be added or taken away.
slots[record] is a target's place in coverage. Rows, order and nodes are those of kernels.mondrian.
"""

import numpy as np

from dit_dask.kernels.mondrian import ATTRIBUTE, FIRST, PAST, START, STATE, STOP
from dit_dask.kernels.weigh import Floats, Ints, Longs, compiled, sort

FEW_TARGETS = 4


@compiled
def cover_few(
    rows: Ints, order: Ints, nodes: Ints, node: int, targets: Ints, slots: Ints, sign: int, coverage: Ints
) -> None:
    """Add sign times the classes under the node to the coverage of the targets, class by class."""
    dimensions, secret, weight = coverage.shape[1], rows.shape[1] - 2, rows.shape[1] - 1
    inner = nodes[node, ATTRIBUTE] >= 0
    ranges = STATE + 2 * dimensions
    for leaf in range(nodes[node, FIRST] if inner else node, nodes[node, PAST] if inner else node + 1):
        if nodes[leaf, ATTRIBUTE] >= 0:
            continue
        for target in targets:
            for attribute in range(dimensions):
                column = ranges + 2 * attribute
                if nodes[leaf, column] <= rows[target, attribute] <= nodes[leaf, column + 1]:
                    held = coverage[slots[target], attribute]
                    for place in range(nodes[leaf, START], nodes[leaf, STOP]):
                        record = order[place]
                        held[rows[record, secret]] += sign * rows[record, weight]


@compiled
def position(values: Longs, count: int, low: int, code: int) -> int:
    """Return how many of the sorted values[0, :count] are below the code; count < 0 stands for all codes from low to low - count - 1."""
    if count < 0:
        return min(max(code - low, 0), -count)
    first, last = 0, count
    while first < last:
        middle = (first + last) // 2
        if values[0, middle] < code:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def list_codes(rows: Ints, targets: Ints, attribute: int, values: Longs) -> tuple[int, int]:
    """Return (count, low) as `position` takes them: codes that are close together need no list."""
    low = high = np.int64(rows[targets[0], attribute])
    for target in targets:
        code = np.int64(rows[target, attribute])
        low, high = min(low, code), max(high, code)
    count = np.int64(len(targets))
    if high - low < 2 * count:
        return low - high - 1, low
    for place in range(count):
        values[0, place] = rows[targets[place], attribute]
    sort(values, count)
    return count, low


@compiled
def cover_many(
    rows: Ints, order: Ints, nodes: Ints, node: int, targets: Ints, slots: Ints, sign: int, coverage: Ints,
    values: Longs, steps: Ints,
) -> None:
    """Do the same with differences steps[2 t + 1, n] along the sorted codes of the t targets."""
    dimensions, secrets = coverage.shape[1], coverage.shape[2]
    secret, weight = rows.shape[1] - 2, rows.shape[1] - 1
    inner = nodes[node, ATTRIBUTE] >= 0
    begin_leaf, end_leaf = (nodes[node, FIRST], nodes[node, PAST]) if inner else (node, node + 1)
    for attribute in range(dimensions):
        count, low = list_codes(rows, targets, attribute, values)
        column = STATE + 2 * dimensions + 2 * attribute
        for step in range(abs(count) + 1):
            for value in range(secrets):
                steps[step, value] = 0
        for leaf in range(begin_leaf, end_leaf):
            if nodes[leaf, ATTRIBUTE] < 0:
                begin = position(values, count, low, np.int64(nodes[leaf, column]))
                end = position(values, count, low, nodes[leaf, column + 1] + 1)
                for place in range(nodes[leaf, START], nodes[leaf, STOP] if begin < end else 0):
                    record = order[place]
                    steps[begin, rows[record, secret]] += sign * rows[record, weight]
                    steps[end, rows[record, secret]] -= sign * rows[record, weight]
        for step in range(1, abs(count)):
            for value in range(secrets):
                steps[step, value] += steps[step - 1, value]
        for target in targets:
            step = position(values, count, low, np.int64(rows[target, attribute]))
            for value in range(secrets):
                coverage[slots[target], attribute, value] += steps[step, value]


@compiled
def cover(
    rows: Ints, order: Ints, nodes: Ints, node: int, targets: Ints, slots: Ints, sign: int, coverage: Ints,
    values: Longs, steps: Ints,
) -> None:
    """Add sign times the classes under the node to the coverage of the targets."""
    if len(targets) <= FEW_TARGETS:
        cover_few(rows, order, nodes, node, targets, slots, sign, coverage)
    else:
        cover_many(rows, order, nodes, node, targets, slots, sign, coverage, values, steps)


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
            for value in range(values):  # any number of attributes without underflow of what matters, and without logarithms
                belief[value] /= peak
        total_belief = 0.0
        for value in range(values):
            total_belief += belief[value]
        for value in range(values):
            belief[value] /= total_belief
    return beliefs
