"""Releases that are written to a bucket, over the real S3 protocol: complete, or not there at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from dit_dask.cli import main
from dit_dask.errors import InputError, RunError
from dit_dask.releasing import writing
from dit_dask.storage.location import Location
from dit_dask.storage.streams import new_file
from tests.cluster.s3_server import SECRET, S3Access
from tests.conftest import write_people

PART_BYTES = 5 * 2**20  # the smallest part of an upload


@pytest.fixture
def config(s3: S3Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    write_people(tmp_path)
    document = {
        "version": 1,
        "data": {"source": "people.csv"},
        "schema": {
            "quasi_identifiers": {"age": {"kind": "numeric"}, "job": {"kind": "categorical"}},
            "sensitive": "illness",
        },
        "tests": [{"sanitizer": {"name": "mondrian", "k": 5}}],
        "output": {"url": "s3://audits/runs", "storage_options": s3.options},
    }
    path = tmp_path / "bucket.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def sanitize(config: Path, url: str) -> int:
    return main(["sanitize", str(config), "--test", "mondrian-k5", "--to", url, "--columns", "drop"])


def objects(s3: S3Access, folder: str) -> list[str]:
    return sorted(path for path in s3.client().find(folder) if path != folder)  # SeaweedFS keeps a folder that became empty


def unfinished_uploads(fs: Any, bucket: str, below: str) -> list[str]:
    """The keys of uploads that were not ended, without those that killed processes of other tests left in the bucket."""
    uploads = fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])
    return [upload["Key"] for upload in uploads if upload["Key"].startswith(below)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_is_written_to_a_bucket_and_never_replaced(
    s3: S3Access, config: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    path = f"audits/written/{ending}/release.{ending}"
    assert sanitize(config, f"s3://{path}") == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert out == f"s3://{path}\n"
    assert SECRET not in err
    fs = s3.client()
    assert objects(s3, f"audits/written/{ending}") == [path, f"{path}.json"]
    content, about = fs.cat_file(path), fs.cat_file(f"{path}.json")
    assert json.loads(about)["sha256"] == hashlib.sha256(content).hexdigest()
    with fs.open(path) as file:
        frame = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
    assert frame.groupby(["age", "job"]).size().min() == json.loads(about)["read_back"]["k"] >= 5
    assert sanitize(config, f"s3://{path}") == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    fs.rm(path)
    assert sanitize(config, f"s3://{path}") == 2  # the description is still there, so this would replace it
    assert fs.cat_file(f"{path}.json") == about
    assert objects(s3, f"audits/written/{ending}") == [f"{path}.json"]


@pytest.mark.parametrize("step", ["_read_back", "render_json"])
def test_a_failure_leaves_nothing(
    s3: S3Access, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_arguments: object) -> None:
        assert objects(s3, f"audits/failed/{step}")  # the release is there by now
        raise RunError("made to fail")

    monkeypatch.setattr(writing, step, fail)
    assert sanitize(config, f"s3://audits/failed/{step}/release.csv") == 2
    assert "made to fail" in capsys.readouterr().err
    assert objects(s3, f"audits/failed/{step}") == []


def test_who_may_not_write_is_told_in_one_line(
    s3: S3Access, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.reader.items():
        monkeypatch.setenv(name, value)
    assert sanitize(config, "s3://audits/denied/release.csv") == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "cannot write s3://audits/denied/release.csv: permission denied" in err
    assert objects(s3, "audits/denied") == []


def write(place: Location, content: bytes, then: Callable[[], None]) -> None:
    with new_file(place, "--to") as file:
        file.write(content)
        then()


def test_an_upload_in_parts_is_aborted_and_replaces_nothing(s3: S3Access) -> None:
    options = s3.resolved | {"default_block_size": PART_BYTES}
    place, fs = Location("s3://audits/parts/release.csv", options), s3.client()
    content = b"x" * (2 * PART_BYTES + 1)

    def fail() -> None:
        assert unfinished_uploads(fs, "audits", "parts/") == ["parts/release.csv"]  # else there is nothing to abort
        raise RunError("made to fail")

    with pytest.raises(RunError, match="made to fail"):
        write(place, content, fail)
    assert objects(s3, "audits/parts") == unfinished_uploads(fs, "audits", "parts/") == []
    with pytest.raises(InputError, match="exists and is not overwritten"):
        write(place, content, lambda: fs.pipe_file("audits/parts/release.csv", b"of another process"))
    assert fs.cat_file("audits/parts/release.csv") == b"of another process"
    assert unfinished_uploads(fs, "audits", "parts/") == []


def test_of_two_writers_at_once_the_first_stays(s3: S3Access) -> None:
    place, fs = Location("s3://audits/race/release.csv", s3.resolved), s3.client()
    with pytest.raises(InputError, match="exists and is not overwritten"):
        write(place, b"second", lambda: fs.pipe_file("audits/race/release.csv", b"first"))
    assert fs.cat_file("audits/race/release.csv") == b"first"
