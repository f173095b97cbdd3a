"""JSON Schema for every JSON file that is written: real runs conform, and damaged ones do not."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dit_dask.cli import main
from tests.reporting.runs import finished_run, hostile_config


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((files("dit_dask") / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def schema_name(path: Path) -> str:
    """The schema of a file of a run folder."""
    return "measure" if path.parent.name == "measures" else path.stem


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, hostile_run: Path) -> list[Path]:
    """Runs of several kinds: classes, noisy counts, a sample, a list of sensitive attributes left out."""
    folder = tmp_path_factory.mktemp("kinds")
    sampled = [{"sanitizer": {"name": "mondrian", "k": 5}, "records": {"sample": 20, "seed": 1}}]
    noisy: list[dict[str, Any]] = [
        {"sanitizer": {"name": "laplace", "epsilon": 1}},
        {"sanitizer": {"name": "laplace", "epsilon": 1}, "method": "simulate", "samples": 50},
    ]
    return [
        hostile_run,
        finished_run(folder / "sampled", tests=sampled, controls=False),
        finished_run(folder / "noisy", tests=noisy, gates=["delta <= 0.1"]),
    ]


def test_every_json_file_of_real_runs_conforms(runs: list[Path]) -> None:
    seen = set()
    for run in runs:
        for path in [*run.rglob("*.json"), run.parent / "index.json"]:
            document = json.loads(path.read_text("utf-8"))
            errors = [error.message for error in validator(schema_name(path)).iter_errors(document)]
            assert errors == [], path.name
            seen.add(schema_name(path))
    assert seen == {"manifest", "plan", "summary", "verdict", "measures", "measure", "index"}


def test_what_commands_print_and_pack_conforms(hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "gate"):
        main([command, str(hostile_run), "--json"])
        validator("run").validate(json.loads(capsys.readouterr().out))
    assert main(["report", str(hostile_run), "--pack", str(tmp_path / "e.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "e.zip") as pack:
        names = [name for name in pack.namelist() if name.endswith(".json")]
        for name in names:
            validator(name.removesuffix(".json")).validate(json.loads(pack.read(name)))
    assert set(names) == {"verdict.json", "summary.json", "measures.json", "config.json", "environment.json"}
    config = hostile_config(tmp_path)
    assert main(["risk", str(config), "--size", "2", "--out", str(tmp_path / "risk")]) == 0
    (path,) = (tmp_path / "risk").rglob("risk.json")
    validator("risk").validate(json.loads(path.read_text("utf-8")))


@pytest.mark.parametrize("name", ["manifest", "plan", "summary", "verdict", "measures"])
def test_a_file_that_lacks_a_key_or_has_a_text_for_a_number_does_not_conform(name: str, hostile_run: Path) -> None:
    original = (hostile_run / f"{name}.json").read_text("utf-8")
    document = json.loads(original)
    first = document[0] if isinstance(document, list) else document
    for key in list(validator(name).schema.get("required", [])) or ["id" if name == "measures" else "test"]:
        changed = json.loads(original)
        del (changed[0] if isinstance(changed, list) else changed)[key]
        assert not validator(name).is_valid(changed), key
    first[next(iter(first))] = {"not": ["what", "is", "expected"]}
    assert not validator(name).is_valid(document)


READERS = {
    "duckdb": "import duckdb; print(duckdb.sql(f\"select count(*), max(distance) from '{sys.argv[1]}'\").fetchall()[0])",
    "polars": "import polars; f = polars.read_parquet(sys.argv[1]); print((f.height, f['distance'].max()))",
}


@pytest.mark.slow
@pytest.mark.parametrize("package", READERS)
def test_other_tools_read_the_results_without_us(package: str, hostile_run: Path) -> None:
    pytest.importorskip(package)
    summary = json.loads((hostile_run / "summary.json").read_text("utf-8"))[0]
    pattern = str(hostile_run / "records" / summary["test"] / "*.parquet")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {READERS[package]}", pattern], capture_output=True, text=True, check=True
    )
    rows, largest = done.stdout.strip("()\n").split(",")
    assert (int(rows), float(largest)) == (summary["records"], summary["delta"])


def test_what_other_commands_write_conforms(tmp_path: Path) -> None:
    config = hostile_config(
        tmp_path, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}], measures=[], gates=["delta <= 1.15"], controls=False
    )
    out = ["--out", str(tmp_path / "runs")]
    assert main(["tune", str(config), "--values", "5,20", *out]) in (0, 1)
    assert main(["harden", str(config), "--max-removed", "5", *out]) in (0, 1)
    assert main(["tune", str(config), "--attributes", *out]) in (0, 1)
    assert main(["leave-out", str(config), "--to", str(tmp_path / "tables"), "--set", "data.limit=12", "--quiet"]) == 0
    for name in ("tune", "harden", "what-if", "leave-out"):
        (path,) = tmp_path.rglob(f"{name}.json")
        document = json.loads(path.read_text("utf-8"))
        validator(name).validate(document)
        for key in document:
            assert not validator(name).is_valid({other: value for other, value in document.items() if other != key}), key
    (tuned,) = [path.parent for path in tmp_path.rglob("tune.json")]
    assert main(["report", str(tuned)]) == 0
    assert "The recommended value" in (tuned / "report.html").read_text("utf-8")
