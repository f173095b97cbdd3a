"""Mondrian's top-down partition of weighted distinct records, by the rules of the published programs.

Records are rows[m, d + 2]: codes, secret, weight. A node of the tree is a range of `order`, a list of row numbers.
Its line in nodes[N, 8 + 4 d] holds
    the attribute it is split on (-1: a class), first child, child count, start, stop, the lowest and the highest code of its
    parent's attribute that lead to it, the number after its last descendant;
    its state as inherited: for each attribute the code bounds (low, high) if numeric, (hierarchy node, 0) if categorical;
    for a class, the code range that it publishes of each attribute.
Children are neighbours, and so are all descendants: they are the lines from the first child to the last descendant.

The attributes come as flat arrays, hierarchies one after the other:
    numbers: values of all numeric attributes; spans[d]: their ranges;
    attributes[d, 4]: first position in `numbers` or -1, root node, number of levels, first position in `turns` or -1;
    tree[nodes, 5]: first leaf code, last leaf code, first child, child count, depth; node_widths[nodes];
    turns: for each depth of a hierarchy and each code, which child leads to the code.

A rule says which parts are valid (kernels.predicates).
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled, inner, long
from dit_dask.kernels.predicates import SEEN, Rule, is_valid, summarise
from dit_dask.kernels.weigh import EXTRA, Floats, Ints, Longs, arrange, clear_parts, count_parts, weigh

LAST = 2147483647
ATTRIBUTE, FIRST, COUNT, START, STOP, LEAST, MOST, PAST, STATE = range(9)


@inner
def parts_valid(
    rows: Ints, part: Ints, attribute: int, split: int, turns: Ints, turn: int, rule: Rule, counts: Longs
) -> bool:
    """Return whether every non-empty part of a split is valid."""
    need, diverse = rule[0], rule[1]
    secrets = counts.shape[1] - EXTRA
    count_parts(rows, part, attribute, split, turns, turn, diverse, counts)
    valid = True
    for place in range(2 if turn < 0 else len(part)):
        count = counts[place if turn < 0 else turns[turn + rows[part[place], attribute]]]
        if not diverse:
            valid = valid and count[secrets] >= need
        elif valid and count[secrets + SEEN] == 0:
            count[secrets + SEEN] = 1
            summarise(count, rule)
            valid = is_valid(count, long(-1), rule)
    clear_parts(rows, part, attribute, turns, turn, counts)
    return valid


@inner
def try_numeric(
    rows: Ints, part: Ints, attribute: int, size: int, rule: Rule, turns: Ints, tally: Longs, values: Longs, counts: Longs
) -> tuple[int, int, int, int]:
    """Return (lowest, highest, split, following) codes of the part; split is -1 where none is valid."""
    need, diverse, strict = rule[0], rule[1], rule[2]
    middle = size // 2
    found = weigh(rows, part, attribute, tally, values)
    if middle < need:
        return values[0, 0], values[0, found - 1], -1, -1
    position, left = 0, values[1, 0]
    while left < middle:
        position += 1
        left += values[1, position]
    low, high, split = values[0, 0], values[0, found - 1], values[0, position]
    if position == found - 1 or (strict and not diverse and size - left < need):
        return low, high, -1, -1
    if diverse and not parts_valid(rows, part, attribute, split, turns, long(-1), rule, counts):
        return low, high, -1, -1
    return low, high, split, values[0, position + 1]


@inner
def widest(widths: Floats) -> int:
    """Return the first attribute of the largest width, or -1 if all are negative: tried."""
    chosen, width = -1, -1.0
    for attribute in range(len(widths)):
        if widths[attribute] > width:
            chosen, width = attribute, widths[attribute]
    return chosen


@inner
def measure(state: Ints, numbers: Floats, attributes: Ints, spans: Floats, node_widths: Floats, widths: Floats) -> None:
    """Set widths[d], the normalised widths of a state[2 d]."""
    for attribute in range(len(spans)):
        first = attributes[attribute, 0]
        if first < 0:
            widths[attribute] = node_widths[state[2 * attribute]]
        elif spans[attribute] > 0.0:
            reach = numbers[first + state[2 * attribute + 1]] - numbers[first + state[2 * attribute]]
            widths[attribute] = reach / spans[attribute]
        else:
            widths[attribute] = 0.0


@inner
def turn_at(attributes: Ints, tree: Ints, attribute: int, node: int) -> int:
    """Return where `turns` begins for the children of a hierarchy node, or -1 for a numeric attribute."""
    if attributes[attribute, 0] >= 0:
        return -1
    return attributes[attribute, 3] + tree[node, 4] * attributes[attribute, 2]


@inner
def is_tightened(rule: Rule) -> bool:
    """Return whether trying a numeric attribute tightens its bounds: always but in the published program for l-diversity."""
    return not rule[1] or rule[2]


@inner
def choose_split(
    rows: Ints, part: Ints, rule: Rule, attributes: Ints, tree: Ints, turns: Ints, state: Ints, widths: Floats,
    tally: Longs, values: Longs, counts: Longs,
) -> tuple[int, int, int, int]:
    """Return (attribute, parts, split, following) of the widest attribute that splits, or attribute -1; tighten the state."""
    weight = rows.shape[1] - 1
    size = long(0)
    for record in part:
        size += rows[record, weight]
    while True:
        attribute = widest(widths)
        if attribute < 0:
            return -1, 0, -1, -1
        node = long(state[2 * attribute])
        if attributes[attribute, 0] >= 0:
            low, high, split, following = try_numeric(rows, part, attribute, size, rule, turns, tally, values, counts)
            if is_tightened(rule):
                state[2 * attribute], state[2 * attribute + 1] = low, high
            if split >= 0:
                return attribute, 2, split, following
        elif tree[node, 3] > 0:
            turn = turn_at(attributes, tree, attribute, node)
            if parts_valid(rows, part, attribute, long(-1), turns, turn, rule, counts):
                return attribute, tree[node, 3], -1, -1
        widths[attribute] = -1.0


@inner
def set_child(
    line: Ints, state: Ints, index: int, attribute: int, split: int, following: int, attributes: Ints, tree: Ints
) -> None:
    """Write the state of child `index` of a parent with this tightened state, and the codes of its branch."""
    for column in range(len(state)):
        line[STATE + column] = state[column]
    own = STATE + 2 * attribute
    if attributes[attribute, 0] < 0:
        child = tree[state[2 * attribute], 2] + index
        line[own], line[LEAST], line[MOST] = child, tree[child, 0], tree[child, 1]
    elif index == 0:
        line[own + 1], line[LEAST], line[MOST] = split, 0, split
    else:
        line[own], line[LEAST], line[MOST] = following, split + 1, LAST


@inner
def set_class(line: Ints, state: Ints, attributes: Ints, tree: Ints) -> None:
    """Write the code ranges that a class of this tightened state publishes."""
    ranges = STATE + len(state)
    for attribute in range(len(attributes)):
        low, high = state[2 * attribute], state[2 * attribute + 1]
        if attributes[attribute, 0] < 0:
            low, high = tree[low, 0], tree[low, 1]
        line[ranges + 2 * attribute], line[ranges + 2 * attribute + 1] = low, high
    line[ATTRIBUTE] = -1


@inner
def lengthen(nodes: Ints, used: int) -> Ints:
    """Return a copy with room for twice as many lines."""
    longer = np.zeros((2 * used, nodes.shape[1]), np.int32)
    for row in range(len(nodes)):
        for column in range(nodes.shape[1]):
            longer[row, column] = nodes[row, column]
    return longer


@inner
def add_children(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, order: Ints, nodes: Ints, node: int, used: int, state: Ints,
    attribute: int, parts: int, split: int, following: int, ends: Longs, moved: Ints,
) -> tuple[Ints, int]:
    """Split a node of this tightened state; return the nodes, perhaps lengthened, and how many lines are used."""
    if used + parts > len(nodes):
        nodes = lengthen(nodes, used + parts)
    start, stop = nodes[node, START], nodes[node, STOP]
    turn = turn_at(attributes, tree, attribute, long(state[2 * attribute]))
    arrange(rows, order[start:stop], attribute, split, turns, turn, parts, ends, moved)
    nodes[node, ATTRIBUTE], nodes[node, FIRST] = attribute, used
    begin = 0
    for index in range(parts):
        if begin < ends[index]:
            nodes[used, START], nodes[used, STOP] = start + begin, start + ends[index]
            set_child(nodes[used], state, index, attribute, split, following, attributes, tree)
            used += 1
        begin = ends[index]
    nodes[node, COUNT] = used - nodes[node, FIRST]
    return nodes, used


@inner
def link_nodes(nodes: Ints, first: int, used: int) -> None:
    """Let each of the nodes to split point to the next one, until it is split."""
    for node in range(first, used):
        nodes[node, PAST] = node + 1 if node + 1 < used else -1


@inner
def open_node(
    nodes: Ints, node: int, numbers: Floats, attributes: Ints, spans: Floats, node_widths: Floats, state: Ints, widths: Floats
) -> None:
    """Set the state that a node inherited, and its widths."""
    for column in range(len(state)):
        state[column] = nodes[node, STATE + column]
    measure(state, numbers, attributes, spans, node_widths, widths)


@inner
def close_node(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, order: Ints, nodes: Ints, node: int, used: int, state: Ints,
    attribute: int, parts: int, split: int, following: int, ends: Longs, moved: Ints,
) -> tuple[Ints, int, int]:
    """Make a node a class or give it children; return the nodes, how many lines are used, and the next node to split."""
    waiting = nodes[node, PAST]
    if attribute < 0:
        set_class(nodes[node], state, attributes, tree)
        return nodes, used, waiting
    child = used
    nodes, used = add_children(
        rows, attributes, tree, turns, order, nodes, node, used, state, attribute, parts, split, following, ends, moved
    )
    for later in range(child, used):
        nodes[later, PAST] = later + 1 if later + 1 < used else waiting
    return nodes, used, child


@compiled
def grow(
    rows: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints, node_widths: Floats,
    order: Ints, nodes: Ints, first: int, used: int, tally: Longs, values: Longs, counts: Longs, ends: Longs, moved: Ints,
) -> tuple[Ints, int]:
    """Split the nodes first..used - 1 and all their descendants; return the nodes, perhaps lengthened, and the lines used."""
    state, widths = np.empty(2 * len(spans), np.int32), np.empty(len(spans))
    link_nodes(nodes, first, used)
    node = first
    while node >= 0:
        open_node(nodes, node, numbers, attributes, spans, node_widths, state, widths)
        part = order[nodes[node, START] : nodes[node, STOP]]
        attribute, parts, split, following = choose_split(
            rows, part, rule, attributes, tree, turns, state, widths, tally, values, counts
        )
        nodes, used, node = close_node(
            rows, attributes, tree, turns, order, nodes, node, used, state, attribute, parts, split, following, ends, moved
        )
    set_past(nodes, first, used)
    return nodes, used


@inner
def set_past(nodes: Ints, first: int, used: int) -> None:
    """Store for each node from `first` on the number after its last descendant."""
    for node in range(used - 1, first - 1, -1):
        nodes[node, PAST] = node + 1
        if nodes[node, ATTRIBUTE] >= 0:
            for child in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT]):
                nodes[node, PAST] = max(nodes[node, PAST], nodes[child, PAST])


def partition(
    rows: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints, node_widths: Floats,
    secrets: int,
) -> tuple[Ints, Ints]:
    """Return order[m], the permutation of which every node is a range, and nodes[N, 8 + 4 d] with the root first."""
    order, nodes = plant_root(len(rows), attributes)
    nodes, used = grow(
        rows, rule, numbers, attributes, spans, tree, turns, node_widths, order, nodes, 0, 1,
        *scratch(rows, attributes, tree, secrets),
    )
    return order, nodes[:used].copy()


def plant_root(rows: int, attributes: Ints) -> tuple[Ints, Ints]:
    """Return order[rows] and nodes whose first line is a root of all rows, every attribute generalised to its whole domain."""
    order, nodes = np.arange(rows, dtype=np.int32), np.zeros((64, STATE + 4 * len(attributes)), np.int32)
    numeric, state = attributes[:, 0] >= 0, nodes[0, STATE : STATE + 2 * len(attributes)]
    nodes[0, START], nodes[0, STOP] = 0, rows
    state[::2], state[1::2] = np.where(numeric, 0, attributes[:, 1]), np.where(numeric, attributes[:, 2] - 1, 0)
    return order, nodes


def scratch(rows: Ints, attributes: Ints, tree: Ints, secrets: int) -> tuple[Longs, Longs, Longs, Longs, Ints]:
    """Return the tally, values, counts, ends and moved that `grow` works in."""
    levels, parts = int(attributes[:, 2].max()), max(2, int(tree[:, 3].max()))
    tally, values = np.zeros(levels, np.int64), np.empty((2, levels), np.int64)
    counts, ends = np.zeros((parts, secrets + EXTRA), np.int64), np.empty(parts, np.int64)
    return tally, values, counts, ends, np.empty(len(rows), np.int32)


@compiled
def count_secrets(rows: Ints, order: Ints, ranges: Ints, secrets: int) -> Longs:
    """Return counts[c, secrets] of the classes at ranges[c, 2] of order."""
    secret, weight = rows.shape[1] - 2, rows.shape[1] - 1
    counts = np.zeros((len(ranges), secrets), np.int64)
    for index in range(len(ranges)):
        for place in range(ranges[index, 0], ranges[index, 1]):
            record = order[place]
            counts[index, rows[record, secret]] += rows[record, weight]
    return counts
