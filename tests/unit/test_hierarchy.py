from __future__ import annotations

import numpy as np
import pytest

from dit_dask.errors import InputError
from dit_dask.values.hierarchy import Hierarchy, build, flat, missing_leaf, parse

UNEQUAL = "Lyon;France;Europe;*\nOslo;Europe;*\nNice;France;Europe;*\nMoon;*\n"


def test_leaves_are_in_depth_first_order_so_that_every_node_is_a_range() -> None:
    tree = parse(UNEQUAL, "towns.csv")
    assert tree.leaves == ("Lyon", "Nice", "Oslo", "Moon")
    covered = {name: tree.leaves[low : high + 1] for name, low, high in zip(tree.names, tree.low, tree.high, strict=True)}
    assert covered["France"] == ("Lyon", "Nice")
    assert covered["Europe"] == ("Lyon", "Nice", "Oslo")
    assert covered["*"] == tree.leaves


def test_children_of_a_node_are_neighbours() -> None:
    tree = parse(UNEQUAL, "towns.csv")
    assert sum(tree.child_count) == len(tree.names) - 1  # every node but the root
    for node, (first, count) in enumerate(zip(tree.first_child, tree.child_count, strict=True)):
        assert all(tree.parent[first : first + count] == node)


def test_a_depth_first_walk_meets_what_is_below_a_node_right_after_it() -> None:
    tree = parse(UNEQUAL, "towns.csv")
    place, behind = tree.preorder()
    assert sorted(place.tolist()) == list(range(len(tree.names)))
    for node in range(len(tree.names)):
        below = [other for other in range(len(tree.names)) if place[node] <= place[other] < behind[node]]
        ancestors = {other: _above(tree, other) for other in range(len(tree.names))}
        assert below == [other for other in ancestors if node in ancestors[other]]
    leaves = sorted(np.flatnonzero(tree.child_count == 0), key=lambda node: place[node])
    assert [tree.names[node] for node in leaves] == list(tree.leaves)


def _above(tree: Hierarchy, node: int) -> list[int]:
    """A node and all nodes above it."""
    return [node] if node == 0 else [node, *_above(tree, int(tree.parent[node]))]


def test_a_name_is_that_of_the_leaf_where_a_group_has_it_too() -> None:
    tree = build([["a", "b", "*"], ["b", "*"], ["c", "*"]])
    assert tree.names.count("b") == 2
    assert tree.child_count[tree.node_of("b")] == 0
    assert tree.node_of("*") == 0


def test_a_flat_hierarchy_may_hold_a_value_named_like_a_root() -> None:
    tree = flat(["*", "a"])
    assert tree.leaves == ("*", "a")
    assert list(tree.child_count) == [2, 0, 0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a;;*\n", "'a' has an empty level"),
        ("a;x;*\nb;x;y;*\n", "'x' has two parents"),
        ("a;b;a;*\n", "'a' is its own ancestor"),
        ("a;x;y;*\nb;y;x;*\n", "is its own ancestor"),
        ("a;*\nb;all\n", "two roots, '*' and 'all'"),
        ("a;*\na;*\n", "the leaf 'a' is listed twice"),
        ("a;b;*\nb;*\n", "'b' is a leaf and also the parent"),
        ("a\n", "got only 'a'"),
        ("\n\n", "the hierarchy is empty"),
    ],
)
def test_a_wrong_hierarchy_is_named(text: str, named: str) -> None:
    with pytest.raises(InputError, match=r"towns\.csv") as caught:
        parse(text, "towns.csv")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_value_without_a_leaf_is_found() -> None:
    assert missing_leaf(parse(UNEQUAL, "towns.csv"), ["Lyon", "Atlantis"]) == "Atlantis"
