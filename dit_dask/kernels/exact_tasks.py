"""The tasks of the exact engine that wait on a stack, and which tasks the children of a node need.

A stack is tasks[T, 9 + 2 d]: kind, node, begin, alike, stop, attribute, split, following, owner; a state.
    DESCEND  evaluate targets[begin:stop] inside a node that was built from all records; for the owner, if there is one,
             which is then the only target, the node inherits the state
    BRANCH   those targets split the node in another way than it is split: grow that tree and descend in it
    OWN      waits below its BRANCH: a target that splits like the branch, but leaves bounds of its own to the children
    DROP     waits below these: forget the trees grown since
    REBUILD  grow the node from the state for one target: without the owner, if there is one
    COMPARE  the node holds the same records but inherits the state: rebuild what that changes, for one target
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import inner, long
from dit_dask.kernels.mondrian import (
    ATTRIBUTE,
    COUNT,
    FIRST,
    LEAST,
    MOST,
    STATE,
    is_tightened,
    measure,
    set_child,
    turn_at,
    widest,
)
from dit_dask.kernels.predicates import Rule
from dit_dask.kernels.weigh import Floats, Ints, Longs, arrange

DESCEND, BRANCH, OWN, DROP, REBUILD, COMPARE = range(6)
KIND, NODE, BEGIN, ALIKE, END, SPLIT_ON, SPLIT, FOLLOWING, OWNER, TASK_STATE = range(10)
ORDER, NODES, TASKS = range(3)


@inner
def push(
    tasks: Ints, tops: Longs, kind: int, node: int, begin: int, alike: int, stop: int, attribute: int, split: int,
    following: int, owner: int, state: Ints,
) -> None:
    """Push a task; the caller has made room for it."""
    top = tops[TASKS]
    task = tasks[top]
    task[KIND], task[NODE], task[BEGIN], task[ALIKE], task[END] = kind, node, begin, alike, stop
    task[SPLIT_ON], task[SPLIT], task[FOLLOWING], task[OWNER] = attribute, split, following, owner
    for column in range(len(task) - TASK_STATE):
        task[TASK_STATE + column] = state[column]
    tops[TASKS] = top + 1


@inner
def push_children(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, nodes: Ints, parent: int, split: int, state: Ints, targets: Ints,
    begin: int, stop: int, tasks: Ints, tops: Longs, ends: Longs, moved: Ints,
) -> None:
    """Push targets[begin:stop] to the children that contain them, of a parent of this tightened state."""
    none = long(-1)
    attribute = long(nodes[parent, ATTRIBUTE])
    numeric, above = attributes[attribute, 0] >= 0, long(state[2 * attribute])
    turn = turn_at(attributes, tree, attribute, above)
    parts = long(2 if numeric else tree[above, 3])
    arrange(rows, targets[begin:stop], attribute, split, turns, turn, parts, ends, moved)
    first = long(nodes[parent, FIRST])
    for child in range(first, first + nodes[parent, COUNT]):
        index = child - first if numeric else nodes[child, STATE + 2 * attribute] - tree[above, 2]
        since, until = begin + (ends[index - 1] if index > 0 else 0), begin + ends[index]
        if since < until:
            push(tasks, tops, long(DESCEND), child, since, until, until, none, none, none, none, state)


@inner
def push_own(
    rows: Ints, attributes: Ints, tree: Ints, nodes: Ints, parent: int, split: int, following: int, state: Ints, targets: Ints,
    place: int, tasks: Ints, tops: Longs,
) -> None:
    """Push one target to its child of a parent of this tightened state, and compare children that inherit another state."""
    none, line = long(-1), np.empty(nodes.shape[1], np.int32)
    attribute = long(nodes[parent, ATTRIBUTE])
    numeric, code = attributes[attribute, 0] >= 0, rows[targets[place], attribute]
    first = long(nodes[parent, FIRST])
    for child in range(first, first + nodes[parent, COUNT]):
        index = child - first if numeric else nodes[child, STATE + 2 * attribute] - tree[state[2 * attribute], 2]
        set_child(line, state, index, attribute, split, following, attributes, tree)
        inside = nodes[child, LEAST] <= code <= nodes[child, MOST]
        equal = True
        for column in range(STATE, STATE + 2 * len(attributes)):
            equal = equal and line[column] == nodes[child, column]
        if inside or not equal:
            kind, owner = long(DESCEND if inside else COMPARE), long(-1 if equal else targets[place])
            push(tasks, tops, kind, child, place, place, place + 1, none, none, none, owner, line[STATE:])


@inner
def push_inheriting(attributes: Ints, nodes: Ints, node: int, place: int, state: Ints, tasks: Ints, tops: Longs) -> None:
    """Compare the children of a node that leaves this state to them, but for the bounds that its split sets."""
    none, inherited = long(-1), np.empty(len(state), np.int32)
    attribute, first = long(nodes[node, ATTRIBUTE]), long(nodes[node, FIRST])
    for child in range(first, first + nodes[node, COUNT]):
        differs = False
        for column in range(len(state)):
            is_set = column // 2 == attribute and (attributes[attribute, 0] < 0 or (column % 2 == 1) == (child == first))
            inherited[column] = nodes[child, STATE + column] if is_set else state[column]
            differs = differs or inherited[column] != nodes[child, STATE + column]
        if differs:
            push(tasks, tops, long(COMPARE), child, place, place, place + 1, none, none, none, none, inherited)


@inner
def push_compared(
    rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, node_widths: Floats, nodes: Ints, task: Ints, tasks: Ints,
    tops: Longs,
) -> None:
    """Rebuild a node if the state makes it try other attributes before it splits, else compare the children that inherit it."""
    none, dimensions = long(-1), len(spans)
    node, place = long(task[NODE]), long(task[BEGIN])
    mine, state = np.empty(dimensions), task[TASK_STATE:].copy()
    base = np.empty(dimensions)
    measure(state, numbers, attributes, spans, node_widths, mine)
    measure(nodes[node, STATE:], numbers, attributes, spans, node_widths, base)
    attribute = long(nodes[node, ATTRIBUTE])
    if attribute < 0 and not is_tightened(rule):  # a class publishes the bounds that it inherits
        push(tasks, tops, long(REBUILD), node, place, place, place + 1, none, none, none, none, state)
        return
    while attribute >= 0 and base[attribute] >= 0.0:
        tried = widest(base)
        if widest(mine) != tried:
            push(tasks, tops, long(REBUILD), node, place, place, place + 1, none, none, none, none, state)
            return
        base[tried], mine[tried] = -1.0, -1.0
    if not is_tightened(rule):
        push_inheriting(attributes, nodes, node, place, state, tasks, tops)
        return
    differs = False
    for other in range(dimensions if attribute >= 0 else 0):  # attributes that were tried have been tightened to the records
        for column in range(2 * other, 2 * other + 2):
            differs = differs or (base[other] >= 0.0 and state[column] != nodes[node, STATE + column])
    for child in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT] if differs else 0):
        for other in range(dimensions):
            for column in range(2 * other, 2 * other + 2):
                if base[other] < 0.0:
                    state[column] = nodes[child, STATE + column]
        push(tasks, tops, long(COMPARE), child, place, place, place + 1, none, none, none, none, state)
