"""Single objects under many writers: files, memory, and buckets over the real S3 protocol."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

from dit_dask.audit import index, manifest
from dit_dask.audit.parts import Part, read_part, write_part
from dit_dask.engines import Influence
from dit_dask.errors import InputError, RunError
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.cluster.s3_server import S3Access
from tests.manifests import new_manifest, new_plan, tasks_of

WRITERS = 6


@pytest.fixture(params=["files", "memory", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    name = uuid4().hex
    if request.param == "s3":
        s3: S3Access = request.getfixturevalue("s3")
        return Folder(Location(f"s3://audits/{name}", s3.resolved))
    return Folder(Location(str(tmp_path / name) if request.param == "files" else f"memory://{name}", {}))


def crowd(folder: Folder) -> ProcessPoolExecutor | ThreadPoolExecutor:
    """Several processes for files; memory:// exists in one process only, and a bucket's server decides by itself."""
    if "://" in folder.location.url:
        return ThreadPoolExecutor(WRITERS)
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def create(folder: Folder, text: str) -> bool:
    return folder.create("plan.json", text.encode())


def enter(folder: Folder, number: int) -> None:
    for turn in range(4):
        run = f"{number}-{turn}"
        figures = {"mondrian-k2": index.TestFigures({"delta": number / 10, "mean": 0.0})}
        index.append(folder, index.IndexEntry("2026-11-16", run, "a", run, "digest", 10, figures))


def test_one_of_many_creators_wins_and_all_see_the_same_content(folder: Folder) -> None:
    texts = [f"{number}" * 1000 for number in range(WRITERS)]
    with crowd(folder) as pool:
        created = list(pool.map(create, [folder] * WRITERS, texts))
    assert sum(created) == 1
    assert folder.read("plan.json") == texts[created.index(True)].encode()


def test_the_index_loses_no_entry_of_many_writers_and_doubles_none(folder: Folder) -> None:
    with crowd(folder) as pool:
        list(pool.map(enter, [folder] * WRITERS, range(WRITERS)))
    runs = [entry.run for entry in index.read(folder)]
    assert sorted(runs) == sorted(f"{number}-{turn}" for number in range(WRITERS) for turn in range(4))


def test_a_file_that_is_not_there_reads_as_nothing_and_replacing_is_whole(folder: Folder) -> None:
    assert folder.read("none") is None
    assert folder.names("records") == set()
    folder.write("records/one", b"1")
    folder.write("records/one", b"22")
    assert folder.read("records/one") == b"22"
    assert folder.names("records") == {"one"}
    folder.probe()
    manifest.discard(folder)
    assert folder.read("records/one") is None


def influence(distance: list[float]) -> Influence:
    values = np.array(distance)
    return Influence(values, np.zeros(len(values), np.int32), np.zeros(len(values), np.int32))


def test_a_part_that_is_valid_for_the_plan_stays_and_any_other_is_replaced(folder: Folder) -> None:
    record, ones = np.arange(3), np.ones(3, np.int64)
    first = write_part(folder, Part("part", record, record, ones, influence([1.0, 2.0, 3.0]), {}))
    assert first.other is None
    assert write_part(folder, Part("part", record, record, ones, influence([1.0, 2.0, 3.0]), {})) == first
    late = write_part(
        folder, Part("part", record, record, ones, influence([9.0, 9.0, 9.0]), {})
    )  # someone was first, and valid
    assert late.file == first.file
    assert late.other is not None
    assert late.other.distance.tolist() == [1.0, 2.0, 3.0]
    moved = write_part(folder, Part("part", record + 3, record, ones, influence([4.0, 5.0, 6.0]), {}))  # rows of another plan
    assert moved.file.digest != first.file.digest
    content = folder.read("part")
    assert content is not None
    folder.write("part", content[:-20])
    assert read_part(folder, "part", record + 3, ()) is None
    assert write_part(folder, Part("part", record + 3, record, ones, influence([4.0, 5.0, 6.0]), {})) == moved
    assert folder.read("part") == content


def test_a_complete_manifest_is_not_undone_by_another_session(folder: Folder) -> None:
    manifest.note(folder, new_manifest(seed=1))
    noted = manifest.read(folder)
    assert noted is not None
    assert noted.seed == 1
    manifest.write(folder, new_manifest(status="complete"))
    manifest.note(folder, new_manifest(status="failed"))
    kept = manifest.read(folder)
    assert kept is not None
    assert kept.is_complete


def test_the_first_plan_holds_for_all_and_one_of_another_version_for_nobody(folder: Folder) -> None:
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(1))) == 1
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(2))) == 1
    folder.write("plan.json", json.dumps({"dit_dask": "0", "plan": {"test": 0}}).encode())
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(3))) == 3
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(4))) == 3


def test_uploads_that_nobody_will_finish_are_aborted_in_this_run_folder_only(s3: S3Access) -> None:
    fs = s3.client()
    mine, theirs = uuid4().hex, uuid4().hex
    for name in (mine, theirs):
        fs.call_s3("create_multipart_upload", Bucket="audits", Key=f"{name}/part")
    Folder(Location(f"s3://audits/{mine}", s3.resolved)).remove_temporary()
    left = fs.call_s3("list_multipart_uploads", Bucket="audits").get("Uploads", [])
    assert [upload["Key"] for upload in left if upload["Key"].startswith((mine, theirs))] == [f"{theirs}/part"]


def test_files_left_half_written_long_ago_are_removed(tmp_path: Path) -> None:
    old, young = (tmp_path / "records" / f".part.{name}.tmp" for name in ("old", "young"))
    old.parent.mkdir()
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    Folder(Location(str(tmp_path), {})).remove_temporary()
    assert not old.exists()
    assert young.exists()


def test_a_damaged_index_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text("[1, 2")
    with pytest.raises(RunError, match="the run is complete, but is not in the index"):
        enter(Folder(Location(str(tmp_path), {})), 1)
    assert (tmp_path / "index.json").read_text() == "[1, 2"


def test_a_probe_says_in_one_line_what_is_wrong(s3: S3Access, tmp_path: Path) -> None:
    for url, options, message in (
        ("s3://nowhere/runs", s3.resolved, "output: cannot write to s3://nowhere/runs: the bucket does not exist"),
        ("s3://audits/x", s3.resolved | {"secret": "wrong-secret-1"}, "the secret does not belong to the key"),
        ("s3://audits/x", s3.resolved | {"key": "who"}, "the server does not know this key"),
        (
            "s3://audits/x",
            s3.resolved | {"key": s3.reader["DIT_TEST_KEY"], "secret": s3.reader["DIT_TEST_SECRET"]},
            "permission denied",
        ),
        ("gs://audits/x", {}, "install dit_dask[gcs]"),
        ("abfs://audits/x", {}, "install dit_dask[azure]"),
        (str(tmp_path / "file" / "runs"), {}, "output: cannot write to"),
    ):
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(InputError) as refused:
            Folder(Location(url, options)).probe()
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)
        assert "secret-1" not in str(refused.value)
