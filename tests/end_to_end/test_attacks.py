"""Attacks with a control group as a user runs them: gates, exit codes, the report, and figures of records only on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.cli import main
from tests.oracles.attack_tables import SIDES, leaking_tables

NAMES = {"age": 'a<b>"ge', "income": "in,come"}
"""Hostile names of two columns."""


def write_config(folder: Path, measures: list[dict[str, Any]], gates: list[str], leaked: int = 120) -> Path:
    for name, frame in zip(("people", "release", "holdout"), leaking_tables(400, leaked), strict=True):
        frame.round(6).rename(columns=NAMES).to_csv(folder / f"{name}.csv", index=False)
    files = {"synthetic": "release.csv", "holdout": "holdout.csv"}
    numeric = {NAMES.get(name, name): {"kind": "numeric"} for name in ("age", "income", "weight")}
    document = {
        "version": 1,
        "name": "attacks",
        "data": {"source": "people.csv"},
        "schema": {"quasi_identifiers": numeric | {"city": {"kind": "categorical"}}, "sensitive": "sex"},
        "measures": [files | measure for measure in measures],
        "gates": gates,
        "output": str(folder / "runs"),
    }
    path = folder / "attacks.yaml"
    path.write_text(json.dumps(document), "utf-8")
    return path


def renamed(side: list[str]) -> list[str]:
    return [NAMES.get(name, name) for name in side]


LINKS = {"name": "linkability", "sides": [renamed(side) for side in SIDES]}


@pytest.mark.parametrize(("leaked", "limit", "code", "status"), [(120, 0.05, 1, "failed"), (0, 0.1, 0, "passed")])
def test_a_leak_fails_the_run_and_fresh_people_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], leaked: int, limit: float, code: int, status: str
) -> None:
    config = write_config(tmp_path, [LINKS], [f"linkability.risk <= {limit}"], leaked)
    assert main(["run", str(config), "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == status
    found = {one["criterion"]: one for one in document["criteria"]}
    assert found["linkability"]["status"] == status
    assert found["singling out"]["conclusion"].startswith("not measured")
    (entry,) = document["measures"]
    assert entry["columns"] == []
    assert not list(tmp_path.rglob("measures/*.parquet"))


def test_the_report_and_show_name_the_three_criteria(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, [LINKS, {"name": "singling-out"}], ["linkability.risk <= 0.05"])
    assert main(["run", str(config), "--quiet"]) == 1
    (run,) = (tmp_path / "runs").glob("attacks-*")
    page = (run / "report.html").read_text("utf-8")
    assert "The three criteria of WP29" in page
    assert "to measure it: tests:" in page  # inference has no figure here
    assert NAMES["age"] not in page  # escaped, or not there
    capsys.readouterr()
    assert main(["show", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "WP29 linkability: a limit on one of its figures is exceeded" in shown
    assert "WP29 singling out: measured, but no gate limits any of its figures" in shown
    assert "WP29 inference: not measured" in shown


def test_successes_against_single_rows_are_written_only_on_request(tmp_path: Path) -> None:
    config = write_config(tmp_path, [LINKS | {"records": True, "sample": 300}], [])
    assert main(["run", str(config), "--quiet"]) == 0
    (path,) = tmp_path.rglob("measures/*.parquet")
    rows = pd.read_parquet(path)
    assert list(rows) == ["record", "success.links"]
    assert len(rows) == 400
    assert rows["success.links"].notna().sum() == 300
    attacked = rows["success.links"].dropna()
    assert attacked[attacked.index < 120].mean() > 0.95  # those who were copied
    assert attacked[attacked.index >= 120].mean() < 0.1


def test_a_holdout_split_off_here_is_never_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, [LINKS | {"holdout": 0.4, "records": True}], ["linkability.risk <= 0.3"], 0)
    assert main(["run", str(config), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "inconclusive"
    assert "the holdout was split off from the table here" in document["verdicts"][0]["reason"]
    (path,) = tmp_path.rglob("measures/*.parquet")
    assert np.isnan(pd.read_parquet(path)["success.links"]).sum() == 160  # the holdout is not attacked as training


def test_persons_with_several_rows_have_no_list_but_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, [LINKS], ["linkability.risk <= 0.05"])
    people = pd.read_csv(tmp_path / "people.csv").assign(person=np.arange(400) // 2)
    people.to_csv(tmp_path / "people.csv", index=False)
    document = json.loads(config.read_text("utf-8"))
    document["schema"]["subject"] = "person"
    config.write_text(json.dumps(document), "utf-8")
    assert main(["run", str(config), "--quiet"]) == 1
    assert "FAIL  linkability.risk <= 0.05" in capsys.readouterr().out
    (run,) = (tmp_path / "runs").glob("attacks-*")
    (entry,) = json.loads((run / "measures.json").read_text("utf-8"))
    assert entry["risk_of"] == "links"
    assert main(["report", str(run)]) == 0


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (LINKS | {"sides": [["city"], ["citty"]]}, "measures[0].sides: unknown 'citty'; did you mean 'city'?"),
        (LINKS | {"sides": [["city"], ["city"]]}, "measures[0].sides must be two lists of columns that have none in common"),
        (LINKS | {"confidence": 1.0}, "measures[0].confidence must be a number between 0 and 1; got 1"),
        ({"name": "attribute-inference", "known": ["sex"]}, "measures[0].known must not contain a secret; got ['sex']"),
        (
            {"name": "singling-out", "columns_of_predicate": 9},
            "columns_of_predicate must be an integer from 1 to the 5 columns",
        ),
    ],
)
def test_wrong_keys_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], measure: dict[str, Any], message: str
) -> None:
    assert main(["run", str(write_config(tmp_path, [measure], [])), "--quiet"]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_a_release_of_records_is_attacked_and_a_generalised_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, [LINKS | {"synthetic": None}], ["linkability.risk <= 0.05"])
    document = json.loads(config.read_text("utf-8"))
    document["measures"][0].pop("synthetic")
    document["tests"] = [{"sanitizer": {"name": "mondrian", "k": 5}, "records": {"sample": 20, "seed": 1}}]
    config.write_text(json.dumps(document), "utf-8")
    assert main(["run", str(config), "--json"]) == 1
    original, generalised = json.loads(capsys.readouterr().out)["measures"]
    assert original["risk"] > 0.9
    assert generalised["value"] is None
    assert "records" in generalised["reason"]
