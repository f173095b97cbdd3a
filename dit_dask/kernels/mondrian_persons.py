"""Mondrian where persons have several rows: parts are valid by the persons in them, medians are those of rows.

Beside the arrays of kernels.mondrian: persons[m, 2] has the person of each row, and the number of its pair (person, secret);
seen[2, …] the time at which each person, and each pair, was last met; clock[1] the time, which no two counts share;
held[n + EXTRA] a row of counts of pairs, zero before and after but for what kernels.predicates derives.
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled, inner, long
from dit_dask.kernels.mondrian import (
    ATTRIBUTE,
    COUNT,
    FIRST,
    START,
    STATE,
    STOP,
    close_node,
    lengthen,
    link_nodes,
    open_node,
    plant_root,
    scratch,
    set_past,
    turn_at,
    widest,
)
from dit_dask.kernels.predicates import MOST as MOST_HELD
from dit_dask.kernels.predicates import SIZE, Rule, is_valid, summarise
from dit_dask.kernels.weigh import EXTRA, Floats, Ints, Longs, arrange, weigh


@inner
def has_enough(part: Ints, persons: Ints, rule: Rule, rows: Ints, held: Longs, seen: Longs, clock: Longs) -> bool:
    """Return whether a part is valid where a person counts once in its size, and once for each of its secrets."""
    diverse, secret, secrets = rule[1], rows.shape[1] - 2, len(held) - EXTRA
    clock[0] += 1
    size, most = long(0), long(0)
    for record in part:
        person, pair = persons[record, 0], persons[record, 1]
        if seen[0, person] != clock[0]:
            seen[0, person] = clock[0]
            size += 1
        if diverse and seen[1, pair] != clock[0]:
            seen[1, pair] = clock[0]
            held[rows[record, secret]] += 1
            most = max(most, held[rows[record, secret]])
    if not diverse:
        return size >= rule[0]
    held[secrets + SIZE], held[secrets + MOST_HELD] = size, most
    summarise(held, rule)
    valid = is_valid(held, long(-1), rule)
    for record in part:
        held[rows[record, secret]] = 0
    return valid


@inner
def parts_valid(
    rows: Ints, part: Ints, persons: Ints, attribute: int, split: int, turns: Ints, turn: int, parts: int, rule: Rule,
    ends: Longs, moved: Ints, held: Longs, seen: Longs, clock: Longs,
) -> bool:
    """Reorder a part by the sides of a split; return whether every side that has rows has enough persons."""
    arrange(rows, part, attribute, split, turns, turn, parts, ends, moved)
    begin = long(0)
    for index in range(parts):
        side = part[begin : ends[index]]
        if len(side) > 0 and not has_enough(side, persons, rule, rows, held, seen, clock):
            return False
        begin = ends[index]
    return True


@inner
def choose_split(
    rows: Ints, part: Ints, persons: Ints, rule: Rule, attributes: Ints, tree: Ints, turns: Ints, state: Ints, widths: Floats,
    tally: Longs, values: Longs, ends: Longs, moved: Ints, held: Longs, seen: Longs, clock: Longs,
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
            found = weigh(rows, part, attribute, tally, values)
            state[2 * attribute], state[2 * attribute + 1] = values[0, 0], values[0, found - 1]
            position, left = 0, values[1, 0]
            while left < size // 2:
                position += 1
                left += values[1, position]
            if position < found - 1:
                split, following = values[0, position], values[0, position + 1]
                if parts_valid(
                    rows, part, persons, attribute, split, turns, long(-1), 2, rule, ends, moved, held, seen, clock
                ):
                    return attribute, 2, split, following
        elif tree[node, 3] > 0:
            turn, parts = turn_at(attributes, tree, attribute, node), long(tree[node, 3])
            if parts_valid(
                rows, part, persons, attribute, long(-1), turns, turn, parts, rule, ends, moved, held, seen, clock
            ):
                return attribute, parts, -1, -1
        widths[attribute] = -1.0


@compiled
def grow(
    rows: Ints, persons: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints,
    node_widths: Floats, order: Ints, nodes: Ints, first: int, used: int, tally: Longs, values: Longs, ends: Longs,
    moved: Ints, held: Longs, seen: Longs, clock: Longs,
) -> tuple[Ints, int]:
    """Split the nodes first..used - 1 and all their descendants; return the nodes, perhaps lengthened, and the lines used."""
    state, widths = np.empty(2 * len(spans), np.int32), np.empty(len(spans))
    link_nodes(nodes, first, used)
    node = first
    while node >= 0:
        open_node(nodes, node, numbers, attributes, spans, node_widths, state, widths)
        part = order[nodes[node, START] : nodes[node, STOP]]
        attribute, parts, split, following = choose_split(
            rows, part, persons, rule, attributes, tree, turns, state, widths, tally, values, ends, moved, held, seen, clock
        )
        nodes, used, node = close_node(
            rows, attributes, tree, turns, order, nodes, node, used, state, attribute, parts, split, following, ends, moved
        )
    set_past(nodes, first, used)
    return nodes, used


@inner
def is_same_split(
    nodes: Ints, node: int, state: Ints, attribute: int, split: int, following: int, is_numeric: bool
) -> bool:
    """Return whether the children of a node are those that this split of this tightened state would give."""
    if nodes[node, ATTRIBUTE] != attribute:
        return False
    own = 2 * attribute
    for index in range(nodes[node, COUNT]):
        line = nodes[nodes[node, FIRST] + index]
        for column in range(len(state)):
            if column != own and column != own + 1 and line[STATE + column] != state[column]:
                return False
        if is_numeric:
            low = following if index > 0 else state[own]
            high = state[own + 1] if index > 0 else split
            if line[STATE + own] != low or line[STATE + own + 1] != high:
                return False
    return True


@compiled
def remove(
    rows: Ints, persons: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints,
    node_widths: Floats, order: Ints, nodes: Ints, tops: Longs, gone: Ints, log: Ints, waiting: Ints, tally: Longs,
    values: Longs, ends: Longs, moved: Ints, held: Longs, seen: Longs, clock: Longs,
) -> tuple[Ints, Ints]:
    """Remove the rows gone[g] of one person, ascending, from a tree whose order is 0, 1, …: grow again what that changes.

    New subtrees are lines behind the tops[1] lines of the tree, their rows behind the tops[0] entries of order; tops moves
    on. log[…, 2] lists (replaced node, new root), then -1. Return order and nodes, perhaps lengthened.
    """
    state, widths = np.empty(2 * len(spans), np.int32), np.empty(len(spans))
    logged, left, person = 0, 1, persons[gone[0], 0]
    waiting[0] = 0
    while left > 0:
        left -= 1
        node = long(waiting[left])
        start, stop, top = nodes[node, START], nodes[node, STOP], tops[0]
        if top + stop - start > len(order):
            longer = np.empty(2 * (top + stop - start), np.int32)
            for place in range(top):
                longer[place] = order[place]
            order = longer
        for place in range(start, stop):
            if persons[place, 0] != person:
                order[tops[0]] = place
                tops[0] += 1
        open_node(nodes, node, numbers, attributes, spans, node_widths, state, widths)
        attribute, _, split, following = choose_split(
            rows, order[top : tops[0]], persons, rule, attributes, tree, turns, state, widths,
            tally, values, ends, moved, held, seen, clock,
        )
        if attribute >= 0 and is_same_split(nodes, node, state, attribute, split, following, attributes[attribute, 0] >= 0):
            tops[0] = top
            for child in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT]):
                for place in gone:
                    if nodes[child, START] <= place < nodes[child, STOP]:
                        waiting[left] = child
                        left += 1
                        break
            continue
        root = tops[1]
        if root + 1 > len(nodes):
            nodes = lengthen(nodes, root + 1)
        for column in range(nodes.shape[1]):
            nodes[root, column] = nodes[node, column]
        nodes[root, START], nodes[root, STOP] = top, tops[0]
        nodes, tops[1] = grow(
            rows, persons, rule, numbers, attributes, spans, tree, turns, node_widths, order, nodes, root, root + 1,
            tally, values, ends, moved, held, seen, clock,
        )
        log[logged, 0], log[logged, 1] = node, root
        logged += 1
    log[logged, 0] = -1
    return order, nodes


def partition(
    rows: Ints, persons: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints,
    node_widths: Floats, secrets: int,
) -> tuple[Ints, Ints]:
    """Return order[m], the permutation of which every node is a range, and nodes[N, 8 + 4 d] with the root first."""
    order, nodes = plant_root(len(rows), attributes)
    nodes, used = grow(
        rows, persons, rule, numbers, attributes, spans, tree, turns, node_widths, order, nodes, 0, 1,
        *person_scratch(rows, persons, attributes, tree, secrets),
    )
    return order, nodes[:used].copy()


def person_scratch(
    rows: Ints, persons: Ints, attributes: Ints, tree: Ints, secrets: int
) -> tuple[Longs, Longs, Longs, Ints, Longs, Longs, Longs]:
    """Return the tally, values, ends, moved, held, seen and clock that `grow` works in."""
    tally, values, _, ends, moved = scratch(rows, attributes, tree, secrets)
    seen = np.zeros((2, int(persons.max()) + 1), np.int64)
    return tally, values, ends, moved, np.zeros(secrets + EXTRA, np.int64), seen, np.zeros(1, np.int64)
