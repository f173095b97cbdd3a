"""From bucket to bucket, over the real S3 protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import s3fs
import yaml

from dit_dask.inputs import datasets
from tests.cluster.runs import assert_same, dit, written_text
from tests.cluster.s3_server import KEY, SECRET, S3Access


def config(s3: S3Access, source: str = "s3://incoming/people-*.parquet", output: str = "s3://audits/nightly") -> dict:
    return {
        "version": 1,
        "name": "bucket",
        "data": {"source": source, "storage_options": s3.options},
        "schema": {
            "quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}},
            "sensitive": "occupation",
        },
        "tests": [{"sanitizer": {"name": "mondrian", "k": [2, 4]}}],
        "output": {"url": output, "storage_options": s3.options},
        "cluster": {"workers": 1},
    }


@pytest.fixture(scope="module")
def bucket(s3: S3Access) -> s3fs.S3FileSystem:
    fs = s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=s3.endpoint)
    people = datasets.census(200)
    for number in range(2):
        with fs.open(f"incoming/people-{number}.parquet", "wb") as file:
            people[number * 100 : number * 100 + 100].to_parquet(file)
    return fs


def test_an_audit_reads_and_writes_buckets_and_leaves_no_secret(
    s3: S3Access, bucket: s3fs.S3FileSystem, tmp_path: Path
) -> None:
    path = tmp_path / "bucket.yaml"
    path.write_text(yaml.safe_dump(config(s3)))
    done = dit("run", path, **s3.environment)
    assert done.returncode == 0, done.stderr
    url = done.stdout.splitlines()[-1]
    assert url.startswith("s3://audits/nightly/bucket-")
    local = tmp_path / "copy"
    bucket.get(url.removeprefix("s3://"), str(local), recursive=True)
    assert json.loads((local / "manifest.json").read_text())["status"] == "complete"
    everything = done.stdout + done.stderr + written_text(local)
    assert SECRET not in everything
    assert KEY not in everything

    people = tmp_path / "people-0.parquet"
    datasets.census(200).to_parquet(people)
    here = config(s3, str(people), str(tmp_path / "runs")) | {"data": {"source": str(people)}, "output": str(tmp_path / "runs")}
    path.write_text(yaml.safe_dump(here))
    on_disk = dit("run", path)
    assert_same(local, Path(on_disk.stdout.splitlines()[-1]))

    path.write_text(yaml.safe_dump(config(s3)))
    again = dit("run", path, **s3.environment)
    assert again.returncode == 0
    assert "nothing new: this data was audited at" in again.stderr


@pytest.mark.parametrize(
    ("change", "environment", "message"),
    [
        ({"source": "s3://nowhere/people.csv"}, {}, "data.source: no file at s3://nowhere/people.csv"),
        ({"output": "s3://nowhere/runs"}, {}, "the bucket does not exist"),
        ({}, {"DIT_TEST_SECRET": "wrong-secret-1"}, "data.source: cannot read s3://incoming/people-*.parquet"),
    ],
    ids=["no-input-bucket", "no-output-bucket", "wrong-secret"],
)
def test_a_bucket_that_cannot_be_used_is_one_clear_line(
    s3: S3Access, bucket: s3fs.S3FileSystem, tmp_path: Path, change: dict[str, str], environment: dict[str, str], message: str
) -> None:
    path = tmp_path / "bucket.yaml"
    path.write_text(yaml.safe_dump(config(s3, **change)))
    failed = dit("run", path, "--quiet", **(s3.environment | environment))
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert message in failed.stderr
    assert SECRET not in failed.stderr


def test_an_unset_variable_is_named_only_when_storage_is_opened(s3: S3Access, tmp_path: Path) -> None:
    path = tmp_path / "bucket.yaml"
    path.write_text(yaml.safe_dump(config(s3)))
    failed = dit("run", path, "--quiet")
    assert failed.returncode == 2
    assert failed.stderr == "dit: data.storage_options: the environment variable DIT_TEST_KEY is not set\n"
