"""All leave-one-outs of a Mondrian tree in one descent (docs/exact-engine.md).

Work waits on an explicit stack, tasks[T, 8 + 2 d]: kind, node, begin, stop, attribute, split, following, removed; and a state.
    DESCEND  targets[begin:stop] are to be evaluated inside a node that was built from all records
    BRANCH   they split the node in another way than it is split: grow that tree, then descend in it
    REBUILD  the one target changes what the node inherits or is alone in how it splits it: grow the node from the state, without
             the target if it is one of its records (removed >= 0)
    DROP     forget the trees grown since `order` and `nodes` ended at begin and stop
Doing a task adds to a target's coverage the classes that the node has without the target, and takes away those it has with it.
Trees other than the base tree are grown behind it in `order` and `nodes`; tops[3] says where both end and how many tasks wait.

The other arguments are those of kernels.mondrian, kernels.exact_outcomes and kernels.exact_coverage.
"""

import numpy as np

from dit_dask.kernels.exact_coverage import cover
from dit_dask.kernels.exact_outcomes import (
    ABOVE, ABOVE_NEXT, ABOVE_NEXT_WITHOUT, BELOW, BELOW_NEXT, FACTS, HIGH, HIGH_WITHOUT, LOW, LOW_WITHOUT, decide,
)
from dit_dask.kernels.mondrian import (
    ATTRIBUTE, COUNT, FIRST, LEAST, MOST, PAST, START, STATE, STOP, Rule, add_children, grow, lengthen, set_child, turn_at,
)
from dit_dask.kernels.weigh import Floats, Ints, Longs, arrange, compiled

DESCEND, BRANCH, REBUILD, DROP = range(4)
KIND, NODE, BEGIN, END, SPLIT_ON, SPLIT, FOLLOWING, REMOVED, TASK_STATE = range(9)
ORDER, NODES, TASKS = range(3)
REBUILD_UP_TO = 2  # targets of a group that are cheaper to rebuild one by one than to branch for


@compiled
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


@compiled
def tighten(line: Ints, codes: Ints, attribute: int, attributes: Ints, facts: Longs, tried: Longs, state: Ints) -> None:
    """Set state[2 d] to the node's after trying the attribute, for the target with these codes (empty: for those without a bound of their own)."""
    for column in range(len(state)):
        state[column] = line[STATE + column]
    for tested in tried:
        if tested >= 0 and attributes[tested, 0] >= 0:
            fact = facts[tested]
            low, high = fact[LOW], fact[HIGH]
            state[2 * tested] = fact[LOW_WITHOUT] if len(codes) > 0 and codes[tested] == low else low
            state[2 * tested + 1] = fact[HIGH_WITHOUT] if len(codes) > 0 and codes[tested] == high else high
        if tested == attribute:
            return


@compiled
def settle_class(
    rows: Ints, part: Ints, was_class: bool, targets: Ints, slots: Ints, attributes: Ints, facts: Longs, coverage: Ints, held: Longs
) -> None:
    """Let the node be one class without the target; one that it was before is taken away. held[n] is scratch."""
    secret, weight = rows.shape[1] - 2, rows.shape[1] - 1
    for value in range(len(held)):
        held[value] = 0
    for record in part:
        held[rows[record, secret]] += rows[record, weight]
    for target in targets:
        for attribute in range(len(attributes)):
            mine, fact, code = coverage[slots[target], attribute], facts[attribute], rows[target, attribute]
            outside = attributes[attribute, 0] >= 0 and (
                (code == fact[LOW] and fact[LOW_WITHOUT] != code) or (code == fact[HIGH] and fact[HIGH_WITHOUT] != code)
            )
            times = (0 if outside else 1) - (1 if was_class else 0)
            for value in range(len(held) if times != 0 else 0):
                mine[value] += times * held[value]
            if not outside:
                mine[rows[target, secret]] -= 1


@compiled
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


@compiled
def push(tasks: Ints, tops: Longs, kind: int, node: int, begin: int, stop: int) -> Ints:
    """Put a task on the stack; return the stack, perhaps lengthened."""
    top = tops[TASKS]
    if top == len(tasks):
        tasks = lengthen(tasks, top)
    tasks[top, KIND], tasks[top, NODE], tasks[top, BEGIN], tasks[top, END] = kind, node, begin, stop
    tasks[top, REMOVED] = -1
    tops[TASKS] = top + 1
    return tasks


@compiled
def push_children(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, nodes: Ints, parent: int, above: int, split: int, targets: Ints,
    begin: int, stop: int, tasks: Ints, tops: Longs, ends: Longs, moved: Ints,
) -> Ints:
    """Send targets[begin:stop] down to the children of the parent that hold them; above: the hierarchy node that was split."""
    attribute = np.int64(nodes[parent, ATTRIBUTE])
    numeric = attributes[attribute, 0] >= 0
    turn = turn_at(attributes, tree, attribute, above)
    parts = np.int64(2 if numeric else tree[above, 3])
    arrange(rows, targets[begin:stop], attribute, split, turns, turn, parts, ends, moved)
    first = np.int64(nodes[parent, FIRST])
    for child in range(first, first + nodes[parent, COUNT]):
        index = child - first if numeric else nodes[child, STATE + 2 * attribute] - tree[above, 2]
        since = begin + (ends[index - 1] if index > 0 else 0)
        if since < begin + ends[index]:
            tasks = push(tasks, tops, np.int64(DESCEND), child, since, begin + ends[index])
    return tasks


@compiled
def push_own(
    rows: Ints, attributes: Ints, tree: Ints, nodes: Ints, parent: int, split: int, following: int, targets: Ints, place: int,
    tasks: Ints, tops: Longs, state: Ints, line: Ints,
) -> Ints:
    """Send one target down a parent of this tightened state; children that inherit another state than they had are rebuilt."""
    attribute = np.int64(nodes[parent, ATTRIBUTE])
    numeric = attributes[attribute, 0] >= 0
    code = rows[targets[place], attribute]
    first = np.int64(nodes[parent, FIRST])
    for child in range(first, first + nodes[parent, COUNT]):
        index = child - first if numeric else nodes[child, STATE + 2 * attribute] - tree[state[2 * attribute], 2]
        set_child(line, state, index, attribute, split, following, attributes, tree)
        inside = nodes[child, LEAST] <= code <= nodes[child, MOST]
        equal = True
        for column in range(STATE, STATE + len(state)):
            equal = equal and line[column] == nodes[child, column]
        if not equal:
            tasks = push(tasks, tops, np.int64(REBUILD), child, place, place + 1)
            top = tops[TASKS] - 1
            tasks[top, REMOVED] = targets[place] if inside else -1
            for column in range(len(state)):
                tasks[top, TASK_STATE + column] = line[STATE + column]
        elif inside:
            tasks = push(tasks, tops, np.int64(DESCEND), child, place, place + 1)
    return tasks


@compiled
def push_other(
    nodes: Ints, node: int, attribute: int, split: int, following: int, targets: Ints, begin: int, alike: int, stop: int,
    tasks: Ints, tops: Longs, state: Ints,
) -> Ints:
    """Leave the node's own tree: branch for the targets up to `alike`, which tighten the node to this state; rebuild for the others, or if few."""
    if alike - begin > REBUILD_UP_TO:
        tasks = push(tasks, tops, np.int64(BRANCH), node, begin, alike)
        top = tops[TASKS] - 1
        tasks[top, SPLIT_ON], tasks[top, SPLIT], tasks[top, FOLLOWING] = attribute, split, following
        for column in range(len(state)):
            tasks[top, TASK_STATE + column] = state[column]
        begin = alike
    for place in range(begin, stop):
        tasks = push(tasks, tops, np.int64(REBUILD), node, place, place + 1)
        top = tops[TASKS] - 1
        tasks[top, REMOVED] = targets[place]
        for column in range(len(state)):
            tasks[top, TASK_STATE + column] = nodes[node, STATE + column]
    return tasks


@compiled
def follow(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, nodes: Ints, node: int, key: int, targets: Ints,
    begin: int, alike: int, stop: int, tasks: Ints, tops: Longs, facts: Longs, tried: Longs, ends: Longs, moved: Ints,
) -> Ints:
    """Put what a group of targets with one key needs on the stack; from `alike` on they have bounds of their own."""
    state, line = np.empty(2 * len(attributes), np.int32), np.empty(nodes.shape[1], np.int32)
    attribute = np.int64(key // 2)
    numeric = attributes[attribute, 0] >= 0
    fact = facts[attribute]
    split, following = np.int64(-1), np.int64(-1)
    if numeric:
        split, following = (fact[BELOW], fact[BELOW_NEXT]) if key % 2 else (fact[ABOVE], fact[ABOVE_NEXT])
    tighten(nodes[node], rows[0, :0], attribute, attributes, facts, tried, state)
    same = nodes[node, ATTRIBUTE] == attribute and (not numeric or nodes[nodes[node, FIRST], MOST] == split)
    if not same:
        return push_other(nodes, node, attribute, split, following, targets, begin, alike, stop, tasks, tops, state)
    if begin < alike:
        above = np.int64(state[2 * attribute])
        tasks = push_children(
            rows, attributes, tree, turns, nodes, node, above, split, targets, begin, alike, tasks, tops, ends, moved
        )
    for place in range(alike, stop):
        codes = rows[targets[place]]
        tighten(nodes[node], codes, attribute, attributes, facts, tried, state)
        mine = fact[ABOVE_NEXT_WITHOUT] if numeric and codes[attribute] == following else following
        tasks = push_own(rows, attributes, tree, nodes, node, split, mine, targets, place, tasks, tops, state, line)
    return tasks


@compiled
def plant(
    rows: Ints, attributes: Ints, tree: Ints, turns: Ints, order: Ints, nodes: Ints, task: Ints, tops: Longs,
    ends: Longs, moved: Ints,
) -> tuple[Ints, Ints, int]:
    """Copy the task's node behind the trees; return order, nodes and the first line to grow: the copy or, of a branch, its children."""
    copy = tops[NODES]
    if copy == len(nodes):
        nodes = lengthen(nodes, copy)
    source, removed = task[NODE], task[REMOVED]
    sole = removed >= 0 and rows[removed, rows.shape[1] - 1] == 1
    nodes[copy, START] = tops[ORDER]
    order, tops[ORDER] = copy_part(
        order, nodes[source, START], nodes[source, STOP], tops[ORDER], np.int64(removed if sole else -1)
    )
    nodes[copy, STOP], nodes[copy, ATTRIBUTE] = tops[ORDER], -1
    for column in range(2 * len(attributes)):
        nodes[copy, STATE + column] = task[TASK_STATE + column]
    tops[NODES] = copy + 1
    if task[KIND] == REBUILD:
        return order, nodes, copy
    attribute = np.int64(task[SPLIT_ON])
    state = task[TASK_STATE:]
    parts = np.int64(2 if attributes[attribute, 0] >= 0 else tree[state[2 * attribute], 3])
    nodes, tops[NODES] = add_children(
        rows, attributes, tree, turns, order, nodes, copy, tops[NODES], state, attribute, parts,
        np.int64(task[SPLIT]), np.int64(task[FOLLOWING]), ends, moved,
    )
    return order, nodes, copy + 1


@compiled
def evaluate(
    rows: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints, node_widths: Floats,
    order: Ints, nodes: Ints, tally: Longs, values: Longs, counts: Longs, ends: Longs, moved: Ints,
    targets: Ints, slots: Ints, coverage: Ints, steps: Ints,
) -> None:
    """Turn the coverage[t, d, n] of the targets by the base tree, order[m] and nodes[N, 8 + 4 d], into that without each of them.

    targets[t] are row numbers; slots[m] their places in coverage; steps[2 t + 1, n] is scratch. targets are reordered; rows are changed on the way and restored.
    """
    dimensions, weight = len(spans), rows.shape[1] - 1
    keys, own = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    facts, tried = np.empty((dimensions, FACTS), np.int64), np.empty(dimensions, np.int64)
    bounds, held = np.empty(4 * dimensions + 2, np.int64), np.empty(coverage.shape[2], np.int64)
    tops = np.array([len(order), len(nodes), 0])
    tasks = np.empty((64, TASK_STATE + 2 * dimensions), np.int32)
    tasks = push(tasks, tops, np.int64(DESCEND), np.int64(0), np.int64(0), np.int64(len(targets)))
    task = np.empty(tasks.shape[1], np.int32)
    while tops[TASKS] > 0:
        tops[TASKS] -= 1
        for column in range(len(task)):
            task[column] = tasks[tops[TASKS], column]
        node, begin, stop = np.int64(task[NODE]), np.int64(task[BEGIN]), np.int64(task[END])
        if task[KIND] == DROP:
            tops[ORDER], tops[NODES] = begin, stop
        elif task[KIND] == DESCEND:
            part, group = order[nodes[node, START] : nodes[node, STOP]], targets[begin:stop]
            decide(
                rows, rule, numbers, attributes, spans, tree, turns, node_widths, part, nodes[node], group,
                tally, values, counts, keys, own, facts, tried,
            )
            group_targets(group, keys, own, bounds, moved)
            since = begin
            for key in range(2 * dimensions):
                alike, until = begin + bounds[2 * key], begin + bounds[2 * key + 1]
                if since < until:
                    tasks = follow(
                        rows, attributes, tree, turns, nodes, node, key, targets, since, alike, until, tasks, tops,
                        facts, tried, ends, moved,
                    )
                since = until
            if since < stop:
                was_class = nodes[node, ATTRIBUTE] < 0
                if not was_class:
                    cover(rows, order, nodes, node, targets[since:stop], slots, np.int64(-1), coverage, values, steps)
                settle_class(rows, part, was_class, targets[since:stop], slots, attributes, facts, coverage, held)
        else:
            end, used, removed = tops[ORDER], tops[NODES], task[REMOVED]
            cover(rows, order, nodes, node, targets[begin:stop], slots, np.int64(-1), coverage, values, steps)
            order, nodes, first = plant(rows, attributes, tree, turns, order, nodes, task, tops, ends, moved)
            if removed >= 0:
                rows[removed, weight] -= 1
            nodes, tops[NODES] = grow(
                rows, rule, numbers, attributes, spans, tree, turns, node_widths, order, nodes, first, tops[NODES],
                tally, values, counts, ends, moved,
            )
            nodes[used, PAST] = tops[NODES]
            cover(rows, order, nodes, used, targets[begin:stop], slots, np.int64(1), coverage, values, steps)
            if removed >= 0:
                rows[removed, weight] += 1
            if task[KIND] == REBUILD:
                tops[ORDER], tops[NODES] = end, used
            else:
                tasks = push(tasks, tops, np.int64(DROP), np.int64(-1), end, used)
                above = np.int64(task[TASK_STATE + 2 * task[SPLIT_ON]])
                tasks = push_children(
                    rows, attributes, tree, turns, nodes, used, above, np.int64(task[SPLIT]), targets, begin, stop, tasks, tops,
                    ends, moved,
                )
