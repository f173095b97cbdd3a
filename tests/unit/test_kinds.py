"""Kinds of attributes, hierarchies made from values, and the sensitive attribute in bins or derived."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dit_dask.audit.grammar import check_config, named_files
from dit_dask.errors import InputError
from dit_dask.inputs.load import load
from dit_dask.values.table import Rows
from tests.audits import checked, loaded

ILL = ["flu", "cold"]


def people(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"x": values, "s": [ILL[row % 2] for row in range(len(values))]})


def read(values: list[Any], sensitive: Any = "s", data: dict[str, Any] | None = None, **described: Any) -> Rows:
    schema = {"quasi_identifiers": {"x": described}, "sensitive": sensitive}
    return loaded(people(values), schema, **(data or {}))


def tree(rows: Rows) -> list[tuple[str, ...]]:
    hierarchy = rows.table.schema.quasi_identifiers[0].hierarchy
    assert hierarchy is not None
    return hierarchy.paths()


def test_an_ordinal_is_a_scale_of_ranks_in_the_given_order() -> None:
    rows = read(["often", "never", "rarely", "often"], kind="ordinal", order=["never", "rarely", "often", "always"])
    attribute = rows.table.schema.quasi_identifiers[0]
    assert attribute.levels == ("never", "rarely", "often", "always")
    np.testing.assert_array_equal(attribute.values, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(rows.table.codes[rows.index, 0], [2, 0, 1, 2])


def test_an_order_that_misses_a_value_says_which_and_hides_rare_ones() -> None:
    with pytest.raises(InputError, match="order has no place for the value 'always' of column 'x'"):
        read(["never", "often"] * 5 + ["always"] * 10, kind="ordinal", order=["never", "often"])
    with pytest.raises(InputError, match="no place for 1 values of column 'x', first in used row 2") as caught:
        read(["never", "often", "Smith"], kind="ordinal", order=["never", "often"])
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"kind": "ordinal"}, "schema.quasi_identifiers.x.order is missing"),
        ({"kind": "ordinal", "order": ["a", "a"]}, "order names a value twice"),
        ({"kind": "numeric", "order": [1, 2]}, "a numeric attribute takes no order"),
        ({"kind": "numeric", "hierarchy": "x.csv"}, "a numeric attribute takes no hierarchy"),
        ({"kind": "categorical", "dayfirst": True}, "a categorical attribute takes no dayfirst"),
        ({"kind": "categorical", "hierarchy": {"prefix": [2, 3]}}, r"prefix must be lengths in descending order; got \[2, 3\]"),
        ({"kind": "categorical", "hierarchy": {"bands": [5, 12]}}, "must be a multiple of the one before; got 12 after 5"),
        ({"kind": "categorical", "hierarchy": {"dates": ["year"]}}, "only an attribute of kind date has dates"),
        ({"kind": "date", "hierarchy": {"dates": ["year", "month"]}}, "dates must be in the order day, month, quarter"),
        ({"kind": "date", "hierarchy": {"prefix": [4]}}, "a date takes dates or levels; got prefix"),
        ({"kind": "categorical", "hierarchy": {}}, "must have one of prefix, dates, bands and levels; got none"),
        ({"kind": "date", "format": "%d", "dayfirst": True}, "format and dayfirst exclude each other"),
        ({"kind": "dates"}, "did you mean 'date'"),
    ],
)
def test_a_key_that_does_not_fit_the_kind_is_one_clear_line(described: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked({"quasi_identifiers": {"x": described}, "sensitive": "s"})


DAYS = [datetime.datetime(2020, 3, 4), datetime.datetime(2019, 12, 31), datetime.datetime(2020, 1, 15)]


@pytest.mark.parametrize(
    ("form", "keys"),
    [
        ("%Y-%m-%d", {}),
        ("%Y/%m/%d", {}),
        ("%Y%m%d", {}),
        ("%d.%m.%Y", {}),
        ("%d/%m/%Y", {}),
        ("%m/%d/%Y", {}),
        ("%d-%m-%Y", {"dayfirst": True}),
        ("%m-%d-%Y", {"dayfirst": False}),
        ("%d %b %y", {"format": "%d %b %y"}),
        ("%Y-%m-%d %H:%M", {}),
    ],
)
def test_dates_in_many_forms_are_the_same_dates(form: str, keys: dict[str, Any]) -> None:
    rows = read([day.strftime(form) for day in DAYS], kind="date", **keys)
    attribute = rows.table.schema.quasi_identifiers[0]
    stamps = np.array(attribute.levels, f"datetime64[{attribute.unit}]")[rows.table.codes[rows.index, 0]]
    assert stamps.astype("datetime64[us]").astype(object).tolist() == DAYS


def test_several_formats_in_one_column_are_read_unless_they_overlap() -> None:
    mixed = ["2020-03-04", "31.12.2019", "20200115"]
    assert read(mixed, kind="date").used == 3
    told = read(["04.03.20", "2019-12-31", "2020-01-15"], kind="date", format=["%d.%m.%y", "%Y-%m-%d"])
    assert told.table.distinct == 3
    with pytest.raises(InputError, match="'%d/%m/%Y' and '%m/%d/%Y' overlap"):
        read(["03/04/2020", "05/06/2020"], kind="date", format=["%d/%m/%Y", "%m/%d/%Y"])


def test_the_order_of_day_and_month_is_never_guessed() -> None:
    with pytest.raises(InputError, match=r"may be read in both orders .*set schema.quasi_identifiers.x.dayfirst"):
        read(["03/04/2020", "05/06/2020"], kind="date")
    with pytest.raises(InputError, match="both orders of day and month"):
        read(["31/12/2020", "12/31/2020"], kind="date")


def test_text_among_dates_is_located_and_masked() -> None:
    with pytest.raises(InputError, match=r"must be dates .*got 1 other values") as caught:
        read(["2020-01-01", "Smith"], kind="date")
    assert "Smith" not in str(caught.value)
    with pytest.raises(InputError, match="got 'unknown' in 10 rows"):
        read(["2020-01-01"] * 10 + ["unknown"] * 10, kind="date")
    with pytest.raises(InputError, match="must be dates"):
        read(["2020-02-30", "2020-02-01"], kind="date")


def test_time_zones_are_refused_or_named() -> None:
    late = ["2020-01-01T23:30:00Z", "2020-01-01T00:30:00Z"]
    with pytest.raises(InputError, match=r"times with a time zone; set schema.quasi_identifiers.x.zone"):
        read(late, kind="date")
    named = read(late, kind="date", zone="Europe/Paris", hierarchy={"dates": ["day"]})
    assert [path[1] for path in tree(named)] == ["2020-01-01", "2020-01-02"]
    with pytest.raises(InputError, match="zone must be a time zone such as"):
        read(late, kind="date", zone="Europe/Nowhere")
    with pytest.raises(InputError, match="with and without a time zone"):
        read([late[0], "2020-01-01"], kind="date", zone="UTC")


def test_a_boolean_has_two_values() -> None:
    assert read(["yes", "no", "yes"], kind="boolean").table.schema.quasi_identifiers[0].levels == ("no", "yes")
    with pytest.raises(InputError, match="must be boolean, with two values; got 3"):
        read(["yes", "no", "maybe"], kind="boolean")


def test_prefixes_group_codes() -> None:
    rows = read(["I21.9", "I21.0", "I50", "C34.1"], kind="categorical", hierarchy={"prefix": [3, 1]})
    assert tree(rows) == [
        ("C34.1", "C34*", "C*", "*"),
        ("I21.0", "I21*", "I*", "*"),
        ("I21.9", "I21*", "I*", "*"),
        ("I50", "I50*", "I*", "*"),
    ]
    with pytest.raises(InputError, match="a prefix of 4 characters is longer than 1 values of column 'x', first in used row 1"):
        read(["7501", "75", "7502"], kind="categorical", hierarchy={"prefix": [4, 2]})


def test_dates_are_grouped_by_periods_in_time_order() -> None:
    rows = read(
        [day.strftime("%d.%m.%Y") for day in DAYS], kind="date", hierarchy={"dates": ["month", "quarter", "year", "decade"]}
    )
    assert tree(rows) == [
        ("2019-12-31", "2019-12", "2019-Q4", "2019", "2010s", "*"),
        ("2020-01-15", "2020-01", "2020-Q1", "2020", "2020s", "*"),
        ("2020-03-04", "2020-03", "2020-Q1", "2020", "2020s", "*"),
    ]


def test_bands_group_numbers_exactly() -> None:
    rows = read(["7", "-3", "10", "0.5"], kind="categorical", hierarchy={"bands": [5, 10]})
    assert tree(rows) == [
        ("-3", "[-5, 0)", "[-10, 0)", "*"),
        ("0.5", "[0, 5)", "[0, 10)", "*"),
        ("7", "[5, 10)", "[0, 10)", "*"),
        ("10", "[10, 15)", "[10, 20)", "*"),
    ]
    with pytest.raises(InputError, match="bands are of numbers; got 1 values of column 'x'"):
        read(["7", "many"], kind="categorical", hierarchy={"bands": [5]})


def test_levels_are_read_as_arx_writes_them(tmp_path: Path) -> None:
    (tmp_path / "levels.csv").write_text("cook;manual;Other\nOther;Other;Other\nnurse;care;Other\npilot;care;Other\n", "utf-8")
    schema = {"quasi_identifiers": {"x": {"kind": "categorical", "hierarchy": {"levels": "levels.csv"}}}, "sensitive": "s"}
    config = checked(schema, folder=str(tmp_path))
    rows = load(config, people(["cook", "Other", "nurse", "pilot"]))
    assert rows.table.schema.quasi_identifiers[0].levels == ("cook", "Other", "nurse", "pilot")
    assert tree(rows)[2] == ("nurse", "care", "Other")
    (tmp_path / "levels.csv").write_text("cook;manual;a\nnurse;manual;b\n", "utf-8")
    with pytest.raises(InputError, match="line 2: 'manual' of level 1 is in two groups of level 2"):
        load(config, people(["cook", "nurse"]))


def test_all_missing_leaves_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("Lyon;*\n", "utf-8")
    schema = {"quasi_identifiers": {"x": {"kind": "categorical", "hierarchy": "towns.csv"}}, "sensitive": "s"}
    towns = [f"town {number}" for number in range(12) for _ in range(10)]
    with pytest.raises(InputError, match=r"has no leaf for 13 values 'town 0', .*'town 9' and 3 more of column 'x'") as caught:
        load(checked(schema, folder=str(tmp_path)), people([*towns, "Smith"]))
    assert "Smith" not in str(caught.value)
    assert "Smith" in caught.value.revealed()


def test_missing_cells_can_be_a_category() -> None:
    values = ["a", "b", "?", "", "a"]
    assert read(values, kind="categorical", data={"missing": ["?"]}).used == 3
    rows = read(values, kind="categorical", data={"missing": ["?"], "missing_as": "category"})
    assert (rows.used, rows.dropped) == (5, 0)
    attribute = rows.table.schema.quasi_identifiers[0]
    assert attribute.levels == ("a", "b", "(missing)")
    np.testing.assert_array_equal(rows.table.codes[rows.index, 0], [0, 1, 2, 2, 0])
    numbers = read(["1", "2", "?"], kind="numeric", data={"missing": ["?"], "missing_as": "category"})
    assert (numbers.used, numbers.dropped) == (2, 1)
    with pytest.raises(InputError, match=r"has the value '\(missing\)'"):
        read(["(missing)", "a", ""], kind="categorical", data={"missing_as": "category"})


def test_a_missing_secret_can_be_a_category_too() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "s": ["a", None, "b"]})
    schema = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
    rows = loaded(frame, schema, missing_as="category")
    assert rows.table.schema.sensitive.levels == ("a", "b", "(missing)")
    np.testing.assert_array_equal(rows.table.secret[rows.index], [0, 2, 1])


def salaries(values: list[float], bins: Any) -> Rows:
    frame = pd.DataFrame({"x": range(len(values)), "pay": values})
    return loaded(frame, {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": {"name": "pay", "bins": bins}})


def test_bins_of_equal_frequency_hold_equally_many_rows_and_show_no_ones_pay() -> None:
    pay = [1000.0 * number + 17 for number in range(100)]
    rows = salaries(pay, 4)
    secret = rows.table.schema.sensitive
    assert np.bincount(rows.table.secret).tolist() == [25, 25, 25, 25]
    assert secret.levels == ("<= 25000", "(25000, 50000]", "(50000, 75000]", "> 75000")
    whole = salaries([1000.0 * number for number in range(100)], 4).table.schema.sensitive.levels
    assert not {f"{1000 * number}" for number in range(100)} & {
        part for name in whole for part in name.strip("(]<>= ").split(", ")
    }


def test_edges_of_bins_are_closed_on_the_right_and_the_first_on_both_sides() -> None:
    rows = salaries([0, 10, 10.5, 20, 30], [0, 10, 20, 30])
    assert rows.table.schema.sensitive.levels == ("[0, 10]", "(10, 20]", "(20, 30]")
    np.testing.assert_array_equal(rows.table.secret[rows.index], [0, 0, 1, 1, 2])
    with pytest.raises(InputError, match="the edges leave out 1 of the 3 rows of column 'pay'"):
        salaries([0, 5, 31], [0, 10, 30])
    with pytest.raises(InputError, match="must be edges in ascending order"):
        salaries([0, 5], [10, 0])


def test_bins_on_text_are_one_clear_line() -> None:
    with pytest.raises(InputError, match="column 's' must be numbers"):
        read(["1", "2"], sensitive={"name": "s", "bins": 2}, kind="numeric")
    with pytest.raises(InputError, match="bins have an order of their own"):
        checked({"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": {"name": "s", "bins": 2, "order": [1, 2]}})


def test_a_secret_can_be_derived_by_a_map(tmp_path: Path) -> None:
    (tmp_path / "cancer.csv").write_text("C34.1;yes\nC50;yes\n*;no\n", "utf-8")
    frame = pd.DataFrame({"x": range(4), "icd": ["C34.1", "I21", "C50", "J10"]})
    schema = {
        "quasi_identifiers": {"x": {"kind": "numeric"}},
        "sensitive": {"name": "cancer", "from": "icd", "map": "cancer.csv", "order": ["no", "yes"]},
    }
    rows = load(checked(schema, folder=str(tmp_path)), frame)
    assert (rows.table.schema.sensitive.name, rows.table.schema.sensitive.levels) == ("cancer", ("no", "yes"))
    np.testing.assert_array_equal(rows.table.secret[rows.index], [1, 0, 1, 0])
    (tmp_path / "cancer.csv").write_text("C34.1;yes\nC50;yes\n", "utf-8")
    with pytest.raises(InputError, match=r"cancer.csv has no line for 2 values of column 'icd', first in used row 1"):
        load(checked(schema, folder=str(tmp_path)), frame)
    with pytest.raises(InputError, match="from and map go together; got only from"):
        checked({"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": {"name": "s", "from": "t"}})


def test_a_deployed_audit_takes_levels_and_maps_along() -> None:
    quasi = {"x": {"kind": "categorical", "hierarchy": {"levels": "levels.csv"}}, "y": {"kind": "date", "hierarchy": "y.csv"}}
    schema = {"quasi_identifiers": quasi, "sensitive": {"name": "c", "from": "icd", "map": "map.csv"}}
    document = {"version": 1, "data": {"source": "a.csv"}, "schema": schema, "tests": [{"sanitizer": "raw"}]}
    assert {path for _, path in named_files(document)} == {"levels.csv", "y.csv", "map.csv"}


def test_rows_know_their_position_in_the_source(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("x,s\n4,a\n?,b\n6,b\n", "utf-8")
    (tmp_path / "a.csv").write_text("x,s\n?,a\n2,b\n3,a\n", "utf-8")
    data = {"source": "*.csv", "missing": ["?"]}
    document = {"version": 1, "data": data, "schema": {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}}
    rows = load(check_config(document | {"tests": [{"sanitizer": "raw"}]}, str(tmp_path)))
    np.testing.assert_array_equal(rows.source_row, [1, 2, 3, 5])


def test_parquet_dictionaries_decimals_dates_and_time_stamps_are_read(tmp_path: Path) -> None:
    columns = {
        "town": pa.array(["Lyon", "Nice", "Lyon"]).dictionary_encode(),
        "floor": pa.array([1.5, 2.5, 1.5]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.10"), decimal.Decimal(2), decimal.Decimal(3)], pa.decimal128(10, 2)),
        "born": pa.array([day.date() for day in DAYS]),
        "seen": pa.array(DAYS, pa.timestamp("ms")),
        "zoned": pa.array(DAYS, pa.timestamp("us", "UTC")),
        "s": pa.array(["a", "b", "a"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    quasi: dict[str, Any] = {
        "town": {"kind": "categorical"},
        "floor": {"kind": "numeric"},
        "price": {"kind": "numeric"},
        "born": {"kind": "date"},
        "seen": {"kind": "date", "hierarchy": {"dates": ["year"]}},
    }
    document = {"version": 1, "data": {"source": "t.parquet"}, "tests": [{"sanitizer": "raw"}]}
    rows = load(check_config(document | {"schema": {"quasi_identifiers": quasi, "sensitive": "s"}}, str(tmp_path)))
    assert [len(attribute.levels) for attribute in rows.table.schema.quasi_identifiers] == [2, 2, 3, 3, 3]
    zoned = {"quasi_identifiers": {"zoned": {"kind": "date"}}, "sensitive": "s"}
    with pytest.raises(InputError, match="times with a time zone"):
        load(check_config(document | {"schema": zoned}, str(tmp_path)))
