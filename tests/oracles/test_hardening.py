"""Hardening against a loop over audits of frames from which pandas removes the persons."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.cli import main
from dit_dask.deciding.hardening import STEPS, read_budget
from tests.oracles.test_explanations import patients, schema

LIMIT = 0.18
VALUES = ["age", "postcode", "ward", "diagnosis"]


def written(folder: Path, frame: pd.DataFrame, gates: Sequence[str] = (f"delta <= {LIMIT}",), **more: object) -> Path:
    """A config beside its table."""
    frame.to_csv(folder / "patients.csv", index=False)
    document = {
        "version": 1,
        "data": {"source": "patients.csv"},
        "schema": schema() | ({"subject": "patient"} if "patient" in frame else {}),
        "tests": [{"sanitizer": {"name": "mondrian", "k": 12}}],
        "gates": list(gates),
        "output": str(folder / "runs"),
    }
    (folder / "patients.yaml").write_text(yaml.safe_dump(document | more))
    return folder / "patients.yaml"


def check_schema(document: object, name: str) -> None:
    schema = json.loads((files("dit_dask") / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)


def hardened(capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    code = main(["harden", str(config), *arguments, "--json", "--quiet"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return code, document


def by_hand(frame: pd.DataFrame, budget: int, owner: pd.Series) -> list[tuple[int, float]]:
    """Remove the worst persons over the limit with pandas, and audit what is left, until it passes or the budget ends."""
    gone: set[object] = set()
    rounds = []
    while True:
        rest = frame[~owner.isin(gone)]
        described = schema() | ({"subject": "patient"} if "patient" in frame else {})
        tests = [{"sanitizer": {"name": "mondrian", "k": 12}}]
        distances = dit.audit(rest, schema=described, tests=tests, controls=False).distances()["distance"]
        rounds.append((len(gone), float(distances.max())))
        if distances.max() <= LIMIT or len(gone) >= budget:
            return rounds
        cells = pd.Series(rest[VALUES].itertuples(index=False, name=None), rest.index)
        values = cells.groupby(owner.loc[rest.index]).agg(sorted)
        worst = distances.groupby(owner.loc[rest.index]).max()
        worst = worst.loc[sorted(worst.index, key=lambda person: (-worst[person], values[person]))]
        step = min(budget - len(gone), max(1, budget // STEPS), max(1, int((worst > LIMIT).sum())))
        gone |= set(worst.index[:step])


@pytest.mark.parametrize("rows_each", [1, 2])
def test_every_round_is_the_audit_of_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows_each: int) -> None:
    frame = patients(240)
    owner = pd.Series(np.arange(240) // rows_each, frame.index)
    if rows_each > 1:
        frame["patient"] = owner
    code, document = hardened(capsys, written(tmp_path, frame), "--max-removed", "8")
    expected = by_hand(frame, 8, owner)
    found = document["harden"]
    assert isinstance(found, dict)
    assert len(expected) > 2  # else nothing was removed
    assert [(one["removed"], one["delta"]) for one in found["rounds"]] == expected
    assert code == (0 if expected[-1][1] <= LIMIT else 1)
    assert document["status"] == ("passed" if code == 0 else "failed")
    removed = json.loads((Path(str(document["run"])) / "records" / "removed.json").read_text())
    assert len(removed["record"]) == rows_each * expected[-1][0]
    assert removed["row"] == removed["record"]
    assert owner.iloc[removed["record"]].nunique() == expected[-1][0]  # persons leave with all their rows
    counted = json.loads((Path(str(document["run"])) / "manifest.json").read_text())["input"]
    gone = len(removed["record"])
    assert [counted[name] for name in ("read", "dropped", "left_out", "used")] == [240, 0, gone, 240 - gone]
    first = json.loads((Path(str(found["rounds"][0]["run"])) / "manifest.json").read_text())["input"]
    assert (first["read"], first["used"], "left_out" in first) == (240, 240, False)


@pytest.mark.parametrize("rows_each", [1, 2])
def test_the_order_of_rows_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows_each: int) -> None:
    half = patients(90)
    other = half["ward"].replace({"surgery": "neuro", "neuro": "surgery"})
    frame = pd.concat([half, half.assign(ward=other)])
    if rows_each > 1:
        frame["patient"] = np.arange(len(frame)) // rows_each
    results = []
    for place, ordered in enumerate([frame, frame.iloc[::-1], frame.sample(frac=1, random_state=3)]):
        folder = tmp_path / str(place)
        folder.mkdir()
        _, document = hardened(capsys, written(folder, ordered, ["delta <= 0.1"]), "--max-removed", "8")
        removed = json.loads((Path(str(document["run"])) / "records" / "removed.json").read_text())["row"]
        found = document["harden"]
        assert isinstance(found, dict)
        rounds = [{name: value for name, value in one.items() if name != "run"} for one in found["rounds"]]
        results.append((rounds, sorted(ordered.iloc[removed][VALUES].itertuples(index=False, name=None))))
    assert len(results[0][1]) == 8 * rows_each  # else nothing was decided
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("records", "got"), [({"sample": 10}, "a sample"), ([0, 1, 5], "a list of positions")])
def test_only_some_persons_cannot_be_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: object, got: str
) -> None:
    tests = [{"sanitizer": {"name": "mondrian", "k": 12}, "records": records}]
    assert main(["harden", str(written(tmp_path, patients(60), tests=tests)), "--max-removed", "5"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"needs records: all; got {got}" in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_who_is_left_out_is_private(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, patients(120), output={"url": str(tmp_path / "shared"), "private": str(tmp_path / "private")})
    _, document = hardened(capsys, config, "--max-removed", "2")
    folder = Path(str(document["run"]))
    check_schema(json.loads((folder / "harden.json").read_text()), "harden")
    assert not list((tmp_path / "shared").rglob("removed.json"))
    (path,) = (tmp_path / "private" / folder.name).rglob("removed.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "record" not in json.dumps(json.loads((folder / "harden.json").read_text()))
    in_one_place = written(tmp_path, patients(120))
    _, document = hardened(capsys, in_one_place, "--max-removed", "2")
    folder = Path(str(document["run"]))
    assert stat.S_IMODE((folder / "records" / "removed.json").stat().st_mode) == 0o600
    assert "records/removed.json" in json.loads((folder / "manifest.json").read_text())["personal_data"]


def test_a_round_can_be_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = patients(120)
    _, document = hardened(capsys, written(tmp_path, frame), "--max-removed", "3")
    assert main(["explain", str(document["run"]), "--top", "2", "--json"]) == 0
    persons = json.loads(capsys.readouterr().out)["persons"]
    removed = json.loads((Path(str(document["run"])) / "records" / "removed.json").read_text())["row"]
    assert removed
    assert not {person["row"] for person in persons} & set(removed)
    found = document["harden"]
    assert isinstance(found, dict)
    assert persons[0]["distance"] == pytest.approx(found["rounds"][-1]["delta"], rel=1e-12)


def test_a_gate_that_could_not_have_failed_is_not_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = hardened(capsys, written(tmp_path, patients(120), ["delta <= 3"]), "--max-removed", "2")
    assert (code, document["status"]) == (1, "inconclusive")
    found = document["harden"]
    assert isinstance(found, dict)
    assert found["removed"] == 0
    assert "cannot be judged" in str(found["reason"])


@pytest.mark.parametrize(
    ("arguments", "gates", "message"),
    [
        (["--max-removed", "0"], ["delta <= 0.2"], "at least 1 of the 60 persons; got '0'"),
        (["--max-removed", "0%"], ["delta <= 0.2"], "at least 1 of the 60 persons"),
        (["--max-removed", "1%"], ["delta <= 0.2"], "at least 1 of the 60 persons; got '1%'"),
        (["--max-removed", "99%"], ["delta <= 0.2"], "leave at least 2 of the 60 persons"),
        (["--max-removed", "some"], ["delta <= 0.2"], "a number of persons or a percentage"),
        (["--max-removed", "2.5"], ["delta <= 0.2"], "a whole number of persons"),
        (["--max-removed", "5"], ["delta < 0"], "delta < 0 can never hold: delta lies between 0 and inf"),
        (["--max-removed", "5"], [], "dit harden needs a gate to meet"),
        (["--max-removed", "5", "--test", "mondrian-k21"], ["delta <= 0.2"], "did you mean 'mondrian-k12'"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], gates: Sequence[str], message: str
) -> None:
    assert main(["harden", str(written(tmp_path, patients(60), gates)), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not list((tmp_path / "runs").rglob("summary.json"))


def test_several_tests_need_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, patients(60), tests=[{"sanitizer": {"name": "mondrian", "k": [5, 12]}}, {"sanitizer": "raw"}])
    assert main(["harden", str(config), "--max-removed", "5"]) == 2
    assert "2 sanitised tests (mondrian-k5, mondrian-k12)" in capsys.readouterr().err


def test_a_budget_is_a_number_or_a_share() -> None:
    assert [read_budget(text, 1000) for text in ("5", "1%", "0.25 %", " 12.5%")] == [5, 10, 2, 125]


def test_the_release_has_the_persons_who_are_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, target = patients(240), tmp_path / "release.csv"
    config = written(tmp_path, frame)
    code, document = hardened(capsys, config, "--max-removed", "30", "--to", str(target), "--columns", "drop")
    found = document["harden"]
    assert isinstance(found, dict)
    assert code == 0
    assert found["removed"] > 0
    released = pd.read_csv(target)
    left = frame.drop(index=json.loads((Path(str(document["run"])) / "records" / "removed.json").read_text())["record"])
    assert len(released) == 240 - found["removed"]
    assert released["diagnosis"].value_counts().to_dict() == left["diagnosis"].value_counts().to_dict()
    assert released.groupby(["age", "postcode", "ward"]).size().min() >= 12
    beside = json.loads(Path(f"{target}.json").read_text())
    assert beside["run"] == Path(str(document["run"])).name
    assert beside["claim_holds"] is True
    assert (beside["dropped"], beside["left_out"], beside["gate_status"]) == (0, found["removed"], "passed")
    assert main(["harden", str(config), "--max-removed", "30", "--to", str(target), "--columns", "drop"]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err


def test_no_release_is_written_if_the_gates_do_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "release.csv"
    config = written(tmp_path, patients(120), ["delta <= 1e-9"])
    code, document = hardened(capsys, config, "--max-removed", "1", "--to", str(target), "--columns", "drop")
    found = document["harden"]
    assert isinstance(found, dict)
    assert (code, found["release"]) == (1, None)
    assert not target.exists()
