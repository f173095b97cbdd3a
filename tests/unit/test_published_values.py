"""Published values of any kind: suppression, mappings, memory, the docs, and the one clear line for what cannot be read."""

from __future__ import annotations

import decimal
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import Reader, parse_mapping
from dit_dask.values.schema import Attribute
from tests.unit.published_columns import AGES, DAYS, TOWNS, ZIPS, categorical, covered, numeric


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
    ("attribute", "value", "said"),
    [
        (AGES, "abc", "cannot read a published value; expected a number, an interval"),
        (AGES, "[30, 20]", "cannot read a published value (its lower end is above its upper end)"),
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
        (AGES, "9" * 5000, "'" + "9" * 80 + "'… (5,000 characters)"),
        pytest.param(AGES, 10**5000, "cannot convert to text a published int", id="huge"),
        (AGES, decimal.Decimal("sNaN"), "cannot convert to text a published Decimal"),
        (AGES, [], "must hold single values, at least one"),
        (AGES, [[20]], "must hold single values, at least one"),
        (AGES, {20: 1}, "'{20: 1}'"),
        (AGES, b"20", "\"b'20'\""),
        (DAYS, "2001-13-01", "expected a date (2001-12-31"),
        (DAYS, "2001-02-30", "expected a date"),
        (DAYS, "20-30", "expected a date"),
        (DAYS, "[2002, 2001]", "its lower end is above its upper end"),
        (TOWNS, "Paris", "cannot read a published value; expected a label of the table or the hierarchy"),
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
    message = caught.value.revealed()
    assert message.startswith("column 'x': ")
    assert said in message
    assert all(repr(hidden) not in str(caught.value) for hidden in caught.value.hidden)
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
    monkeypatch.setattr("dit_dask.sanitizers.external.published_values.CACHE_BYTES", 0)
    reader = Reader(AGES)
    for number in range(1000):
        assert reader(f"[20, 3{number}]").covers.any()
    assert len(reader._cache) <= 256


PAGE = Path(__file__).parents[2] / "docs" / "published-values.md"


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
