"""Published numbers and dates: every accepted form, the nearest level, exact arithmetic."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import Reader
from tests.unit.published_columns import AGES, DAYS, covered, days, numeric


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
