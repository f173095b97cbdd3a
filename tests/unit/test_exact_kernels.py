"""Each kernel of the exact engine alone, compiled, on arrays small enough to check by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from sklearn.naive_bayes import BernoulliNB

from dit_dask.kernels import exact_coverage, exact_engine, exact_outcomes, exact_tasks, mondrian, weigh
from dit_dask.kernels.exact_outcomes import (
    ABOVE,
    ABOVE_NEXT,
    ABOVE_NEXT_WITHOUT,
    BELOW,
    BELOW_NEXT,
    HIGH,
    HIGH_WITHOUT,
    LOW,
    LOW_WITHOUT,
)
from dit_dask.sanitizers.predicates import Predicates


def call(kernel: Any, arguments: int) -> Callable[..., Any]:
    """Give a kernel that only kernels call an entry from Python."""
    names = ", ".join(f"a{index}" for index in range(arguments))
    scope = {"kernel": kernel}
    exec(f"def enter({names}):\n    return kernel({names})", scope)
    return njit(scope["enter"])


def rows_of(*rows: tuple[int, ...]) -> np.ndarray:
    """Codes, secret, weight of each record."""
    return np.array(rows, np.int32)


@pytest.mark.parametrize("count", [1, 2, 39, 40, 41, 500])
@pytest.mark.parametrize("levels", [2, 60, 100_000])
def test_weigh_lists_sorted_codes_with_their_weights(count: int, levels: int) -> None:
    rng = np.random.default_rng(count)
    rows = np.column_stack([rng.integers(0, levels, count), np.zeros(count), rng.integers(1, 4, count)]).astype(np.int32)
    tally, values = np.zeros(levels, np.int64), np.empty((2, levels), np.int64)
    part = rng.permutation(count).astype(np.int32)
    found = call(weigh.weigh, 5)(rows, part, 0, tally, values)
    codes, place = np.unique(rows[:, 0], return_inverse=True)
    np.testing.assert_array_equal(values[0, :found], codes)
    np.testing.assert_array_equal(values[1, :found], np.bincount(place, rows[:, 2]))
    assert not tally.any()


@pytest.mark.parametrize("top", [1, 2, 1000, 1024, 1 << 21, 1 << 30])
def test_sort_orders_any_range_of_codes(top: int) -> None:
    values = np.zeros((2, 300), np.int64)
    values[0] = np.random.default_rng(top).integers(0, top, 300)
    expected = np.sort(values[0])
    call(weigh.sort, 2)(values, 300)
    np.testing.assert_array_equal(values[0], expected)


def test_arrange_is_stable_and_says_where_each_side_ends() -> None:
    rows = rows_of((3, 0, 1), (1, 0, 1), (2, 0, 1), (0, 0, 1))
    part, ends = np.array([0, 1, 2, 3], np.int32), np.empty(2, np.int64)
    call(weigh.arrange, 9)(rows, part, 0, 1, np.zeros(0, np.int32), -1, 2, ends, np.empty(4, np.int32))
    assert part.tolist() == [1, 3, 0, 2]
    assert ends.tolist() == [2, 4]


def test_counting_parts_down_a_hierarchy_leaves_no_trace_after_clearing() -> None:
    rows = rows_of((0, 1, 2), (1, 0, 1), (2, 1, 4))
    turns, part = np.array([0, 0, 1], np.int32), np.arange(3, dtype=np.int32)
    counts = np.zeros((2, 2 + weigh.EXTRA), np.int64)
    call(weigh.count_parts, 8)(rows, part, 0, -1, turns, 0, True, counts)
    assert counts[:, :4].tolist() == [[1, 2, 3, 2], [0, 4, 4, 4]]
    call(weigh.clear_parts, 6)(rows, part, 0, turns, 0, counts)
    assert not counts.any()


def facts_of(codes: list[int], weights: list[int], need: int) -> np.ndarray:
    values, facts = np.array([codes, weights], np.int64), np.empty(9, np.int64)
    call(exact_outcomes.split_facts, 5)(values, len(codes), sum(weights), need, facts)
    return facts


def test_targets_on_both_sides_of_an_even_node_have_different_medians() -> None:
    facts = facts_of([10, 20, 30, 40, 50, 60], [1] * 6, 2)
    assert (facts[ABOVE], facts[ABOVE_NEXT], facts[ABOVE_NEXT_WITHOUT]) == (20, 30, 40)
    assert (facts[BELOW], facts[BELOW_NEXT]) == (30, 40)


def test_a_value_held_more_than_once_does_not_disappear() -> None:
    facts = facts_of([10, 20, 30], [2, 3, 2], 2)
    assert (facts[LOW], facts[LOW_WITHOUT], facts[HIGH], facts[HIGH_WITHOUT]) == (10, 10, 30, 30)
    assert (facts[ABOVE], facts[ABOVE_NEXT], facts[ABOVE_NEXT_WITHOUT]) == (20, 30, 30)


def test_a_sole_last_value_leaves_no_right_side() -> None:
    facts = facts_of([10, 20, 30], [2, 3, 1], 2)
    assert (facts[ABOVE], facts[ABOVE_NEXT], facts[ABOVE_NEXT_WITHOUT]) == (10, 20, 20)
    facts = facts_of([10, 20], [5, 1], 2)
    assert (facts[ABOVE_NEXT], facts[ABOVE_NEXT_WITHOUT], facts[HIGH_WITHOUT]) == (20, -1, 10)


def test_a_node_too_small_to_split_has_bounds_only() -> None:
    facts = facts_of([10, 20], [2, 2], 2)
    assert facts.tolist() == [10, 10, 20, 20, -1, -1, -1, -1, -1]


def test_only_the_sole_most_frequent_secret_lowers_the_maximum() -> None:
    verdict = np.empty(3, np.int64)
    judge = call(exact_outcomes.judge_side, 3)
    rule, rest = Predicates(l=2).rule(np.array([9, 9, 9])), [0] * (weigh.EXTRA - 2)
    judge(np.array([3, 1, 2, 6, 3, *rest]), rule, verdict)  # without one of five: 3 of 5 is too many, 2 of 5 is not
    assert verdict.tolist() == [1, 0, 0]
    judge(np.array([2, 2, 0, 4, 2, *rest]), rule, verdict)
    assert verdict.tolist() == [0, 0, 0]


def test_targets_are_grouped_by_key_and_then_by_own_bounds() -> None:
    keys, own = np.array([2, 0, 2, 0, 1], np.int32), np.array([1, 0, 0, 1, 0], np.int32)
    targets, bounds = np.arange(5, dtype=np.int32), np.empty(6, np.int64)
    call(exact_engine.group_targets, 5)(targets, keys, own, bounds, np.empty(5, np.int32))
    assert targets.tolist() == [1, 3, 4, 2, 0]
    assert bounds.tolist() == [1, 2, 3, 3, 4, 5]


def test_tasks_are_stacked_with_their_states() -> None:
    push = call(exact_tasks.push, 12)
    tasks, tops, state = np.zeros((9, exact_tasks.TASK_STATE + 2), np.int32), np.zeros(3, np.int64), np.array([7, 8], np.int32)
    for node in range(4):
        push(tasks, tops, 0, node, 0, 0, 1, -1, -1, -1, -1, state)
    assert tops[2] == 4
    assert tasks[:4, 1].tolist() == list(range(4))
    assert (tasks[:4, -2:] == state).all()


def test_lengthening_keeps_all_lines() -> None:
    nodes = np.arange(12, dtype=np.int32).reshape(4, 3)
    longer = call(mondrian.lengthen, 2)(nodes, 5)
    assert longer.shape == (10, 3)
    assert (longer[:4] == nodes).all()


@pytest.mark.parametrize("levels", [5, 40, 10_000])
def test_few_and_many_targets_are_covered_alike(levels: int) -> None:
    rng = np.random.default_rng(levels)
    rows = np.column_stack([rng.integers(0, levels, (80, 2)), rng.integers(0, 3, 80), rng.integers(1, 3, 80)]).astype(np.int32)
    order, nodes = np.arange(80, dtype=np.int32), np.zeros((21, mondrian.STATE + 8), np.int32)
    nodes[0, [mondrian.FIRST, mondrian.COUNT, mondrian.PAST]] = 1, 20, 21
    for leaf in range(1, 21):
        nodes[leaf, [mondrian.ATTRIBUTE, mondrian.START, mondrian.STOP]] = -1, 4 * leaf - 4, 4 * leaf
        nodes[leaf, -4:] = np.sort(rng.integers(0, levels, (2, 2)), axis=1).ravel()
    targets, slots = rng.permutation(80)[:30].astype(np.int32), np.zeros(80, np.int32)
    slots[targets] = np.arange(30)
    one_by_one, together = np.zeros((2, 30, 2, 3), np.int32)
    values, steps = np.empty((2, max(levels, 80)), np.int64), np.empty((31, 3), np.int32)
    for target in range(30):
        exact_coverage.cover(rows, order, nodes, -1, 0, targets[target : target + 1], slots, one_by_one, values, steps)
    exact_coverage.cover(rows, order, nodes, -1, 0, targets, slots, together, values, steps)
    np.testing.assert_array_equal(one_by_one, together)
    exact_coverage.cover(rows, order, nodes, 3, 5, targets, slots, together, values, steps)
    exact_coverage.cover(rows, order, nodes, 5, 3, targets, slots, together, values, steps)
    np.testing.assert_array_equal(one_by_one, together)


@pytest.mark.parametrize("attributes", [1, 5, 400])
def test_posterior_is_that_of_scikit_learn(attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    features, secret = rng.integers(0, 2, (60, attributes)), rng.integers(0, 3, 60)
    coverage = np.array([[np.bincount(secret[column > 0], minlength=4) for column in features.T]], np.int32)
    totals = np.bincount(secret, minlength=4)
    (found,) = exact_coverage.posterior(coverage, totals, np.array([-1], np.int32))
    (expected,) = BernoulliNB().fit(features, secret).predict_proba(np.ones((1, attributes)))
    # scikit-learn adds logarithms: their error grows with the number of attributes
    np.testing.assert_allclose(found, [*expected, 0.0], rtol=1e-10)


def test_a_class_of_one_record_vanishes_with_it() -> None:
    coverage, totals = np.array([[[0, 2], [0, 1]]], np.int32), np.array([1, 2])
    assert exact_coverage.posterior(coverage, totals, np.array([0], np.int32)).tolist() == [[0.0, 1.0]]
