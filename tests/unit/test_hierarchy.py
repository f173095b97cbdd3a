from __future__ import annotations

import numpy as np
import pytest

from dit_dask.errors import InputError
from dit_dask.values.hierarchy import flat, missing_leaf, parse

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


def test_path_lengths_count_edges_in_a_tree_of_unequal_depth() -> None:
    tree = parse(UNEQUAL, "towns.csv")
    place = {leaf: code for code, leaf in enumerate(tree.leaves)}
    lengths = tree.path_lengths()
    assert lengths[place["Lyon"], place["Nice"]] == 2
    assert lengths[place["Lyon"], place["Oslo"]] == 3
    assert lengths[place["Lyon"], place["Moon"]] == 4
    assert not lengths.diagonal().any()
    np.testing.assert_array_equal(lengths, lengths.T)


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
