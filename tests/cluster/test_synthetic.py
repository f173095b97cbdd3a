"""Accuracy and closeness in runs: on real workers, in files, in the report, and in one line where the input is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask import cluster
from dit_dask.config.cluster import DEFAULT
from dit_dask.measures.synthetic import closeness as closest
from tests.cluster.runs import dit as command

TOWNS = [f"Town-{number:03d}" for number in range(40)]


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(TOWNS, rows),
            "born": [f"19{90 - n:02d}-0{1 + n % 9}-01" for n in age],
            "weight": np.round(rng.normal(70, 9, rows), 1),
            "illness": rng.choice(["flu", "cold", "gout"], rows),
        }
    )


CONFIG: dict[str, Any] = {
    "version": 1,
    "name": "synthetic",
    "data": {"source": "training.csv", "missing": ["?"]},
    "schema": {
        "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}, "born": {"kind": "numeric"}},
        "sensitive": "illness",
    },
    "cluster": {"workers": 2},
    "seed": 5,
}
COLUMNS = {"age": "numeric", "town": "categorical", "born": "numeric", "weight": "numeric", "illness": "categorical"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training, holdout, a fresh sample and copies, with an incomplete row in each of the latter."""
    place = tmp_path_factory.mktemp("synthetic")
    training = people(300, 1)
    copies = training.sample(250, random_state=1)
    for name, frame in (("training", training), ("holdout", people(200, 2)), ("fresh", people(250, 3)), ("copies", copies)):
        lines = frame.to_csv(index=False) + ("" if name == "training" else "?,Town-001,1950-01-01,70,flu\n")
        (place / f"{name}.csv").write_text(lines, "utf-8")
    return place


def run(folder: Path, measures: list[Any], *more: Any, **keys: Any) -> Any:
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG | {"measures": measures} | keys))
    return command("run", path, "--out", folder / "out", *more)


def entries(done: Any) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return json.loads((Path(done.stdout.splitlines()[-1]) / "measures.json").read_text())


def read(folder: Path, name: str) -> pd.DataFrame:
    frame = pd.read_csv(folder / f"{name}.csv", na_values="?").dropna().reset_index(drop=True)
    return frame.assign(born=pd.to_datetime(frame["born"]))[list(COLUMNS)]


def test_a_run_finds_what_the_functions_find_and_shows_no_record(folder: Path) -> None:
    near = {"name": "closeness", "holdout": "holdout.csv", "distance": "gower", "columns": COLUMNS}
    measures = [
        {"name": "accuracy", "synthetic": "fresh.csv", "columns": COLUMNS, "ways": [1, 2]},
        near | {"synthetic": "fresh.csv"},
        near | {"synthetic": "copies.csv"},
        {"name": "closeness", "synthetic": "fresh.csv", "holdout": 0.4},
    ]
    done = run(folder, measures, tests=[])
    accuracy, fresh, copies, split = entries(done)
    training, holdout = read(folder, "training"), read(folder, "holdout")
    expected = dit.accuracy(training, read(folder, "fresh"), ways=(1, 2))
    assert accuracy["value"] == accuracy["tvd"] == expected.tvd
    assert [tuple(entry["columns"]) for entry in accuracy["by_value"]] == list(expected.combinations)
    assert [entry["l1d"] for entry in accuracy["by_value"]] == [score.l1d for score in expected.scores]
    assert (accuracy["records"], accuracy["dropped"]) == (250, 1)
    for entry, name in ((fresh, "fresh"), (copies, "copies")):
        found = dit.closeness(training, read(folder, name), holdout, "gower")
        assert entry["passed"] is found.passed is (name == "fresh")
        assert entry["reason"] == found.reason
        assert entry["share_nearer_training"] == found.share_nearer_training
        assert [test["p"] for test in entry["by_value"]] == [test.p for test in found.tests]
        assert entry["curves"]["dcr"]["synthetic"][0] == found.identical
        assert (entry["records"], entry["dropped"], entry["rows"]) == (250, 2, [300, 250, 200])
    assert split["rows"] == [180, 250, 120]
    assert "split off from the table here" in split["reason"]
    report = (Path(done.stdout.splitlines()[-1]) / "report.html").read_text()
    assert report.count("<svg") == 6  # each in two widths
    assert "decide with the inference test" in report
    assert not re.search(r"Town-\d", report + json.dumps([accuracy, fresh, copies, split]) + done.stdout + done.stderr)


def test_releases_of_the_run_are_measured_where_they_are_records(folder: Path) -> None:
    few = {"records": {"sample": 2}, "adversary": "conditional-frequency"}
    tests = [
        few | {"sanitizer": {"name": "mondrian", "k": 5}},
        few | {"sanitizer": {"name": "marginals", "structure": "independent"}, "repeats": 2},
        few | {"sanitizer": "resample", "repeats": 2},
    ]
    done = run(folder, ["accuracy", {"name": "closeness", "holdout": "holdout.csv", "distance": "gower"}], tests=tests)
    found = {(entry["measure"], (entry["sanitizer"] or {"name": "raw"})["name"]): entry for entry in entries(done)}
    assert found["accuracy", "raw"]["value"] == 0
    assert found["accuracy", "resample"]["value"] < found["accuracy", "marginals"]["value"] < 0.5
    assert {name for (measure, name), entry in found.items() if measure == "closeness" and entry["passed"]} == {"marginals"}
    assert found["closeness", "resample"]["identical"] == found["closeness", "raw"]["identical"] == 1
    for measure in ("accuracy", "closeness"):
        assert found[measure, "mondrian"]["value"] is None
        assert found[measure, "mondrian"]["reason"] == "the release publishes sets of values, not records"


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"name": "closeness", "synthetic": "fresh.csv"}, "measures[0].holdout is missing"),
        (
            {"name": "closeness", "synthetic": "fresh.csv", "holdout": 1.5},
            "measures[0].holdout must be a path, a URL, or a fraction",
        ),
        ({"name": "closeness", "holdout": 0.2, "distance": "gauer"}, "did you mean 'gower'?"),
        ({"name": "accuracy", "synthetic": "gone.csv"}, "measures[0].synthetic: no file at gone.csv"),
        ({"name": "accuracy", "synthetic": "empty.csv"}, "measures[0].synthetic: empty.csv is empty"),
        ({"name": "accuracy", "synthetic": "head.csv"}, "measures[0].synthetic: head.csv has no rows"),
        ({"name": "accuracy", "synthetic": "one.csv"}, "synthetic must have at least 2 rows; got 1"),
        ({"name": "accuracy", "synthetic": "other.csv"}, "synthetic: no column 'age' among 1"),
        ({"name": "accuracy", "synthetic": "text.csv"}, "synthetic: column 'age' must be numbers or ISO dates"),
        ({"name": "accuracy", "synthetic": "fresh.csv", "ways": [5]}, "measures[0].ways must be integers from 1 to 4; got 5"),
        ({"name": "accuracy", "synthetic": "fresh.csv", "bins": 99999}, "measures[0].bins must be an integer from 2 to 10000"),
        ({"name": "accuracy", "synthetic": "fresh.csv", "columns": {"age": "number"}}, "did you mean 'numeric'?"),
        ({"name": "accuracy", "synthetic": "fresh.csv", "columns": {"size": "numeric"}}, "no column 'size' among"),
    ],
)
def test_wrong_measures_end_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, measure: dict[str, Any], message: str
) -> None:
    header = "age,town,born,weight,illness\n"
    row = "40,Town-001,1950-01-01,70,flu\n"
    for name, text in {
        "empty": "",
        "head": header,
        "one": header + row,
        "other": "name\nAnn\nBob\n",
        "text": header + row + row.replace("40", "forty"),
    }.items():
        (folder / f"{name}.csv").write_text(text)
    monkeypatch.chdir(folder)
    with pytest.raises(dit.InputError) as caught:
        dit.audit("training.csv", schema=CONFIG["schema"], measures=[measure], missing=["?"])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "forty" not in str(caught.value)


def test_a_wrong_table_ends_the_command_in_one_line(folder: Path) -> None:
    (folder / "short.csv").write_text("age,town\n40,Town-001\n41,Town-002\n")
    done = run(folder, [{"name": "accuracy", "synthetic": "short.csv"}], tests=[])
    assert (done.returncode, done.stdout) == (2, "")
    assert "synthetic: no column 'born' among 2" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_blocks_on_a_cluster_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = people(400, 1), people(300, 2), people(200, 3)
    alone = dit.closeness(*frames, "euclidean")
    monkeypatch.setattr(closest, "BLOCK", 64)
    with cluster.connect(replace(DEFAULT, workers=2)) as client:
        spread = dit.closeness(*frames, "euclidean", client=client)
    for name in ("dcr", "nndr", "holdout_dcr", "holdout_nndr"):
        assert getattr(spread, name).tobytes() == getattr(alone, name).tobytes()
    assert spread.tests == alone.tests
    assert (spread.passed, spread.reason) == (alone.passed, alone.reason)
