"""What Mondrian would do at one node if one of the node's records were removed, for many records at once.

Rows, parts, nodes, rules and the scratch arrays are those of kernels.mondrian and kernels.weigh. A target is a row number.
The order in which attributes are tried depends on the inherited widths only, so it is the same for all targets.

facts[d, 9] says, for each numeric attribute tried, what a target needs to know: the bounds of the node, the split for targets
above and not above it, and the value that follows; *_WITHOUT is that value for the target that holds it (-1: none is left).
keys[record]: 2 a (the split ABOVE, or categorical) or 2 a + 1 (BELOW, or categorical where the target is all there is of its
child) for a split on attribute a, 2 d for a class.
own[record]: 1 where the target alone changes a bound that children inherit.
"""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import inner, long
from dit_dask.kernels.mondrian import is_tightened, measure, turn_at, widest
from dit_dask.kernels.predicates import BROKEN, ONLY, SEEN, SIZE, VERDICT, Rule, is_valid, summarise
from dit_dask.kernels.weigh import EXTRA, Floats, Ints, Longs, clear_parts, count_parts, side, weigh

LOW, LOW_WITHOUT, HIGH, HIGH_WITHOUT, ABOVE, ABOVE_NEXT, ABOVE_NEXT_WITHOUT, BELOW, BELOW_NEXT = range(9)
FACTS = 9


@inner
def split_facts(values: Longs, found: int, size: int, need: int, facts: Longs) -> tuple[int, int]:
    """Set facts[9] from the values[2, found] of a node of this size; return the weights up to both splits (-1: no split)."""
    last = found - 1
    facts[LOW], facts[HIGH] = values[0, 0], values[0, last]
    facts[LOW_WITHOUT], facts[HIGH_WITHOUT] = facts[LOW], facts[HIGH]
    if values[1, 0] == 1:
        facts[LOW_WITHOUT] = values[0, 1] if last > 0 else -1
    if values[1, last] == 1:
        facts[HIGH_WITHOUT] = values[0, last - 1] if last > 0 else -1
    for column in range(ABOVE, FACTS):
        facts[column] = -1
    middle = (size - 1) // 2
    if middle < need:
        return -1, -1
    position, reached = 0, values[1, 0]
    while reached < middle:
        position += 1
        reached += values[1, position]
    left_above = reached
    facts[ABOVE] = values[0, position]
    if position < last:
        following = position + 1
        facts[ABOVE_NEXT] = facts[ABOVE_NEXT_WITHOUT] = values[0, following]
        if values[1, following] == 1:
            facts[ABOVE_NEXT_WITHOUT] = values[0, following + 1] if following < last else -1
    if reached - 1 < middle:  # a target at or below the split reduces the reached weight by one
        position += 1
        reached += values[1, position]
    facts[BELOW] = values[0, position]
    if position < last:
        facts[BELOW_NEXT] = values[0, position + 1]
    return left_above, reached


@inner
def judge_side(count: Longs, rule: Rule, verdict: Longs) -> None:
    """Set verdict[n]: whether a part with these secrets stays valid without a record of each secret that targets may have."""
    only = rule[3][ONLY]
    summarise(count, rule)
    for secret in range(len(count) - EXTRA):
        is_asked = count[secret] > 0 and (only < 0 or secret == only)
        verdict[secret] = is_asked and is_valid(count, secret, rule)


@inner
def judge_splits(
    rows: Ints, part: Ints, attribute: int, size: int, rule: Rule, turns: Ints, left_above: int, left_below: int, facts: Longs,
    counts: Longs, verdicts: Longs,
) -> None:
    """Set verdicts[2, n]: whether the split of targets above, and of those not above, is valid for a target of each secret."""
    need, diverse, strict = rule[0], rule[1], rule[2]
    secrets = verdicts.shape[1]
    above = not strict or size - 1 - left_above >= need
    below = not strict or size - left_below >= need
    for secret in range(secrets):
        verdicts[0, secret], verdicts[1, secret] = above, below
    if not diverse:
        return
    for which in range(2):
        split = facts[ABOVE] if which == 0 else facts[BELOW]
        if which == 0 or split != facts[ABOVE]:
            clear_parts(rows, part, attribute, turns, long(-1), counts)
            count_parts(rows, part, attribute, split, turns, long(-1), diverse, counts)
        other = counts[which]  # the side that the target is not on: left of it for those above
        summarise(other, rule)
        whole = is_valid(other, long(-1), rule)
        judge_side(counts[1 - which], rule, verdicts[which])
        for secret in range(secrets):
            verdicts[which, secret] = verdicts[which, secret] > 0 and whole
    clear_parts(rows, part, attribute, turns, long(-1), counts)


@inner
def decide_numeric(
    rows: Ints, targets: Ints, attribute: int, tightened: bool, facts: Longs, verdicts: Longs, keys: Ints, own: Ints
) -> int:
    """Set the key of each undecided target for which the attribute splits; return their number."""
    secret = rows.shape[1] - 2
    decided = 0
    for record in targets:
        if keys[record] >= 0:
            continue
        code = rows[record, attribute]
        if tightened and (
            (code == facts[LOW] and facts[LOW_WITHOUT] != code) or (code == facts[HIGH] and facts[HIGH_WITHOUT] != code)
        ):
            own[record] = 1
        if code > facts[ABOVE]:
            following = facts[ABOVE_NEXT_WITHOUT] if code == facts[ABOVE_NEXT] else facts[ABOVE_NEXT]
            if following >= 0 and verdicts[0, rows[record, secret]] > 0:
                keys[record] = 2 * attribute
                decided += 1
                if following != facts[ABOVE_NEXT]:
                    own[record] = 1
        elif facts[BELOW_NEXT] >= 0 and verdicts[1, rows[record, secret]] > 0:
            keys[record] = 2 * attribute + (facts[BELOW] != facts[ABOVE])
            decided += 1
    return decided


@inner
def count_spoiled(rows: Ints, part: Ints, attribute: int, turns: Ints, turn: int, rule: Rule, counts: Longs) -> int:
    """Fill counts down a hierarchy and summarise them; return how many parts are not valid."""
    need, diverse = rule[0], rule[1]
    secrets = counts.shape[1] - EXTRA
    count_parts(rows, part, attribute, long(-1), turns, turn, diverse, counts)
    spoiled = long(0)
    for record in part:
        count = counts[side(rows[record, attribute], long(-1), turns, turn)]
        if count[secrets + SEEN] == 0:
            count[secrets + SEEN] = 1
            if diverse:
                summarise(count, rule)
                count[secrets + BROKEN] = not is_valid(count, long(-1), rule)
            else:
                count[secrets + BROKEN] = count[secrets + SIZE] < need
            spoiled += count[secrets + BROKEN]
    return spoiled


@inner
def is_spoiled_without(count: Longs, secret: int, rule: Rule) -> bool:
    """Return whether a part that has more than one record is not valid without one of this secret."""
    secrets = len(count) - EXTRA
    if not rule[1]:
        return count[secrets + SIZE] - 1 < rule[0]
    if rule[3][ONLY] < 0:
        return not is_valid(count, secret, rule)
    if count[secrets + VERDICT] == 0:  # the same for all targets, and not a matter of a few operations
        count[secrets + VERDICT] = 2 if is_valid(count, secret, rule) else 1
    return count[secrets + VERDICT] == 1


@inner
def decide_categorical(
    rows: Ints, part: Ints, targets: Ints, attribute: int, rule: Rule, turns: Ints, turn: int, counts: Longs, keys: Ints
) -> int:
    """Set the key of each undecided target without which all children are valid; return their number."""
    secret, secrets = rows.shape[1] - 2, counts.shape[1] - EXTRA
    spoiled = count_spoiled(rows, part, attribute, turns, turn, rule, counts)
    decided = 0
    for record in targets:
        if keys[record] >= 0:
            continue
        count = counts[side(rows[record, attribute], long(-1), turns, turn)]
        left = spoiled - count[secrets + BROKEN]
        vanishes = count[secrets + SIZE] == 1  # an empty child is ignored
        if left == 0 and (vanishes or not is_spoiled_without(count, long(rows[record, secret]), rule)):
            keys[record] = 2 * attribute + vanishes
            decided += 1
    clear_parts(rows, part, attribute, turns, turn, counts)
    return decided


@inner
def decide(
    rows: Ints, rule: Rule, numbers: Floats, attributes: Ints, spans: Floats, tree: Ints, turns: Ints, node_widths: Floats,
    part: Ints, state: Ints, targets: Ints, tally: Longs, values: Longs, counts: Longs,
    keys: Ints, own: Ints, facts: Longs, tried: Longs,
) -> None:
    """Set keys and own of all targets at a node with this part and inherited state; facts[d, 9]; tried[d] in order (or -1)."""
    weight, dimensions = rows.shape[1] - 1, len(spans)
    widths, verdicts = np.empty(dimensions), np.empty((2, counts.shape[1] - EXTRA), np.int64)
    measure(state, numbers, attributes, spans, node_widths, widths)
    size = long(0)
    for record in part:
        size += rows[record, weight]
    for record in targets:
        keys[record], own[record] = -1, 0
    undecided = len(targets)
    for place in range(dimensions):
        tried[place] = -1
        if undecided == 0:
            continue
        attribute = widest(widths)
        tried[place], widths[attribute] = attribute, -1.0
        node = long(state[2 * attribute])
        if attributes[attribute, 0] >= 0:
            found = weigh(rows, part, attribute, tally, values)
            left_above, left_below = split_facts(values, found, size, rule[0], facts[attribute])
            if left_above >= 0:
                judge_splits(
                    rows, part, attribute, size, rule, turns, left_above, left_below, facts[attribute], counts, verdicts
                )
            tightened = is_tightened(rule)
            undecided -= decide_numeric(rows, targets, attribute, tightened, facts[attribute], verdicts, keys, own)
        elif tree[node, 3] > 0 and size > 1:
            turn = turn_at(attributes, tree, attribute, node)
            undecided -= decide_categorical(rows, part, targets, attribute, rule, turns, turn, counts, keys)
    for record in targets:
        if keys[record] < 0:
            keys[record] = 2 * dimensions
