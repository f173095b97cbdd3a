"""An audit that a scheduler starts again and again: what is new, what is not, and the trend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dit_dask.errors import InputError
from dit_dask.inputs.load import load
from dit_dask.inputs.source import check_source
from tests.audits import WORKED_SCHEMA, checked
from tests.cluster.runs import dit

CONFIG = """\
version: 1
name: nightly
data: {source: {latest: SOURCE}}
schema:
  quasi_identifiers: {age: {kind: numeric}, town: {kind: categorical}}
  sensitive: illness
tests:
  - sanitizer: {name: mondrian, k: 2}
cluster: {workers: 1}
"""
LINES = ["age,town,illness"] + [f"{20 + number * 13 % 41},{'AB'[number % 2]},{'xyz'[number * 5 % 3]}" for number in range(40)]


def snapshot(folder: Path, name: str, rows: int) -> None:
    (folder / name).write_text("\n".join(LINES[: rows + 1]) + "\n")


def runs(output: Path) -> list[dict]:
    return json.loads((output / "index.json").read_text())["runs"]


def test_a_schedule_audits_what_is_new_and_history_shows_what_rose(tmp_path: Path) -> None:
    config, output = tmp_path / "nightly.yaml", tmp_path / "runs"
    config.write_text(CONFIG.replace("SOURCE", "in/latest"))
    (tmp_path / "in").mkdir()
    snapshot(tmp_path / "in", "monday.csv", 40)
    (tmp_path / "in" / "latest").write_text("monday.csv\n")
    monday = dit("run", config, "--out", output)
    assert monday.returncode == 0, monday.stderr

    again = dit("run", config, "--out", output, "--set", "gates=['delta <= 0']")
    assert again.returncode == 1, "the gates decide, also over a run that is complete already"
    assert "nothing new: this data was audited at" in again.stderr
    assert again.stdout.splitlines()[-1] == monday.stdout.splitlines()[-1]
    assert len(runs(output)) == 1

    snapshot(tmp_path / "in", "tuesday.csv", 20)
    (tmp_path / "in" / "latest").write_text('{"source": "tuesday.csv"}')
    tuesday = dit("run", config, "--out", output)
    assert tuesday.returncode == 0, tuesday.stderr
    before, after = runs(output)
    assert before["audit"] == after["audit"]
    assert before["fingerprint"] != after["fingerprint"]
    folder = Path(tuesday.stdout.splitlines()[-1])
    assert after["run"] == folder.name
    (delta,) = (entry["delta"] for entry in json.loads((folder / "summary.json").read_text()))
    assert after["tests"]["mondrian-k2"]["delta"] == delta
    assert json.loads((folder / "manifest.json").read_text())["files"] == [(tmp_path / "in" / "tuesday.csv").as_uri()]

    rose = delta > before["tests"]["mondrian-k2"]["delta"]
    assert rose, "fewer people hide less"
    shown = dit("history", output)
    assert shown.returncode == 0
    assert [line.endswith("ROSE") for line in shown.stdout.splitlines()] == [False, False, True]
    assert dit("history", output, "--fail-on-rise").returncode == 1
    told = json.loads(dit("history", output, "--json", "--name", "nightly").stdout)
    assert [rise["run"] for rise in told["rises"]] == [folder.name]
    assert told["runs"] == runs(output)


def test_history_of_a_folder_without_runs_is_one_clear_line(tmp_path: Path) -> None:
    failed = dit("history", tmp_path)
    assert failed.returncode == 2
    assert failed.stderr == f"dit: {tmp_path} has no index.json: no run has been completed there\n"


def files_of(tmp_path: Path, latest: str) -> tuple[str, ...]:
    config = checked(WORKED_SCHEMA, folder=str(tmp_path), data={"source": {"latest": latest}})
    return tuple(Path(name).name for name in load(config).files)


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    for day in ("2026-11-14", "2026-11-16", "2026-11-15"):
        (tmp_path / f"people-{day}.csv").write_text("age,gender,disease\n28,M,Flu\n36,F,Cold\n")
    return tmp_path


def test_the_last_name_of_a_glob_is_the_latest(dated: Path) -> None:
    assert files_of(dated, "people-*.csv") == ("people-2026-11-16.csv",)


@pytest.mark.parametrize("text", ["people-2026-11-14.csv", "people-2026-11-14.csv\r\n", '{"source": "people-2026-11-14.csv"}'])
def test_a_pointer_is_a_name_in_text_or_json(dated: Path, text: str) -> None:
    (dated / "latest").write_text(text)
    assert files_of(dated, "latest") == ("people-2026-11-14.csv",)
    assert files_of(dated, str(dated / "latest")) == ("people-2026-11-14.csv",)


def test_a_pointer_may_name_its_own_folder_in_full_and_a_glob_below_it(dated: Path) -> None:
    (dated / "latest").write_text(f"{dated}/people-2026-11-1[45].csv")
    assert files_of(dated, str(dated / "latest")) == ("people-2026-11-14.csv", "people-2026-11-15.csv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../people.csv",
        "/etc/passwd",
        "s3://elsewhere/people.csv",
        "a.csv\nb.csv",
        "{}",
        '{"source": 3}',
        "[1]",
        "a/../../b",
    ],
)
def test_a_pointer_cannot_lead_elsewhere(dated: Path, text: str) -> None:
    (dated / "latest").write_text(text)
    with pytest.raises(InputError, match=r"data.source.latest: latest must hold one name of a file beside or below it"):
        files_of(dated, "latest")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"latest": "nowhere"}, "data.source.latest: cannot read nowhere: not found"),
        ({"latest": "nobody-*.csv"}, "data.source: no file at nobody-*.csv"),
        ({"newest": "x"}, "data.source: key: unknown 'newest'"),
        (3, r"data.source must be a path, a URL, or {latest: URL}; got 3"),
    ],
)
def test_a_wrong_source_is_one_clear_line(dated: Path, source: object, message: str) -> None:
    with pytest.raises(InputError) as refused:
        check_source(checked(WORKED_SCHEMA, folder=str(dated), data={"source": source}))
    assert message in str(refused.value)
