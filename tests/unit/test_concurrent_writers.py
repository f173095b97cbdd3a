"""Two writers of one object: none loses the other's change, and a complete run stays complete."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dit_dask.audit import index, manifest
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.plan import TestPlan
from dit_dask.storage import atomic
from dit_dask.storage.atomic import Change, ContendedError, S3Objects
from dit_dask.storage.documents import render_json
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.manifests import new_manifest, new_plan, tasks_of

WRITERS = 6


@pytest.fixture(params=["files", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return Folder(Location(str(tmp_path) if request.param == "files" else f"memory://{uuid4().hex}", {}))


def adding(text: str, before: Callable[[], None] = lambda: None) -> Change:
    """Append a word unless it is there, as the index does."""

    def change(content: bytes | None) -> bytes | None:
        before()
        words = (content or b"").decode().split()
        return None if text in words else " ".join([*words, text]).encode()

    return change


def test_nobody_writes_between_the_reading_and_the_writing_of_another(folder: Folder) -> None:
    ended = threading.Event()
    intruder = threading.Thread(target=lambda: (folder.update("words", adding("second")), ended.set()))

    def intrude() -> None:
        if not intruder.ident:
            intruder.start()
            assert not ended.wait(0.5), "another writer came in between"

    folder.update("words", adding("first", intrude))
    intruder.join(60)
    assert (folder.read("words") or b"").decode().split() == ["first", "second"]


def test_no_change_of_many_writers_is_lost(folder: Folder) -> None:
    start = threading.Barrier(WRITERS)

    def work(number: int) -> None:
        start.wait(60)
        for turn in range(5):
            folder.update("words", adding(f"{number}-{turn}"))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    words = (folder.read("words") or b"").decode().split()
    assert sorted(words) == sorted(f"{number}-{turn}" for number in range(WRITERS) for turn in range(5))


def test_a_change_to_nothing_writes_nothing(folder: Folder) -> None:
    folder.update("words", lambda _: None)
    assert folder.read("words") is None


@dataclass(frozen=True)
class Bucket(S3Objects):
    """One object with tags; `rivals` are written by others, one just before each of our writes."""

    fs: Any = None
    state: dict[str, Any] = field(default_factory=lambda: {"tag": 0, "content": None})
    rivals: list[bytes] = field(default_factory=list)

    def _get(self, _path: str) -> tuple[str, bytes | None]:
        return str(self.state["tag"]), self.state["content"]

    def _put_if(self, _path: str, content: bytes, **condition: str) -> bool:
        if self.rivals:
            self._store(self.rivals.pop(0))
        expected = {"IfNoneMatch": "*"} if self.state["content"] is None else {"IfMatch": str(self.state["tag"])}
        if condition != expected:
            return False
        self._store(content)
        return True

    def _store(self, content: bytes) -> None:
        self.state.update(tag=self.state["tag"] + 1, content=content)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(atomic.time, "sleep", slept.append)
    return slept


@pytest.mark.parametrize("rivals", [0, 1, 3])
def test_a_bucket_applies_the_change_to_what_others_left(pauses: list[float], rivals: int) -> None:
    left = [" ".join(f"r{n}" for n in range(count + 1)).encode() for count in range(rivals)]
    bucket = Bucket(rivals=left.copy())
    bucket.update("bucket/words", adding("mine"))
    assert bucket.state["content"].decode().split() == [f"r{n}" for n in range(rivals)] + ["mine"]
    assert len(pauses) == rivals


def test_a_bucket_that_never_rests_is_an_error(pauses: list[float]) -> None:
    bucket = Bucket(rivals=[f"{number}".encode() for number in range(1000)])
    with pytest.raises(ContendedError):
        bucket.update("bucket/words", adding("mine"))
    assert len(pauses) == atomic.MOST_UPDATES


def stored(folder: Folder) -> Manifest:
    found = manifest.read(folder)
    assert found is not None
    return found


class ScriptedFolder(Folder):
    """A folder whose update shows the change one stored content after the other, as a contended bucket does."""

    def __init__(self, *seen: Manifest | None) -> None:
        super().__init__(Location("memory://unused", {}))
        object.__setattr__(self, "seen", [None if stored is None else render_json(stored.document()) for stored in seen])
        object.__setattr__(self, "offered", [])

    def update(self, name: str, change: Change) -> None:
        assert name == manifest.NAME
        self.offered.extend(change(content) for content in self.seen)


def test_a_note_is_offered_where_no_run_is_complete() -> None:
    for stored in (None, new_manifest(status="running"), new_manifest(status="failed")):
        folder = ScriptedFolder(stored)
        manifest.note(folder, new_manifest(status="failed", seed=1))
        (offered,) = folder.offered
        assert json.loads(offered)["status"] == "failed"
        assert json.loads(offered)["schema_version"] == manifest.SCHEMA_VERSION


@pytest.mark.parametrize("first", [None, new_manifest(status="running")])
def test_a_note_gives_way_to_a_run_that_was_completed_meanwhile(first: Manifest | None) -> None:
    folder = ScriptedFolder(new_manifest(status="complete"))
    manifest.note(folder, new_manifest(status="failed"))
    assert folder.offered == [None]
    folder = ScriptedFolder(first, new_manifest(status="complete"))
    manifest.note(folder, new_manifest(status="failed"))
    assert folder.offered[-1] is None


def test_a_note_is_not_repeated_over_the_note_of_another_session() -> None:
    folder = ScriptedFolder(None, new_manifest(status="running", seed=2))
    manifest.note(folder, new_manifest(status="running", seed=1))
    assert folder.offered[1] is None


def test_a_note_is_offered_again_where_the_first_write_failed() -> None:
    for stored in (None, new_manifest(status="running")):
        folder = ScriptedFolder(stored, stored)
        manifest.note(folder, new_manifest(status="failed"))
        assert folder.offered[0] == folder.offered[1] is not None


def test_a_note_that_is_stored_is_not_written_again(folder: Folder) -> None:
    for _ in range(2):
        manifest.note(folder, new_manifest(status="running"))
    assert stored(folder).status == "running"


def test_a_note_survives_a_storage_that_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, replace = Folder(Location(str(tmp_path), {})), atomic.LocalFiles.replace
    failures = [ConnectionResetError()]

    def fail_once(self: atomic.LocalFiles, path: str, content: bytes) -> None:
        if failures:
            raise failures.pop()
        replace(self, path, content)

    monkeypatch.setattr(atomic.LocalFiles, "replace", fail_once)
    manifest.note(folder, new_manifest(status="failed"))
    assert stored(folder).status == "failed"


def test_whoever_notes_while_another_completes_the_run_it_stays_complete(folder: Folder) -> None:
    start = threading.Barrier(WRITERS)

    def work(number: int) -> None:
        start.wait(60)
        if number == 0:
            manifest.write(folder, new_manifest(status="complete"))
        else:
            manifest.note(folder, new_manifest(status="failed", seed=number))

    for _ in range(10):
        folder.clear()
        manifest.note(folder, new_manifest(status="running"))
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(work, range(WRITERS)))
        assert stored(folder).status == "complete"


def test_all_who_plan_at_once_get_the_plan_of_the_first(folder: Folder) -> None:
    start = threading.Barrier(WRITERS)

    def work(number: int) -> int:
        def make() -> dict[str, TestPlan]:
            start.wait(60)  # everybody has looked and found no plan
            return new_plan(number)

        return tasks_of(manifest.agreed_plan(folder, make))

    with ThreadPoolExecutor(WRITERS) as pool:
        plans = list(pool.map(work, range(WRITERS)))
    assert plans == [plans[0]] * WRITERS
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(99))) == plans[0]


def test_a_plan_made_in_between_by_another_session_wins(folder: Folder) -> None:
    def late() -> dict[str, TestPlan]:
        assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(1))) == 1
        return new_plan(2)

    assert tasks_of(manifest.agreed_plan(folder, late)) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"dit_dask": "0", "plan": {"test": 1}}'])
def test_a_plan_that_cannot_be_used_is_replaced(folder: Folder, content: bytes) -> None:
    folder.write(manifest.PLAN, content)
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(2))) == 2
    assert tasks_of(manifest.agreed_plan(folder, lambda: new_plan(3))) == 2


def entry(run: str) -> index.IndexEntry:
    return index.IndexEntry("2026-11-16", "nightly", "a", run, "digest", 10, {})


def test_the_index_enters_a_run_once_and_again_when_its_data_came_back(folder: Folder) -> None:
    for run in ("one", "one", "two", "two", "one", "one"):
        index.append(folder, entry(run))
    assert [found.run for found in index.read(folder)] == ["one", "two", "one"]


def test_the_index_of_a_bucket_keeps_what_a_rival_entered_meanwhile(pauses: list[float], monkeypatch: Any) -> None:
    rival = json.dumps({"schema_version": index.SCHEMA_VERSION, "runs": [entry("rival").document()]}).encode()
    bucket = Bucket(rivals=[rival])
    folder = Folder(Location("memory://unused", {}))
    monkeypatch.setattr(Folder, "update", lambda _, name, change: bucket.update(name, change))
    index.append(folder, entry("mine"))
    assert [found["run"] for found in json.loads(bucket.state["content"])["runs"]] == ["rival", "mine"]
