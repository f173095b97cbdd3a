from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.adapters import anjana
from dit_dask.adapters.__main__ import main
from dit_dask.adapters.anonypyx import mondrian
from dit_dask.adapters.kbins import kbins
from dit_dask.adapters.levels import build_levels
from dit_dask.errors import InputError

FRAME = pd.DataFrame(
    {"age": [20, 31, 31, 47], "town": ["Lyon", "Nice", "Bonn", "Bonn"], "illness": ["flu", "flu", "cold", "gout"]}
)
TOWNS = {"Lyon": ["France", "*"], "Nice": ["France", "*"], "Bonn": ["*"]}
BOTH = {"quasi_identifiers": ["age", "town"], "sensitive": "illness"}
AGE = {"quasi_identifiers": ["age"], "k": 2}


# --- levels of generalisation


def test_widths_become_intervals_between_their_multiples() -> None:
    assert build_levels(FRAME["age"], [10, 40]) == [
        [20, 31, 47],
        ["[20, 30)", "[30, 40)", "[40, 50)"],
        ["[0, 40)", "[0, 40)", "[40, 80)"],
        ["*", "*", "*"],
    ]


@pytest.mark.parametrize(
    ("value", "width", "expected"), [(0.3, 0.1, "[0.3, 0.4)"), (-1, 5, "[-5, 0)"), (30, 2.5, "[30, 32.5)")]
)
def test_intervals_are_exact_where_floats_are_not(value: float, width: float, expected: str) -> None:
    assert build_levels(pd.Series([value], name="x"), [width])[1] == [expected]


@given(value=st.integers(-(10**6), 10**6), scale=st.sampled_from([1, 10, 100]), width=st.integers(1, 500))
def test_the_first_level_holds_its_value(value: int, scale: int, width: int) -> None:
    (text,) = build_levels(pd.Series([value / scale], name="x"), [width / scale])[1]
    low, high = (Fraction(bound) for bound in str(text)[1:-1].split(", "))
    assert low <= Fraction(str(value / scale)) < high
    assert high - low == Fraction(str(width / scale))


def test_a_shallow_leaf_stays_itself_until_its_parents_turn() -> None:
    # depth first, as the tree numbers them; Bonn has no country
    table = {row[0]: row[1:] for row in zip(*build_levels(FRAME["town"], TOWNS), strict=True)}
    assert table == {"Lyon": ("France", "*"), "Nice": ("France", "*"), "Bonn": ("Bonn", "*")}


def test_files_and_mappings_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Lyon;France;*\nNice;France;*\nBonn;*\n", "utf-8")
    assert build_levels(FRAME["town"], str(tmp_path / "town.csv")) == build_levels(FRAME["town"], TOWNS)


def test_a_column_without_a_hierarchy_is_itself_or_a_star() -> None:
    assert build_levels(FRAME["town"], None) == [["Lyon", "Nice", "Bonn"], ["*", "*", "*"]]


@pytest.mark.parametrize(
    ("column", "source", "message"),
    [
        ("age", [10, 25], "hierarchies.age must be a list of positive widths, each a multiple of the one before; got [10, 25]"),
        ("age", [10, 10], "each a multiple of the one before; got [10, 10]"),
        ("age", [0], "positive widths"),
        ("age", [float("nan")], "positive widths"),
        ("age", ["ten"], "positive widths"),
        ("age", [], "positive widths"),
        ("age", 10, "must be a path, a mapping"),
        ("town", [10], "hierarchies.town: widths need a numeric column"),
        ("town", {"Lyon": ["*"]}, "hierarchies.town: 2 of the 3 values in the table are not leaves of the hierarchy"),
        ("town", {"Lyon": "France"}, "hierarchies.town.Lyon must be a list"),
        ("town", "nowhere.csv", "hierarchies.town: cannot read nowhere.csv (FileNotFoundError)"),
        ("town", "dit://hierarchies/nowhere.csv", "unknown 'nowhere.csv'"),
    ],
)
def test_a_bad_hierarchy_is_one_clear_line(column: str, source: Any, message: str) -> None:
    with pytest.raises(InputError) as failure:
        build_levels(FRAME[column], source)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


# --- parameters


@pytest.mark.parametrize(
    ("function", "params", "message"),
    [
        (kbins, {"columns": ["ages"]}, "columns: unknown 'ages'; did you mean 'age'?"),
        (kbins, {"columns": "age"}, "columns must be a list of column names; got 'age'"),
        (kbins, {"columns": [["age"]]}, "columns must be a list of column names; got [['age']]"),
        (kbins, {"columns": ["age", "age"]}, "columns must name each column once"),
        (kbins, {"columns": ["town"]}, "columns must be numeric"),
        (kbins, {"columns": ["age"], "bins": 1}, "bins must be an integer >= 2; got 1"),
        (kbins, {"columns": ["age"], "bins": 5}, "bins must be at most 4, the rows of the table; got 5"),
        (kbins, {"columns": ["age"], "bins": 2, "strategy": "quantiles"}, "unknown 'quantiles'; did you mean 'quantile'?"),
        (mondrian, BOTH | {"k": 0}, "k must be an integer >= 1; got 0"),
        (mondrian, BOTH | {"k": 5}, "k must be at most 4, the rows of the table; got 5"),
        (mondrian, BOTH | {"k": 2.0}, "k must be an integer >= 1; got 2.0"),
        (mondrian, BOTH | {"k": 2, "l": 4}, "l must be at most 3, the distinct sensitive values of the table; got 4"),
        (mondrian, BOTH | {"k": 2, "t": 2}, "t must be a number >= 0 and <= 1; got 2"),
        (mondrian, BOTH | {"k": 2, "t": 0.5, "closeness": "emd"}, "unknown 'emd'"),
        (mondrian, BOTH | {"k": 2, "t": 0.5, "closeness": "earth mover's distance"}, "categorical quasi-identifiers only"),
        (mondrian, BOTH | {"k": 2, "sensitive": "town"}, "sensitive: unknown 'town'"),
        (anjana.k_anonymity, AGE | {"suppression": 100}, "suppression must be a number >= 0 and < 100; got 100"),
        (anjana.k_anonymity, AGE | {"k": 9}, "k must be at most 4, the rows of the table; got 9"),
        (anjana.k_anonymity, AGE | {"hierarchies": {"town": TOWNS}}, "hierarchies: unknown 'town'"),
        (anjana.l_diversity, BOTH | {"k": 2, "l": 9}, "l must be at most 3"),
        (anjana.t_closeness, BOTH | {"k": 2, "t": "near"}, "t must be a number >= 0 and <= 1; got 'near'"),
    ],
)
def test_a_bad_parameter_is_one_clear_line(function: Any, params: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as failure:
        function(FRAME, **params)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("function", "library", "params"),
    [
        (anjana.k_anonymity, "anjana", AGE),
        (mondrian, "anonypyx", BOTH | {"k": 2}),
    ],
)
def test_a_missing_library_names_its_extra(
    function: Any, library: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(library), *sys.meta_path])
    with pytest.raises(InputError, match=rf"pip install 'dit_dask\[{library}\]'"):
        function(FRAME, **params)


class Absent:
    """An importer that knows one package not to be installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


# --- the command


def zips(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    """A sanitizer of this test: mask the end of a code that must stay text."""
    assert frame["age"].dtype == "int64"
    return frame.assign(zip=[code[:digits] + "*" * (len(code) - digits) for code in frame["zip"]])


def run(tmp_path: Path, *more: str, target: str = "tests.unit.test_adapters:zips") -> int:
    return main([target, "--in", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.csv"), *more])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text("age,zip,country\n30,02139,NA\n40,10001,FR\n", "utf-8")
    (tmp_path / "params.json").write_text(json.dumps({"digits": 3}), "utf-8")
    return tmp_path


def test_text_stays_text_and_only_named_columns_are_numbers(folder: Path) -> None:
    assert run(folder, "--params", str(folder / "params.json"), "--numeric", "age") == 0
    assert (folder / "out.csv").read_text("utf-8") == "age,zip,country\n30,021**,NA\n40,100**,FR\n"


@pytest.mark.parametrize(
    ("more", "target", "message"),
    [
        ([], "no.such:thing", "target 'no.such:thing' cannot be imported"),
        ([], "tests.unit.test_adapters:zip_codes", "cannot be imported"),
        ([], "tests.unit.test_adapters", "target must be package.module:function"),
        (["--params", "nowhere.json"], None, "--params: cannot read nowhere.json as JSON (FileNotFoundError)"),
        (["--numeric", "ages"], None, "--numeric: no column 'ages'"),
        (["--numeric", "country"], None, "--numeric: column 'country'"),
        (["--in", "nowhere.csv"], None, "--in: cannot read nowhere.csv (FileNotFoundError)"),
    ],
)
def test_a_bad_call_is_one_line_and_exit_code_2(
    folder: Path, more: list[str], target: str | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, *more, target=target or "tests.unit.test_adapters:zips") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not (folder / "out.csv").exists()
