"""All leave-one-outs of a Mondrian tree in one descent (docs/exact-engine.md).

Work waits on the stack that kernels.exact_tasks describes.
Doing a task adds to a target's coverage the classes that the node has without the target, and takes away those it has with it.
It also counts the node that the target falls into without itself, where its path ends. COMPARE cannot change that node.
Trees other than the base tree are grown behind it in `order` and `nodes`; tops[3] says where both end and how many tasks wait.

The other arguments are those of kernels.mondrian, kernels.exact_outcomes and kernels.exact_coverage.
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled, inner, long
from dit_dask.kernels.exact_coverage import count_fallen, cover
from dit_dask.kernels.exact_outcomes import (
    ABOVE,
    ABOVE_NEXT,
    ABOVE_NEXT_WITHOUT,
    BELOW,
    BELOW_NEXT,
    FACTS,
    HIGH,
    HIGH_WITHOUT,
    LOW,
    LOW_WITHOUT,
    decide,
)
from dit_dask.kernels.exact_tasks import (
    ALIKE,
    BEGIN,
    BRANCH,
    COMPARE,
    DESCEND,
    DROP,
    END,
    FOLLOWING,
    KIND,
    NODE,
    NODES,
    ORDER,
    OWN,
    OWNER,
    REBUILD,
    SPLIT,
    SPLIT_ON,
    TASK_STATE,
    TASKS,
    push,
    push_children,
    push_compared,
    push_own,
)
from dit_dask.kernels.mondrian import (
    ATTRIBUTE,
    FIRST,
    MOST,
    PAST,
    START,
    STATE,
    STOP,
    add_children,
    grow,
    is_tightened,
    lengthen,
)
from dit_dask.kernels.predicates import Rule
from dit_dask.kernels.weigh import Floats, Ints, Longs

REBUILD_UP_TO = 2  # up to this size of a group a rebuild for each target is cheaper than a branch


@inner
def group_targets(targets: Ints, keys: Ints, own: Ints, bounds: Longs, moved: Ints) -> None:
    """Reorder the targets by 2 key + own, stably; bounds[groups] becomes the position after each group."""
    for group in range(len(bounds)):
        bounds[group] = 0
    for record in targets:
        bounds[2 * keys[record] + own[record]] += 1
    total = 0
    for group in range(len(bounds)):
        total, bounds[group] = total + bounds[group], total
    for record in targets:
        group = 2 * keys[record] + own[record]
        moved[bounds[group]] = record
        bounds[group] += 1
    for place in range(len(targets)):
        targets[place] = moved[place]


@inner
def tighten(
    inherited: Ints, codes: Ints, attribute: int, rule: Rule, attributes: Ints, facts: Longs, tried: Longs, state: Ints
) -> None:
    """Set state[2 d] to what is left of the inherited one after trying the attribute, for the target with these codes.

    No codes: for targets without bounds of their own.
    """
    for column in range(len(state)):
        state[column] = inherited[column]
    if not is_tightened(rule):
        return
    for tested in tried:
        if tested >= 0 and attributes[tested, 0] >= 0:
            fact = facts[tested]
            low, high = fact[LOW], fact[HIGH]
            state[2 * tested] = fact[LOW_WITHOUT] if len(codes) > 0 and codes[tested] == low else low
            state[2 * tested + 1] = fact[HIGH_WITHOUT] if len(codes) > 0 and codes[tested] == high else high
        if tested == attribute:
            return


@inner
def settle_class(
    rows: Ints, rule: Rule, part: Ints, inherited: Ints, was_class: bool, targets: Ints, slots: Ints, attributes: Ints,
    facts: Longs, coverage: Ints, fallen: Ints, held: Longs,
) -> None:
    """Make the node one class without the target, in place of the class it was before, if any. held[n] is scratch."""
    secret, weight = rows.shape[1] - 2, rows.shape[1] - 1
    for value in range(len(held)):
        held[value] = 0
    for record in part:
        held[rows[record, secret]] += rows[record, weight]
    for target in targets:
        for value in range(len(held) if len(fallen) > 0 else 0):
            fallen[slots[target], value] = held[value] - (value == rows[target, secret])
        for attribute in range(len(attributes) if len(coverage) > 0 else 0):
            mine, fact, code = coverage[slots[target], attribute], facts[attribute], rows[target, attribute]
            if attributes[attribute, 0] < 0:
                outside = False
            elif is_tightened(rule):
                outside = (code == fact[LOW] and fact[LOW_WITHOUT] != code) or (
                    code == fact[HIGH] and fact[HIGH_WITHOUT] != code
                )
            else:
                outside = code < inherited[2 * attribute] or code > inherited[2 * attribute + 1]
            times = (0 if outside else 1) - (1 if was_class else 0)
            for value in range(len(held) if times != 0 else 0):
                mine[value] += times * held[value]
            if not outside:
                mine[rows[target, secret]] -= 1


@inner
def copy_part(order: Ints, start: int, stop: int, end: int, missing: int) -> tuple[Ints, int]:
    """Append a range of order at `end`, without one row number; return order, perhaps lengthened, and the new end."""
    if end + stop - start > len(order):
        longer = np.empty(2 * (end + stop - start), np.int32)
        for place in range(end):
            longer[place] = order[place]
        order = longer
    for place in range(start, stop):
        if order[place] != missing:
            order[end] = order[place]
            end += 1
    return order, end


@inner
def follow(
    rows: Ints, rule: Rule, attributes: Ints, tree: Ints, turns: Ints, nodes: Ints, node: int, inherited: Ints, key: int,
    targets: Ints, begin: int, alike: int, stop: int, tasks: Ints, tops: Longs, facts: Longs, tried: Longs, ends: Longs,
    moved: Ints,
) -> None:
    """Push the tasks of targets[begin:stop], a group with one key; from `alike` on they have bounds of their own.

    inherited[2 d]: the state that the node inherits in their case.
    """
    none, state = long(-1), np.empty(2 * len(attributes), np.int32)
    attribute = long(key // 2)
    numeric = attributes[attribute, 0] >= 0
    fact = facts[attribute]
    split, following = none, none
    if numeric:
        split, following = (fact[BELOW], fact[BELOW_NEXT]) if key % 2 else (fact[ABOVE], fact[ABOVE_NEXT])
    same = nodes[node, ATTRIBUTE] == attribute and (not numeric or nodes[nodes[node, FIRST], MOST] == split)
    vanishes = not numeric and key % 2 == 1  # the target's child, so that its path ends above
    if vanishes or (not same and alike - begin <= REBUILD_UP_TO):
        for place in range(begin, stop):
            owner = long(targets[place])
            push(tasks, tops, long(REBUILD), node, place, place, place + 1, none, none, none, owner, inherited)
        return
    if not same:
        push(tasks, tops, long(DROP), node, none, none, none, none, none, none, none, inherited)
    for place in range(alike, stop):
        owner = long(targets[place])
        tighten(inherited, rows[owner], attribute, rule, attributes, facts, tried, state)
        mine = fact[ABOVE_NEXT_WITHOUT] if numeric and rows[owner, attribute] == following else following
        push(tasks, tops, long(OWN), node, place, place, place + 1, attribute, split, mine, owner, state)
    tighten(inherited, rows[0, :0], attribute, rule, attributes, facts, tried, state)
    if not same:
        push(tasks, tops, long(BRANCH), node, begin, alike, stop, attribute, split, following, none, state)
        return
    push_children(
        rows, attributes, tree, turns, nodes, node, split, state, targets, begin, alike, tasks, tops, ends, moved
    )


@inner
def plant(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, order: Ints, nodes: Ints, task: Ints, tops: Longs,
    ends: Longs, moved: Ints,
) -> tuple[Ints, Ints, int]:
    """Copy the task's node behind the trees; return order, nodes and the first line to grow: the copy or its children."""
    copy, source, removed = tops[NODES], task[NODE], task[OWNER]
    if copy == len(nodes):
        nodes = lengthen(nodes, copy)
    missing = long(removed if removed >= 0 and rows[removed, rows.shape[1] - 1] == 1 else -1)
    nodes[copy, START] = tops[ORDER]
    order, tops[ORDER] = copy_part(order, nodes[source, START], nodes[source, STOP], tops[ORDER], missing)
    nodes[copy, STOP] = tops[ORDER]
    tops[NODES] = copy + 1
    if task[KIND] == REBUILD:
        for column in range(2 * len(attributes)):
            nodes[copy, STATE + column] = task[TASK_STATE + column]
        return order, nodes, copy
    attribute, state = long(task[SPLIT_ON]), task[TASK_STATE:]
    parts = long(2 if attributes[attribute, 0] >= 0 else tree[state[2 * attribute], 3])
    nodes, tops[NODES] = add_children(
        rows, attributes, tree, turns, order, nodes, copy, tops[NODES], state, attribute, parts,
        long(task[SPLIT]), long(task[FOLLOWING]), ends, moved,
    )
    return order, nodes, copy + 1


@compiled
def evaluate(
    rows: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints, node_widths: Floats,
    order: Ints, nodes: Ints, tally: Longs, values: Longs, counts: Longs, ends: Longs, moved: Ints,
    targets: Ints, slots: Ints, coverage: Ints, fallen: Ints, steps: Ints, tops: Longs, log: Ints,
) -> tuple[Ints, Ints]:
    """Turn the coverage[t, d, n] of the targets by the base tree, order and nodes up to tops, into that without each.

    fallen[t, n] becomes the counts of the node that each target falls into without itself. Either has no lines if not needed.
    targets[t] are row numbers; slots[m] their places in both; steps[t + 1, n] is scratch.
    targets are reordered; rows are changed on the way and restored; order and nodes are used beyond tops and returned.
    With a log[L, 2] and one target every change is a rebuilt subtree that stays: (node, its replacement), closed by (-1, -1).
    """
    dimensions, weight, none = len(spans), rows.shape[1] - 1, long(-1)
    keys, own = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    facts, tried = np.empty((dimensions, FACTS), np.int64), np.empty(dimensions, np.int64)
    bounds, held = np.empty(4 * dimensions + 2, np.int64), np.empty(coverage.shape[2], np.int64)
    elsewhere = len(coverage) > 0 or len(log) > 0  # whether it matters what changes off a target's own path
    room = long(len(ends) + 4 * dimensions + 2)  # what one task can push, besides one for each target with bounds of its own
    tasks = np.empty((2 * room, TASK_STATE + 2 * dimensions), np.int32)
    task = np.empty(tasks.shape[1], np.int32)
    count, logged = long(len(targets)), 0
    tops[TASKS] = 0
    root = nodes[0, STATE:]
    push(tasks, tops, long(DESCEND), long(0), long(0), count, count, none, none, none, none, root)
    while tops[TASKS] > 0:
        tops[TASKS] -= 1
        if tops[TASKS] + room > len(tasks):
            tasks = lengthen(tasks, tops[TASKS] + room)
        for column in range(len(task)):
            task[column] = tasks[tops[TASKS], column]
        kind, node = task[KIND], long(task[NODE])
        begin, alike, stop = long(task[BEGIN]), long(task[ALIKE]), long(task[END])
        if kind == DROP:
            tops[ORDER], tops[NODES] = begin, stop
        elif kind == COMPARE:
            if elsewhere:
                push_compared(rule, numbers, attributes, spans, node_widths, nodes, task, tasks, tops)
        elif kind == OWN:
            split, following = long(task[SPLIT]), long(task[FOLLOWING])
            state = task[TASK_STATE:]
            push_own(rows, attributes, tree, nodes, node, split, following, state, targets, begin, tasks, tops)
        elif kind == DESCEND:
            part, group = order[nodes[node, START] : nodes[node, STOP]], targets[begin:stop]
            inherited = nodes[node, STATE:] if task[OWNER] < 0 else task[TASK_STATE:]
            decide(
                rows, rule, numbers, attributes, spans, tree, turns, node_widths, part, inherited, group,
                tally, values, counts, keys, own, facts, tried,
            )
            if task[OWNER] >= 0:
                own[task[OWNER]] = 1
            group_targets(group, keys, own, bounds, moved)
            owners = long(0)
            for key in range(2 * dimensions):
                owners += bounds[2 * key + 1] - bounds[2 * key]
                if key % 2 == 1 and attributes[key // 2, 0] < 0:
                    owners += bounds[2 * key] - bounds[2 * key - 1]
            if tops[TASKS] + room + owners > len(tasks):
                tasks = lengthen(tasks, tops[TASKS] + room + owners)
            since = begin
            for key in range(2 * dimensions):
                until = begin + bounds[2 * key + 1]
                if since < until:
                    follow(
                        rows, rule, attributes, tree, turns, nodes, node, inherited, key, targets,
                        since, begin + bounds[2 * key], until, tasks, tops, facts, tried, ends, moved,
                    )
                since = until
            if since < stop and len(log) > 0:
                owner = long(targets[since])
                push(tasks, tops, long(REBUILD), node, since, since, stop, none, none, none, owner, inherited)
            elif since < stop:
                was_class = nodes[node, ATTRIBUTE] < 0
                if not was_class:
                    cover(rows, order, nodes, node, none, targets[since:stop], slots, coverage, values, steps)
                settle_class(
                    rows, rule, part, inherited, was_class, targets[since:stop], slots, attributes, facts, coverage, fallen,
                    held,
                )
        else:
            end, used, removed = tops[ORDER], tops[NODES], task[OWNER]
            if removed >= 0:
                cover(rows, order, nodes, node, none, targets[begin:stop], slots, coverage, values, steps)
            order, nodes, first = plant(rows, attributes, tree, turns, order, nodes, task, tops, ends, moved)
            if removed >= 0:
                rows[removed, weight] -= 1
            nodes, tops[NODES] = grow(
                rows, rule, numbers, attributes, spans, tree, turns, node_widths, order, nodes, first, tops[NODES],
                tally, values, counts, ends, moved,
            )
            nodes[used, PAST] = tops[NODES]
            old = none if removed >= 0 else node
            cover(rows, order, nodes, old, used, targets[begin:stop], slots, coverage, values, steps)
            if removed >= 0:
                if len(fallen) > 0:
                    count_fallen(rows, order, nodes, used, rows[removed], fallen[slots[removed]])
                rows[removed, weight] += 1
            if len(log) > 0:
                log[logged, 0], log[logged, 1] = node, used
                logged += 1
                continue
            if kind == REBUILD:
                tops[ORDER], tops[NODES] = end, used
                continue
            for below in range(tops[TASKS] - (stop - alike), tops[TASKS]):
                tasks[below, NODE] = used
            drop = tasks[tops[TASKS] - (stop - alike) - 1]
            drop[BEGIN], drop[END] = end, used
            push_children(
                rows, attributes, tree, turns, nodes, used, long(task[SPLIT]), task[TASK_STATE:], targets, begin, alike,
                tasks, tops, ends, moved,
            )
    if logged < len(log):
        log[logged, 0], log[logged, 1] = -1, -1
    return order, nodes
