"""dit init: from a table that nobody has described to a config that runs as it is."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from dit_dask import cli
from dit_dask.cli import questions
from dit_dask.drafting.proposal import draft_table
from tools.make_worked_tables import write_tables


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tables(tmp_path, rows=400)
    return tmp_path


def drafted(path: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(Path(path).read_text("utf-8"))
    return document


@pytest.mark.parametrize("name", ["discharges", "payroll", "survey"])
def test_a_drafted_config_runs_as_it_is(tables: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", f"{name}.csv"]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written[0] == f"{name}.yaml"
    assert all(Path(path).is_file() for path in written)
    limits = ["--set", "tests.0.sanitizer.k=5", "--set", "tests.0.records={sample: 20}", "--quiet", "--workers", "1"]
    assert cli.main(["run", f"{name}.yaml", *limits]) in (0, 1)


def test_discharges_are_understood(tables: Path) -> None:
    assert cli.main(["init", "discharges.csv"]) == 0
    schema = drafted("discharges.yaml")["schema"]
    text = Path("discharges.yaml").read_text("utf-8")
    assert "\n  subject: patient_id " in text
    assert "left out: visit_id: it seems to number the rows: unique in 100.0% of rows" in text
    assert schema["sensitive"] == "icd"
    quasi = schema["quasi_identifiers"]
    assert quasi["birth"] == {"kind": "date", "hierarchy": {"dates": ["month", "year", "decade"]}}
    assert quasi["postcode"] == {"kind": "categorical", "hierarchy": {"prefix": [4, 3, 2]}}
    assert quasi["sex"] == {"kind": "categorical", "hierarchy": "discharges-hierarchies/sex.csv"}
    assert drafted("discharges.yaml")["data"]["missing"] == {"days": ["?"]}


def test_a_payroll_gets_bins_and_a_survey_its_dialect_and_scale(tables: Path) -> None:
    assert cli.main(["init", "payroll.csv"]) == cli.main(["init", "survey.csv"]) == 0
    assert drafted("payroll.yaml")["schema"]["sensitive"] == {"name": "salary", "bins": 5}
    survey = drafted("survey.yaml")
    assert survey["data"]["csv"] == {"separator": ";", "encoding": "cp1252", "decimal": ","}
    assert survey["data"]["missing"] == {"Sport": ["k.A."]}
    assert survey["schema"]["quasi_identifiers"]["Größe"] == {"kind": "numeric"}
    order = ["nie", "selten", "manchmal", "oft", "immer"]
    assert survey["schema"]["quasi_identifiers"]["Sport"] == {"kind": "ordinal", "order": order}


def test_a_doubtful_dialect_can_be_set(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{size},{size % 7};{size % 3},{size % 2}" for size in range(40)]
    Path("both.csv").write_text("\n".join(["a,b;c,d", *lines]) + "\n", "utf-8")
    assert cli.main(["init", "both.csv"]) == 2
    assert "set data.csv.separator" in capsys.readouterr().err
    assert cli.main(["init", "both.csv", "--set", "data.csv={separator: ','}", "--to", "both.yaml"]) == 0
    assert cli.main(["init", "both.csv", "--set", "data.csv={separator: ';', decimal: ','}", "--to", "semi.yaml"]) == 0
    semicolons = drafted("semi.yaml")
    assert semicolons["data"]["csv"] == {"separator": ";", "decimal": ","}
    assert {*semicolons["schema"]["quasi_identifiers"], str(semicolons["schema"]["sensitive"])} == {"a,b", "c,d"}


def test_nothing_is_overwritten(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("payroll.yaml").write_text("mine", "utf-8")
    assert cli.main(["init", "payroll.csv"]) == 2
    assert "payroll.yaml exists and is not overwritten" in capsys.readouterr().err
    assert Path("payroll.yaml").read_text("utf-8") == "mine"
    Path("other-hierarchies").mkdir()
    Path("other-hierarchies/grade.csv").write_text("mine", "utf-8")
    assert cli.main(["init", "payroll.csv", "--to", "other.yaml"]) == 2
    assert not Path("other.yaml").exists()


def test_named_columns_are_taken_and_unknown_ones_are_one_line(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", "payroll.csv", "--sensitive", "grade", "--subject", "employee_no", "--to", "sub/a.yaml"]) == 0
    document = drafted("sub/a.yaml")
    assert document["schema"]["sensitive"] == "grade"
    assert document["data"]["source"] == "../payroll.csv"
    assert "\n  subject: employee_no " in Path("sub/a.yaml").read_text("utf-8")
    capsys.readouterr()
    assert cli.main(["init", "payroll.csv", "--sensitive", "salery", "--to", "b.yaml"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "did you mean 'salary'?" in error


def test_a_table_in_place_of_a_config_points_to_init(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "payroll.csv"]) == 2
    assert "draft a config for it with: dit init payroll.csv" in capsys.readouterr().err


def test_values_that_few_rows_share_are_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    town = ["Lyon", "Nice"] * 100 + ["Smallville-on-Sea"] * 3
    frame = pd.DataFrame({"town": town, "age": rng.integers(20, 80, 203), "ill": rng.choice(["flu", "cold"], 203)})
    frame["name"] = [f"Person {number}" for number in range(203)]
    frame.to_csv("people.csv", index=False)
    assert cli.main(["init", "people.csv"]) == 0
    texts = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file() and path.name != "people.csv"]
    assert not any("Smallville" in text or "Person 7" in text for text in texts)
    assert "left out: name: it seems to identify people: unique in 100.0% of rows" in texts[0]
    assert drafted("people.yaml")["schema"]["quasi_identifiers"]["town"] == {"kind": "categorical"}


@pytest.mark.parametrize("names", [["no", "Größe in cm", "a: b", "1st", "# x"]])
def test_columns_with_odd_names_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    pd.DataFrame({name: rng.choice(["x", "y", "z"], 100) for name in names}).to_csv("odd.csv", index=False)
    assert cli.main(["init", "odd.csv"]) == 0
    schema = drafted("odd.yaml")["schema"]
    assert sorted([*schema["quasi_identifiers"], schema["sensitive"]]) == sorted(names)


def test_answers_on_a_terminal_change_the_draft(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("department\n\nage, grade\n"))
    draft = questions.ask_about(draft_table("payroll.csv", str(tables)))
    assert (draft.sensitive, draft.subject, draft.quasi_identifiers) == (("department",), None, ["age", "grade"])
