"""A credential in a config reaches nothing that a run writes, prints or logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask.inputs import datasets
from dit_dask.storage import filesystem as store
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.cluster.runs import dit, written_text
from tests.cluster.s3_server import KEY, SECRET, S3Access

CANARY = "canary-Zq7-never-shown"


def document(options: Mapping[str, Any], output: str) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "canary",
        "data": {"source": "s3://incoming/canary.parquet", "storage_options": options},
        "schema": {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "occupation"},
        "tests": [{"sanitizer": {"name": "mondrian", "k": 2}}],
        "output": {"url": output, "storage_options": options},
        "cluster": {"workers": 1},
    }


def test_literal_credentials_leave_no_trace_even_when_debugging(s3: S3Access, tmp_path: Path) -> None:
    fs = s3.client()
    with fs.open("incoming/canary.parquet", "wb") as file:
        datasets.census(60).to_parquet(file)
    config = tmp_path / "canary.yaml"
    options = s3.resolved | {"client_kwargs": {"region_name": "us-east-1"}}
    config.write_text(yaml.safe_dump(document(options, "s3://audits/canary")))
    done = dit("run", config, "--debug")
    assert done.returncode == 0, done.stderr
    fs.get("audits/canary", str(tmp_path / "copy"), recursive=True)
    written = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"manifest.json", "plan.json", "index.json", "report.html", "summary.json"}
    everything = done.stdout + done.stderr + written_text(tmp_path / "copy")
    assert SECRET not in everything
    assert KEY not in everything


@pytest.mark.parametrize("place", ["s3://audits/x", "s3://nowhere/x"])
def test_refused_credentials_are_not_repeated(s3: S3Access, tmp_path: Path, place: str) -> None:
    config = tmp_path / "canary.yaml"
    asked = document(s3.resolved | {"key": f"{CANARY}-key", "secret": f"{CANARY}-secret"}, place)
    config.write_text(yaml.safe_dump(asked | {"data": {"source": "dit://census", "limit": 60}}))
    failed = dit("run", config, "--debug")
    assert failed.returncode == 2
    assert CANARY not in failed.stdout + failed.stderr


def test_a_worker_that_fails_to_write_logs_no_credential(s3: S3Access, tmp_path: Path) -> None:
    """Dask logs the arguments of a failed task; a run folder among them shows neither options nor a URL with a password."""
    place = Location(f"http://user:{CANARY}@localhost/x?token={CANARY}", {"key": CANARY})
    assert CANARY not in repr(Folder(place)) + str(Folder(place)) + Folder(place).url
    error = OSError(f"cannot reach http://user:{CANARY}@localhost/x?token={CANARY} with {CANARY}")
    assert CANARY not in store.reason(error, place)


def test_a_user_who_may_only_read_is_told_before_any_work(s3: S3Access, tmp_path: Path) -> None:
    config = tmp_path / "reader.yaml"
    asked = document(s3.options, "s3://audits/reader") | {"data": {"source": "dit://census", "limit": 60}}
    config.write_text(yaml.safe_dump(asked))
    failed = dit("run", config, "--quiet", **s3.reader)
    assert failed.returncode == 2
    assert failed.stderr == "dit: output: cannot write to s3://audits/reader: permission denied\n"
