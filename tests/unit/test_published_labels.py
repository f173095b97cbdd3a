"""Published labels: every accepted form, masks, and what wins when a value could mean two things."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import Reader
from tests.unit.published_columns import TOWNS, ZIPS, categorical, covered, under


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Lyon", ["Lyon"]),
        (" Lyon ", ["Lyon"]),
        ("LYON", ["Lyon"]),
        ("France", ["Lyon", "Nice"]),
        ("Europe", ["Lyon", "Nice", "Bonn"]),
        ("Peru, Andes", ["Lima", "Cuzco"]),
        ("{Lyon, Bonn}", ["Lyon", "Bonn"]),
        ("{Bonn}", ["Bonn"]),
        ("[Lyon, Germany]", ["Lyon", "Bonn"]),
        ("(Lyon;Bonn)", ["Lyon", "Bonn"]),
        ("Lyon~Bonn", ["Lyon", "Bonn"]),
        ("Lyon~Nice~Bonn", ["Lyon", "Nice", "Bonn"]),
        ("Lyon;Bonn", ["Lyon", "Bonn"]),
        ("Lyon, Bonn", ["Lyon", "Bonn"]),
        ("{Lyon, Peru, Andes, Bonn}", ["Lyon", "Bonn", "Lima", "Cuzco"]),
        ("{'Lyon', \"Peru, Andes\"}", ["Lyon", "Lima", "Cuzco"]),
        ("['Lyon' 'Bonn']", ["Lyon", "Bonn"]),
        ("('Lyon',)", ["Lyon"]),
        ('c("Lyon", "Bonn")', ["Lyon", "Bonn"]),
        ("frozenset({'Lyon', 'Bonn'})", ["Lyon", "Bonn"]),
        ("L***", ["Lyon", "Lima"]),
        ("**on", ["Lyon"]),
        ("C*", ["Cuzco"]),
        (["Lyon", "Germany"], ["Lyon", "Bonn"]),
        ({"Lyon"}, ["Lyon"]),
    ],
)
def test_forms_of_a_categorical_column(value: Any, expected: list[str]) -> None:
    assert covered(TOWNS, value) == expected
    assert not Reader(TOWNS)(value).suppressed


def test_masks_prefer_labels_of_their_own_length() -> None:
    assert covered(ZIPS, "355**") == ["35510", "35520"]
    assert covered(ZIPS, "35**0") == ["35510", "35520", "35600"]
    assert covered(ZIPS, "2*") == ["21"]
    assert covered(ZIPS, "355*") == ["35510", "35520"]  # no label of four characters
    assert covered(ZIPS, "*5") == ["x5"]
    with pytest.raises(InputError):
        Reader(ZIPS)("12*")  # a star is no empty text


@pytest.mark.parametrize(
    "label", ["5-10", "<=50K", "{x}", "a~b", "a, b", " lead", "*", "3*", "[1, 2)", "NA", "None", "Æ", "1e3", "  ", "'q'"]
)
def test_an_exact_label_wins_over_every_form(label: str) -> None:
    labels = categorical("a", "b", "x", "30", label)
    reading = Reader(labels)(label)
    assert reading.covers.tolist() == [False] * 4 + [True]
    assert not reading.suppressed
    assert Reader(labels)(None).suppressed


def test_a_hierarchy_node_wins_over_every_form_too() -> None:
    ages = under("20;20-29;<50;*\n25;20-29;<50;*\n40;3*;<50;*\n60;{6};*\n")
    assert covered(ages, "20-29") == ["20", "25"]
    assert covered(ages, "3*") == ["40"]
    assert covered(ages, "<50") == ["20", "25", "40"]
    assert covered(ages, "{6}") == ["60"]
    assert covered(ages, "<30") == ["20", "25"]


def test_a_named_root_is_a_node_and_not_suppression() -> None:
    reading = Reader(under("a;all\nb;all\n"))("all")
    assert reading.covers.all()
    assert not reading.suppressed


def test_labels_that_are_numbers_are_found_by_their_number_and_have_intervals() -> None:
    codes = categorical("10", "9", "025", "30.5")
    assert covered(codes, 10) == covered(codes, 10.0) == covered(codes, "1e1") == ["10"]
    assert covered(codes, 25) == ["025"]
    assert covered(codes, "[9, 25]") == covered(codes, "9-25") == covered(codes, "9,25") == ["10", "9", "025"]
    assert covered(codes, ">10") == ["025", "30.5"]
    assert covered(codes, pd.Interval(9, 10)) == ["10"]
    assert covered(codes, "{9, 25}") == covered(codes, "9~25") == covered(codes, "['9', '25']") == ["9", "025"]
    for value in ("11", "[9, 10, 25]", "9;25", 11):
        with pytest.raises(InputError):
            Reader(codes)(value)
    mixed = categorical("5", "05", "x")
    assert covered(mixed, 5) == ["5"]
    with pytest.raises(InputError):
        Reader(mixed)(5.0)  # 5 or 05
    with pytest.raises(InputError):
        Reader(mixed)("[1, 9]")


def test_labels_that_differ_only_in_case_or_space_are_never_guessed() -> None:
    labels = categorical("a", "A", " b", "b ", " c")
    assert covered(labels, "A") == ["A"]
    assert covered(labels, "b ") == ["b "]
    assert covered(labels, "c") == [" c"]
    assert covered(labels, "{a, c}") == ["a", " c"]
    with pytest.raises(InputError):
        Reader(labels)("b")


def test_members_with_commas_are_found_where_only_one_reading_is_possible() -> None:
    trades = categorical("Trade, retail", "Trade", "Food", "a,b", "a", "b", "c;d")
    assert covered(trades, "{Trade, retail, Food}") == ["Trade, retail", "Food"]
    assert covered(trades, "{Trade, Food}") == ["Trade", "Food"]
    assert covered(trades, "{a, b}") == ["a", "b"]  # the label has no space
    assert covered(trades, "{c;d, a}") == ["a", "c;d"]
    for value in ("{a,b}", "{a,b, Food}", "{Food, a,b}"):
        with pytest.raises(InputError, match="cut into labels in more than one way"):
            Reader(trades)(value)
    assert covered(trades, "{'a,b'}") == ["a,b"]
    joined = under("Lyon;Lyon, Nice;*\nNice;Lyon, Nice;*\nBonn;*\n")  # a node named after its leaves: no conflict
    assert covered(joined, "{Lyon, Nice}") == ["Lyon", "Nice"]
