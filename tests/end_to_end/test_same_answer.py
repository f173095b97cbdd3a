"""The same input gives the same answer from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dit_dask as dit
from tests.cluster.runs import dit as command

KINDS = {"birth": "numeric", "town": "categorical", "illness": "categorical"}


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = np.datetime64("1950-01-01") + rng.integers(0, 20_000, rows)
    return pd.DataFrame(
        {
            "birth": np.datetime_as_string(days),
            "town": rng.choice(list("abcdefgh"), rows),
            "illness": rng.choice(["flu", "cold", "asthma"], rows),
        }
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training, holdout, and a synthetic table of which 5% are copies, as CSV files with dates as text."""
    folder = tmp_path_factory.mktemp("tables")
    training, holdout, drawn = table(2_000, 1), table(2_000, 2), table(1_900, 3)
    synthetic = pd.concat([drawn, training.iloc[:100]])
    for name, frame in {"training": training, "holdout": holdout, "synthetic": synthetic}.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def measured(tables: Path) -> dict[str, Any]:
    """What the command says, by measure."""
    schema = {
        "quasi_identifiers": {name: {"kind": kind} for name, kind in KINDS.items() if name != "illness"},
        "sensitive": "illness",
    }
    measures = [
        {"name": "closeness", "synthetic": "synthetic.csv", "holdout": "holdout.csv", "distance": "gower"},
        {"name": "accuracy", "synthetic": "synthetic.csv"},
    ]
    document = {"version": 1, "data": {"source": "training.csv"}, "schema": schema, "measures": measures, "seed": 5}
    (tables / "audit.yaml").write_text(yaml.safe_dump(document | {"gates": ["closeness passed"]}, sort_keys=False))
    done = command("run", tables / "audit.yaml", "--out", tables / "runs", "--quiet", "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["status"] == "failed"
    assert document["tests"] == []
    return {entry["measure"]: entry for entry in document["measures"]}


def frames(tables: Path, *names: str) -> list[pd.DataFrame]:
    return [pd.read_csv(tables / f"{name}.csv") for name in names]


@pytest.mark.parametrize("kinds", [None, KINDS])
def test_copied_rows_with_dates_in_text_are_found_by_both(tables: Path, measured: dict[str, Any], kinds: Any) -> None:
    found = dit.closeness(*frames(tables, "training", "synthetic", "holdout"), "gower", kinds=kinds)
    entry = measured["closeness"]
    assert not found.passed
    assert not entry["passed"]
    assert found.identical == entry["identical"] >= 0.05  # the copies, and some by chance
    assert [test.effect for test in found.tests] == [test["effect"] for test in entry["by_value"]]


def test_the_expected_accuracy_follows_from_the_seed_of_the_run(tables: Path, measured: dict[str, Any]) -> None:
    found = dit.accuracy(*frames(tables, "training", "synthetic"), kinds=KINDS, seed=5)
    entry = measured["accuracy"]
    assert (found.tvd, found.expected.tvd, found.noise.tvd) == (
        entry["tvd"],
        entry["expected"]["tvd"],
        entry["noise"]["tvd"],
    )
    other = dit.accuracy(*frames(tables, "training", "synthetic"), kinds=KINDS, seed=6)
    assert other.noise.tvd != found.noise.tvd


def test_dates_in_text_are_the_dates_of_another_table(tables: Path) -> None:
    training, synthetic, holdout = frames(tables, "training", "synthetic", "holdout")
    parsed = synthetic.assign(birth=pd.to_datetime(synthetic["birth"]))
    by_text, by_dates = (dit.closeness(training, one, holdout, "gower") for one in (synthetic, parsed))
    np.testing.assert_array_equal(by_text.dcr, by_dates.dcr)


def test_a_date_that_is_none_is_no_reason_to_take_dates_as_categories(tables: Path) -> None:
    training, synthetic, holdout = frames(tables, "training", "synthetic", "holdout")
    spoilt = synthetic.assign(birth=["unknown", *synthetic["birth"].iloc[1:]])
    with pytest.raises(dit.InputError, match="'birth' holds date values in training and text values in synthetic"):
        dit.closeness(training, spoilt, holdout)


def test_text_is_read_as_numbers_where_numbers_are_asked_for() -> None:
    numbers = pd.DataFrame({"n": [1, 2, 3, 10]}, index=["x", "x", "y", "z"])
    by_text = dit.accuracy(numbers.astype(str), numbers, kinds={"n": "numeric"})
    assert by_text.tvd == 0
