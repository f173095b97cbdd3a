"""`dit explain` as a user runs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from dit_dask.cli import main


@pytest.fixture
def finished(config_file: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished run of the small table of people."""
    main(["run", str(config_file), "--out", str(config_file.parent / "runs"), "--quiet"])
    return Path(capsys.readouterr().out.splitlines()[-1])


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    assert main(["explain", *map(str, arguments), "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[object]) -> str:
    assert main(["explain", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    return printed.err


def test_the_worst_persons_of_the_worst_test_are_printed(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(finished), "--top", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("mondrian-k2: delta ")
    for start in ("1. record ", "3. record ", "   class with them: ", "   split: ", "   one level coarser: ", "   left out: "):
        assert any(line.startswith(start) for line in printed.out.splitlines()), start
    assert "4. record" not in printed.out
    assert "do not share" in printed.err
    for value in ("Lyon", "France", "cook", "gout"):
        assert value not in printed.out + printed.err


def test_nothing_is_written_to_the_run_folder(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    explained(capsys, finished)
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_json_has_the_stored_distances_and_no_values(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, finished, "--test", "mondrian-k5", "--top", 4)
    parts = [pd.read_parquet(path) for path in sorted((finished / "records" / "mondrian-k5").iterdir())]
    stored = pd.concat(parts).sort_values(["distance", "record"], ascending=[False, True]).head(4)
    persons = found["persons"]
    assert isinstance(persons, list)
    assert [person["record"] for person in persons] == stored["record"].tolist()
    assert [person["row"] for person in persons] == stored["row"].tolist()
    assert [person["distance"] for person in persons] == pytest.approx(stored["distance"].tolist(), rel=1e-12)
    assert found["personal_data"] is True
    assert not any("values" in person for person in persons)


def test_values_need_the_table_and_the_option(finished: Path, people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--data TABLE" in refused(capsys, [finished, "--show-values"])
    persons = explained(capsys, finished, "--data", people, "--show-values", "--top", 2)["persons"]
    frame = pd.read_csv(people)
    assert isinstance(persons, list)
    for person in persons:
        assert person["values"] == {name: str(cell) for name, cell in frame.iloc[person["row"]].items()}


def test_another_table_is_refused(finished: Path, people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = people.parent / "changed.csv"
    changed.write_text(people.read_text("utf-8").replace("20,Lyon,cook,flu", "21,Lyon,cook,flu"), "utf-8")
    assert "not the one that was audited" in refused(capsys, [finished, "--data", changed])
    assert "with other values or in another order" in refused(capsys, [finished, "--data", changed])
    fewer = people.parent / "fewer.csv"
    fewer.write_text("\n".join(people.read_text("utf-8").splitlines()[:40]), "utf-8")
    assert "it has 39 used rows, the run 60" in refused(capsys, [finished, "--data", fewer])


def test_distances_that_brute_force_does_not_confirm_are_refused(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = next((finished / "records" / "mondrian-k2").iterdir())
    frame = pd.read_parquet(part)
    frame.loc[7, "distance"] = 2.5
    frame.to_parquet(part)
    assert "brute force gives record 7" in refused(capsys, [finished])


def test_a_test_that_does_not_exist_names_the_nearest(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'mondrian-k5'" in refused(capsys, [finished, "--test", "mondrian-k6"])
    assert "is not a run folder" in refused(capsys, [finished.parent])


def test_a_run_whose_files_moved_takes_the_config(
    finished: Path, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = config_file.parent / "moved"
    moved.mkdir()
    for name in ("people.csv", "town.csv", "people.yaml"):
        shutil.move(config_file.parent / name, moved / name)
    refused(capsys, [finished])
    found = explained(capsys, finished, "--config", moved / "people.yaml", "--top", 1)
    assert found["test"] == "mondrian-k2"


def test_personal_data_that_is_elsewhere_is_found_there(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = {"url": str(config_file.parent / "shared"), "private": str(config_file.parent / "private")}
    main(["run", str(config_file), "--set", f"output={json.dumps(places)}", "--quiet"])
    folder = capsys.readouterr().out.splitlines()[-1]
    persons = explained(capsys, folder, "--top", 2)["persons"]
    assert isinstance(persons, list)
    assert len(persons) == 2
    shutil.rmtree(config_file.parent / "private")
    assert "output.private" in refused(capsys, [folder])
