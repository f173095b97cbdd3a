"""Accuracy: unseen labels, sizes of combinations, and times of any type."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dit_dask as dit
from dit_dask.measures.synthetic import space
from dit_dask.measures.synthetic.columns import align

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
    with pytest.raises(dit.InputError, match=r"measures\[0\].level must be a number from 0.0001 to below 1; got 2"):
        dit.audit(FRAME[:300], schema=schema, tests=tests, measures=[measures[1] | {"level": 2}])


def arrow(values: Any, kind: pa.DataType) -> Any:
    return pd.array(list(values), dtype=pd.ArrowDtype(kind))


DAYS = pd.date_range("2020-01-01", periods=60).repeat(3)
TIMES = DAYS + pd.to_timedelta(np.arange(180) % 24, unit="h") + pd.Timedelta(nanoseconds=7)
HOURS = pd.to_timedelta(np.arange(180) % 50, unit="h")
TOKYO = DAYS.tz_localize("UTC").tz_convert("Asia/Tokyo")
PRICES = np.arange(180) % 40 / 10
DECIMALS = [Decimal(code) / 10 for code in range(40)] * 4 + [Decimal(code) / 10 for code in range(20)]
WHOLE = (np.arange(180) % 40 + 10**17).tolist()  # neighbours are equal as floats
SAME: dict[str, list[Any]] = {
    "dates": [DAYS, DAYS.tz_localize("UTC"), TOKYO, DAYS.astype("datetime64[s]"), list(TOKYO.to_pydatetime()), list(DAYS)],
    "arrow times": [
        DAYS,
        arrow(DAYS.to_pydatetime(), pa.timestamp("s")),
        arrow(TOKYO.to_pydatetime(), pa.timestamp("us", tz="Asia/Tokyo")),
    ],
    "nanoseconds": [
        TIMES,
        pd.Series(list(TIMES), dtype=object),
        pd.Series(list(TIMES.to_numpy()), dtype=object),
        arrow(TIMES, pa.timestamp("ns")),
    ],
    "days": [DAYS, list(DAYS.date), arrow(DAYS.date, pa.date32()), arrow(DAYS.date, pa.date64()), pd.Categorical(DAYS.date)],
    "durations": [
        HOURS,
        HOURS.astype("timedelta64[s]"),
        HOURS.astype("timedelta64[us]"),
        list(HOURS.to_pytimedelta()),
        pd.Series([np.timedelta64(hour % 50, "h") for hour in range(180)], dtype=object),
        arrow(HOURS.to_pytimedelta(), pa.duration("s")),
        arrow(HOURS, pa.duration("ns")),
    ],
    "decimals": [PRICES, DECIMALS, pd.array(PRICES, dtype="Float64"), arrow(DECIMALS, pa.decimal128(10, 3))],
    "whole decimals": [
        WHOLE,
        [Decimal(number) for number in WHOLE],
        [Decimal(number).quantize(Decimal("1.00")) for number in WHOLE],
        arrow([Decimal(number) for number in WHOLE], pa.decimal128(22, 2)),
    ],
}


@pytest.mark.parametrize("kind", ["numeric", "categorical"])
@pytest.mark.parametrize("name", SAME)
def test_equal_times_and_numbers_of_other_types_are_equal(name: str, kind: str) -> None:
    first, *others = (pd.DataFrame({"x": pd.Series(values), "y": FRAME["age"][:180]}) for values in SAME[name])
    for other in others:
        for one, two in ((first, other), (other, first)):
            assert dit.accuracy(one, two, 60, (1, 2), kinds={"x": kind}).tvd == 0
            assert distances(one, two, kind) == {0.0}
    late = first.assign(x=first["x"].sample(frac=1, random_state=1).to_numpy())
    assert dit.accuracy(first, late, ways=2, kinds={"x": kind}).tvd > 0


def distances(training: pd.DataFrame, synthetic: pd.DataFrame, kind: str, of: Sequence[str] = space.DISTANCES) -> set[float]:
    found = set()
    for distance in of:
        aligned = align({"training": training, "synthetic": synthetic}, kinds={"x": kind})
        metric, (known, new) = space.encode(aligned, distance, 10)
        found |= set(space.build_index(metric, known).nearest(new).first.tolist())
    return found


@pytest.mark.parametrize("name", SAME)
def test_closeness_takes_times_and_numbers_of_other_types(name: str) -> None:
    first, *_, last = (pd.DataFrame({"x": pd.Series(values), "y": FRAME["age"][:180]}) for values in SAME[name])
    assert (dit.closeness(first, last, first[:50], "gower").dcr == 0).all()


def test_times_and_numbers_that_differ_a_little_are_different() -> None:
    for values, later in (
        (TIMES, TIMES + pd.Timedelta(nanoseconds=1)),
        (HOURS, HOURS + pd.Timedelta(nanoseconds=1)),
        ([Decimal(number) for number in WHOLE], [Decimal(number + 100) for number in WHOLE]),
    ):
        frames = [pd.DataFrame({"x": cells, "y": 1}) for cells in (values, pd.Series(list(later), dtype=object))]
        assert min(distances(*frames, "categorical", ["gower"])) > 0
        assert max(distances(*frames, "numeric", ["gower"])) > 0


@pytest.mark.parametrize(
    ("column", "doubt"),
    [
        (["code", "x", "y", 2000], "100.0% of the synthetic cells of 'code' have labels that the original does not have"),
        (["code", "x", "x", 2000], None),
        (["code", "x", "x", 10**9], "column 'code' numbers or names the rows"),
    ],
)
def test_unseen_and_unique_labels_are_never_a_pass(tmp_path: Path, column: list[Any], doubt: str | None) -> None:
    name, *prefixes, labels = column
    tables = []
    for seed, prefix in enumerate(prefixes):
        rng = np.random.default_rng(seed)
        codes = [f"{prefix}{number}" for number in rng.integers(0, labels, 4000)]
        tables.append(pd.DataFrame({"age": rng.integers(18, 60, 4000), name: codes, "illness": rng.choice(list("abc"), 4000)}))
    tables[1].to_csv(tmp_path / "synthetic.csv", index=False)
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, name: {"kind": "categorical"}}, "sensitive": "illness"}
    measure = {"name": "accuracy", "synthetic": str(tmp_path / "synthetic.csv"), "ways": 1}
    found = dit.audit(tables[0], schema=schema, measures=[measure], gates=["accuracy <= 0.2"], controls=False).verdict
    assert found.status == ("passed" if doubt is None else "inconclusive")
    assert doubt is None or doubt in found.verdicts[0].reason
