"""Accuracy: unseen labels, sizes of combinations, and times of any type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dit_dask as dit

RNG = np.random.default_rng(1)
TOWNS = np.array([f"t{code}" for code in RNG.geometric(0.2, 4000)], object)
FRAME = pd.DataFrame({"age": RNG.integers(20, 70, 4000), "town": TOWNS, "job": RNG.choice(list("abc"), 4000)})


def test_unseen_labels_are_counted() -> None:
    other = FRAME.assign(town=np.where(np.arange(4000) < 2000, [f"new{row}" for row in range(4000)], FRAME["town"]))
    found = dit.accuracy(FRAME, other, ways=1)
    assert found.unseen == {"town": 0.5, "job": 0.0}
    assert dit.accuracy(FRAME, FRAME).unseen == {"town": 0.0, "job": 0.0}


@pytest.mark.parametrize("ways", [2, np.int64(2), (2,), [np.int32(2)]])
def test_sizes_of_combinations_may_be_any_integer(ways: Any) -> None:
    expected = dit.accuracy(FRAME, FRAME[:2000], ways=[2])
    found = dit.accuracy(FRAME, FRAME[:2000], bins=np.int64(10), ways=ways, limit=np.int64(1000), splits=np.int64(3))
    assert (found.tvd, found.expected) == (expected.tvd, expected.expected)
    assert list(found.by_ways) == [2]


def test_one_size_and_a_level_can_be_configured() -> None:
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "job"}
    measures: list[Any] = [{"name": "accuracy", "ways": 2}, {"name": "closeness", "holdout": 0.5, "level": 0.05}]
    tests = [{"sanitizer": "resample", "repeats": 2, "records": {"sample": 1}}]
    found = dit.audit(FRAME[:300], schema=schema, tests=tests, measures=measures).measures
    entries = {entry["measure"]: entry for entry in found if entry["sanitizer"]}
    assert list(entries["accuracy"]["by_ways"]) == ["2"]
    assert entries["accuracy"]["unseen"] == {"town": 0.0, "job": 0.0}
    assert (entries["closeness"]["level"], entries["closeness"]["passed"]) == (0.05, None)
    with pytest.raises(dit.InputError, match=r"measures\[0\].level must be a number between 0 and 1; got 2"):
        dit.audit(FRAME[:300], schema=schema, tests=tests, measures=[measures[1] | {"level": 2}])


DAYS = pd.date_range("2020-01-01", periods=60).repeat(3)
HOURS = pd.to_timedelta(np.arange(180) % 50, unit="h")
PRICES = np.arange(180) % 40 / 4
SAME: dict[str, list[Any]] = {
    "dates": [DAYS, DAYS.tz_localize("UTC"), DAYS.tz_localize("UTC").tz_convert("Asia/Tokyo"), DAYS.astype("datetime64[s]")],
    "days": [DAYS, list(DAYS.date), pd.array(DAYS.date, dtype=pd.ArrowDtype(pa.date32()))],
    "durations": [HOURS, HOURS.astype("timedelta64[s]"), HOURS.astype("timedelta64[us]"), list(HOURS.to_pytimedelta())],
    "decimals": [PRICES, [Decimal(str(price)) for price in PRICES], pd.array(PRICES, dtype="Float64")],
}


@pytest.mark.parametrize("name", SAME)
def test_equal_times_and_numbers_of_other_types_are_equal(name: str) -> None:
    first, *others = (pd.DataFrame({"x": pd.Series(values), "y": FRAME["age"][:180]}) for values in SAME[name])
    for other in others:
        assert dit.accuracy(first, other).tvd == 0
        assert (dit.closeness(first, other, first[:50], "gower").dcr == 0).all()
    late = first.assign(x=first["x"].sample(frac=1, random_state=1).to_numpy())
    assert dit.accuracy(first, late, ways=2).tvd > 0
    assert isinstance(SAME["days"][1][0], datetime.date)
