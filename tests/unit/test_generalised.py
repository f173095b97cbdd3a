"""Every accepted form of a published value, its traps, and the one clear line for the rest."""

import datetime
import decimal
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.errors import InputError
from dit_dask.generalised import Reader, parse_mapping
from dit_dask.hierarchy import flat, parse
from dit_dask.schema import Attribute
from tests.audits import loaded


def numeric(*values: Any) -> Attribute:
    """The attribute that a column of these values becomes."""
    frame = pd.DataFrame({"x": list(values), "s": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)})
    schema = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
    return loaded(frame, schema).table.schema.quasi_identifiers[0]


def categorical(*labels: str) -> Attribute:
    tree = flat(labels)
    return Attribute("x", "categorical", tree.leaves, None, tree)


def under(text: str) -> Attribute:
    tree = parse(text, "tree.csv")
    return Attribute("x", "categorical", tree.leaves, None, tree)


AGES = numeric(-10, -5, 0, 5, 19, 20, 21, 25, 29, 30, 45, 60, 1000)
DATES = ["2000-12-31", "2001-01-01", "2001-05-03", "2001-05-31", "2001-12-31", "2002-01-01", "2003-07-07"]
DAYS = numeric(*DATES)
TOWNS = under("Lyon;France;Europe;*\nNice;France;Europe;*\nBonn;Germany;Europe;*\nLima;Peru, Andes;*\nCuzco;Peru, Andes;*\n")
ZIPS = categorical("35510", "35520", "35600", "12", "2", "21", "x5")


def covered(attribute: Attribute, value: Any, mapping: dict[str, list[str]] | None = None) -> list[Any]:
    reading = Reader(attribute, mapping)(value)
    assert reading.covers.shape == (len(attribute.levels),)
    assert reading.covers.dtype == bool
    return [level for level, covers in zip(attribute.levels, reading.covers, strict=True) if covers]


def days(value: Any) -> list[str]:
    spelled = dict(zip(DAYS.levels, DATES, strict=True))
    return [spelled[level] for level in covered(DAYS, value)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("20", [20]),
        (" 20 ", [20]),
        ("20.0", [20]),
        ("+20", [20]),
        ("2e1", [20]),
        ("1e3", [1000]),
        ("-5", [-5]),
        ("−5", [-5]),
        (".5e1", [5]),
        ("5.", [5]),
        ("[20, 30)", [20, 21, 25, 29]),
        ("[20, 30]", [20, 21, 25, 29, 30]),
        ("(20, 30]", [21, 25, 29, 30]),
        ("(20, 30)", [21, 25, 29]),
        ("]20, 30[", [21, 25, 29]),
        ("[20, 30[", [20, 21, 25, 29]),
        ("[20;30[", [20, 21, 25, 29]),
        ("[20-29]", [20, 21, 25, 29]),
        ("[20~29]", [20, 21, 25, 29]),
        ("[20 to 29]", [20, 21, 25, 29]),
        ("( 19.5 ,  20.5 ]", [20]),
        ("[20]", [20]),
        ("20-30", [20, 21, 25, 29, 30]),
        ("20 - 30", [20, 21, 25, 29, 30]),
        ("20–30", [20, 21, 25, 29, 30]),
        ("20,30", [20, 21, 25, 29, 30]),
        ("20~30", [20, 21, 25, 29, 30]),
        ("20 to 30", [20, 21, 25, 29, 30]),
        ("[-10--5]", [-10, -5]),
        ("[-10, -5]", [-10, -5]),
        ("-10--5", [-10, -5]),
        ("-10-5", [-10, -5, 0, 5]),
        ("-1e1-5e-1", [-10, -5, 0]),
        ("1e-3-2e1", [5, 19, 20]),
        ("<45", [-10, -5, 0, 5, 19, 20, 21, 25, 29, 30]),
        ("<=45", [-10, -5, 0, 5, 19, 20, 21, 25, 29, 30, 45]),
        ("≤-5", [-10, -5]),
        (">45", [60, 1000]),
        ("≥45", [45, 60, 1000]),
        (">= 45", [45, 60, 1000]),
        ("45+", [45, 60, 1000]),
        ("[45, inf)", [45, 60, 1000]),
        ("[45, Inf]", [45, 60, 1000]),
        ("(45, ∞)", [60, 1000]),
        ("(-inf, -5]", [-10, -5]),
        ("(-∞, -5)", [-10]),
        ("{20, 25, 30}", [20, 25, 30]),
        ("{20;25}", [20, 25]),
        ("{20.0}", [20]),
        ("{'20', '25'}", [20, 25]),
        ("frozenset({20, 25})", [20, 25]),
        ("2*", [20, 21, 25, 29]),
        ("*5", [25, 45]),
        ("-*", [-5]),
        ("**", [19, 20, 21, 25, 29, 30, 45, 60]),
        ("****", [1000]),
        ("002*", [20, 21, 25, 29]),
        (20, [20]),
        (20.0, [20]),
        (np.int8(20), [20]),
        (np.float32(20), [20]),
        (decimal.Decimal("20.00"), [20]),
        (pd.Interval(20, 30), [21, 25, 29, 30]),
        (pd.Interval(20, 30, closed="left"), [20, 21, 25, 29]),
        (pd.Interval(20, 30, closed="both"), [20, 21, 25, 29, 30]),
        (pd.Interval(20, 30, closed="neither"), [21, 25, 29]),
        (pd.Interval(-np.inf, -5.0), [-10, -5]),
        ([20, "25", "[29, 30]"], [20, 25, 29, 30]),
        ({20, 25}, [20, 25]),
        ((20,), [20]),
        (np.array([20, 25]), [20, 25]),
        (frozenset({20.0}), [20]),
        ("(30, 45)", []),
        ("[31, 44]", []),
        ("(20, 20]", []),
        ("{20, 20}", [20]),
        ("7*", []),
    ],
)
def test_forms_of_a_numeric_column(value: Any, expected: list[int]) -> None:
    reading = Reader(AGES)(value)
    assert covered(AGES, value) == expected
    assert not reading.suppressed
    assert not reading.nearest


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2001-05-03", ["2001-05-03"]),
        ("2001/5/3", ["2001-05-03"]),
        ("2001-05-03 00:00:00", ["2001-05-03"]),
        ("2001-05-03T00:00Z", ["2001-05-03"]),
        ("2001-05-03 02:00:00.000+02:00", ["2001-05-03"]),
        ("2001-05-02 19:00-0500", ["2001-05-03"]),
        ("2001-05", ["2001-05-03", "2001-05-31"]),
        ("2001", ["2001-01-01", "2001-05-03", "2001-05-31", "2001-12-31"]),
        (2003, ["2003-07-07"]),
        ("[2001-01-01, 2002-01-01)", ["2001-01-01", "2001-05-03", "2001-05-31", "2001-12-31"]),
        ("(2001-01-01, 2002-01-01]", ["2001-05-03", "2001-05-31", "2001-12-31", "2002-01-01"]),
        ("2001-05-03 - 2001-12-31", ["2001-05-03", "2001-05-31", "2001-12-31"]),
        ("2001-05-03-2001-12-31", ["2001-05-03", "2001-05-31", "2001-12-31"]),
        ("2001/05/03~2001/12/31", ["2001-05-03", "2001-05-31", "2001-12-31"]),
        ("2002-2003", ["2002-01-01", "2003-07-07"]),
        ("[2001-05, 2001-12]", ["2001-05-03", "2001-05-31", "2001-12-31"]),
        ("(2001-05, 2001-12)", []),
        ("<2001-05", ["2000-12-31", "2001-01-01"]),
        ("<=2001-05-03", ["2000-12-31", "2001-01-01", "2001-05-03"]),
        (">2001", ["2002-01-01", "2003-07-07"]),
        ("[2002-01-01, inf)", ["2002-01-01", "2003-07-07"]),
        ("{2001-01-01, 2003-07-07}", ["2001-01-01", "2003-07-07"]),
        ("2001-05-**", ["2001-05-03", "2001-05-31"]),
        ("200*-**-31", ["2000-12-31", "2001-05-31", "2001-12-31"]),
        ("2001-**", ["2001-01-01", "2001-05-03", "2001-05-31", "2001-12-31"]),
        (datetime.date(2001, 5, 3), ["2001-05-03"]),
        (datetime.datetime(2001, 5, 3), ["2001-05-03"]),
        (pd.Timestamp("2001-05-03", tz="UTC"), ["2001-05-03"]),
        (np.datetime64("2001-05-03"), ["2001-05-03"]),
        (np.datetime64("2001-05-03", "ns"), ["2001-05-03"]),
        (pd.Period("2001-05"), ["2001-05-03", "2001-05-31"]),
        (pd.Interval(pd.Timestamp("2001-01-01"), pd.Timestamp("2001-05-03")), ["2001-05-03"]),
    ],
)
def test_forms_of_a_date_column(value: Any, expected: list[str]) -> None:
    assert days(value) == expected
    assert not Reader(DAYS)(value).nearest


def test_dates_too_far_for_nanoseconds_and_times_of_day_are_read_like_loaded_ones() -> None:
    far = numeric("0001-01-01", "9999-12-31", "2001-05-03 10:30:00.000001")
    assert far.unit == "us"
    for value, place in (("9999", 2), ("9999-12-31", 2), ("<1000", 0), ("2001-05-03", 1), ("2001-05-03 10:30:00.000001", 1)):
        assert Reader(far)(value).covers.nonzero()[0].tolist() == [place], value
        assert not Reader(far)(value).nearest
    assert not Reader(far)("(2001-05-03 10:30:00.000001, 2002)").covers.any()
    assert Reader(far)("(2001-05-03 10:30:00.0000009, 2002)").covers.any()


def test_only_dates_are_read_as_dates() -> None:
    assert AGES.unit is None
    for value in ("2001-05-03", pd.Timestamp("2001-05-03")):
        with pytest.raises(InputError, match="expected a number"):
            Reader(AGES)(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("26", [25]),
        ("27", [25, 29]),
        ("28.5", [29]),
        ("-99", [-10]),
        ("1e9999", [1000]),
        ("1e-9999", [0]),
        ("{26, 20}", [20, 25]),
        (np.float32(26.1), [25]),
    ],
)
def test_a_number_outside_the_domain_is_read_as_the_nearest_level_and_says_so(value: Any, expected: list[int]) -> None:
    assert covered(AGES, value) == expected
    assert Reader(AGES)(value).nearest


def test_distances_to_decimals_are_those_of_the_printed_numbers() -> None:
    tenths = numeric(0.1, 0.2, 0.5)
    assert covered(tenths, "0.15") == [0.1, 0.2]
    assert covered(tenths, "0.1") == covered(tenths, 0.1) == covered(tenths, "0.10000000000000001") == [0.1]
    assert not Reader(tenths)("0.1").nearest
    assert covered(tenths, "(0.1, 0.5)") == [0.2]
    assert covered(numeric(34.0, 35.0, 34.5), "3*") == [34.0, 35.0]
    assert days("2001-05-17") == ["2001-05-03", "2001-05-31"]
    assert days("2004") == ["2003-07-07"]
    assert covered(numeric("2001-05-31", "2001-07-01"), "2001-06") == list(numeric("2001-05-31", "2001-07-01").levels)


def test_large_integers_and_decimals_stay_exact() -> None:
    large = numeric(2**53, 2**53 + 1, 2**70)
    assert covered(large, str(2**53 + 1)) == [2**53 + 1]
    assert covered(large, f"{2**53 + 1}.0") == [2**53 + 1]
    assert covered(large, f"({2**53}, {2**70})") == [2**53 + 1]
    cents = numeric(*map(decimal.Decimal, ("0.10", "0.25", "1E+3")))
    assert covered(cents, "0.1") == [decimal.Decimal("0.10")]
    assert covered(cents, "[0.25, 1000]") == list(cents.levels[1:])
    assert covered(cents, "0.175") == list(cents.levels[:2])


@pytest.mark.parametrize("attribute", [AGES, DAYS, TOWNS, ZIPS])
@pytest.mark.parametrize(
    "value", ["*", " * ", "", "  ", "NA", "NaN", "null", None, np.nan, pd.NA, pd.NaT, decimal.Decimal("NaN")]
)
def test_suppressed_and_null_cells_cover_everything(attribute: Attribute, value: Any) -> None:
    reading = Reader(attribute)(value)
    assert reading.covers.all()
    assert reading.suppressed


def test_a_collection_is_suppressed_only_if_all_its_members_are() -> None:
    assert Reader(TOWNS)(["*", None]).suppressed
    reading = Reader(TOWNS)(["*", "Lyon"])
    assert reading.covers.all()
    assert not reading.suppressed


def test_all_stars_suppress_a_label_but_count_the_digits_of_a_number() -> None:
    assert Reader(ZIPS)("*****").suppressed
    assert not Reader(AGES)("**").suppressed


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


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        (AGES, "abc", "cannot read the published value 'abc'; expected a number, an interval"),
        (AGES, "[30, 20]", "'[30, 20]' (its lower end is above its upper end)"),
        (AGES, "5--3", "its lower end is above its upper end"),
        (AGES, "[inf, 3]", "its lower end is above its upper end"),
        (AGES, "[20, 25, 30]", "a set ({20, 25})"),
        (AGES, "20;25", "'20;25'"),
        (AGES, "20-25-30", "'20-25-30'"),
        (AGES, "1,234,567", "'1,234,567'"),
        (AGES, "{}", "'{}'"),
        (AGES, "{20, x}", "'{20, x}'"),
        (AGES, "inf", "'inf'"),
        (AGES, np.inf, "'inf'"),
        (AGES, "[20, 30", "'[20, 30'"),
        (AGES, "<", "'<'"),
        (AGES, "<<4", "'<<4'"),
        (AGES, "+2*", "'+2*'"),
        (AGES, True, "'True'"),
        (AGES, "a\x00\n\u2028", r"'a\x00\n\u2028'"),
        (AGES, "9" * 5000, "'" + "9" * 59 + "…'"),
        pytest.param(AGES, 10**5000, "cannot spell a published int", id="huge"),
        (AGES, decimal.Decimal("sNaN"), "cannot spell a published Decimal"),
        (AGES, [], "must hold single values, at least one"),
        (AGES, [[20]], "must hold single values, at least one"),
        (AGES, {20: 1}, "'{20: 1}'"),
        (AGES, b"20", "\"b'20'\""),
        (DAYS, "2001-13-01", "expected a date (2001-12-31"),
        (DAYS, "2001-02-30", "expected a date"),
        (DAYS, "20-30", "expected a date"),
        (DAYS, "[2002, 2001]", "its lower end is above its upper end"),
        (TOWNS, "Paris", "cannot read the published value 'Paris'; expected a label of the table or the hierarchy"),
        (TOWNS, "{Lyon, Paris}", "a mapping file (key mapping)"),
        (TOWNS, "Lyon-Bonn", "'Lyon-Bonn'"),
        (TOWNS, "Q*", "'Q*'"),
        (TOWNS, "[20, 30)", "where all labels are numbers"),
        (TOWNS, "{Lyon,}", "'{Lyon,}'"),
        (TOWNS, True, "'True'"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(attribute: Attribute, value: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        Reader(attribute)(value)
    message = str(caught.value)
    assert message.startswith("column 'x': ")
    assert said in message
    assert message.isprintable()
    assert len(message) < 500


def test_a_mapping_wins_over_everything_and_unites_what_it_lists() -> None:
    mapping = {"young": ["<20", "{20, 21}"], "20": ["30"], "?": ["*"], "": ["45"], "odd": ["26"]}
    assert covered(AGES, "young", mapping) == [-10, -5, 0, 5, 19, 20, 21]
    assert covered(AGES, " young ", mapping) == covered(AGES, "young", mapping)
    assert covered(AGES, "20", mapping) == covered(AGES, 20, mapping) == [30]
    assert covered(AGES, None, mapping) == [45]
    assert covered(AGES, ["20", "25"], mapping) == [25, 30]
    reader = Reader(AGES, mapping)
    assert reader("?").suppressed
    assert not reader("young").suppressed
    assert reader("odd").nearest
    assert covered(TOWNS, "Lyon", {"Lyon": ["Bonn", "Peru, Andes"]}) == ["Bonn", "Lima", "Cuzco"]


def test_a_mapping_is_checked_at_once_and_not_followed_in_circles() -> None:
    with pytest.raises(InputError, match="cannot read the published value 'old' that the mapping lists for 'aged'"):
        Reader(AGES, {"aged": ["old"], "old": ["aged"]})
    with pytest.raises(InputError, match="the mapping lists no original value for 'old'"):
        Reader(AGES, {"old": []})


def test_a_mapping_file_is_read_line_by_line() -> None:
    text = 'age;young;<20;{20, 21}\r\n\r\nage;"a;b";5\ntown;South;Lyon;Nice\nage;;*\n'
    assert parse_mapping(text, "map.csv") == {
        "age": {"young": ["<20", "{20, 21}"], "a;b": ["5"], "": ["*"]},
        "town": {"South": ["Lyon", "Nice"]},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"map\.csv: the mapping is empty; expected lines column;published value;original value"),
        ("\n\n", r"map\.csv: the mapping is empty"),
        ("age;young\n", r"map\.csv, line 1: expected column;published value;original value.* got 2 cells"),
        ("age;a;1\n;young;20\n", r"map\.csv, line 2: expected column;published"),
        ("age;young;\n", r"map\.csv, line 1: the published value 'young' has an empty original value"),
        ("age;young;1\nage;young;2\n", r"map\.csv, line 2: the published value 'young' of column 'age' is listed twice"),
        ("age;" + "y" * 200_000 + ";1\n", r"map\.csv, line 1: field larger than field limit"),
    ],
)
def test_a_wrong_mapping_file_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as caught:
        parse_mapping(text, "map.csv")
    assert str(caught.value).isprintable()


def test_readings_are_remembered_shared_and_safe_from_writes() -> None:
    reader = Reader(AGES)
    first = reader("[20, 30)")
    assert reader("[20, 30)") is first
    with pytest.raises(ValueError, match="read-only"):
        first.covers[0] = True
    again = pickle.loads(pickle.dumps(reader))
    np.testing.assert_array_equal(again("[20, 30)").covers, first.covers)


def test_memory_does_not_grow_with_the_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dit_dask.generalised.REMEMBERED", 0)
    reader = Reader(AGES)
    for number in range(1000):
        assert reader(f"[20, 3{number}]").covers.any()
    assert len(reader._known) <= 256


PAGE = Path(__file__).parents[2] / "docs" / "foreign-releases.md"


def test_every_example_of_the_docs_is_read_as_the_docs_say() -> None:
    """The code spans of a row `| values | the column holds | covers |` are tried; labels are quoted in the second cell."""
    rows = re.findall(r"^\| (`.+) \| (.+) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    checked = 0
    for row in rows:
        values, holds, covers = (re.findall(r"`([^`]*)`", cell) for cell in row)
        attribute = categorical(*holds) if row[1].startswith("labels") else numeric(*holds)
        for value in values:
            codes = Reader(attribute)(value).covers.nonzero()[0].tolist()
            assert [holds[code] for code in codes] == (covers if row[2] != "everything" else holds), value
            checked += 1
    assert checked > 50
