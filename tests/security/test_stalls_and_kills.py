"""Processes that are killed or stopped at a bad moment: a run goes on, or ends with one line."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dit_dask.errors import RunError
from dit_dask.storage import atomic
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.cluster import stopping
from tests.cluster.runs import dit


def test_a_worker_killed_during_the_first_call_of_a_sanitizer_does_not_end_the_run(config_file: Path, tmp_path: Path) -> None:
    shutil.copy(Path(stopping.__file__), config_file.parent)  # a function beside the config, as users have it
    log = tmp_path / "log"
    parameters = {"number": int(signal.SIGKILL), "log": str(log), "times": 2}
    sanitizer = {"name": "python", "target": "stopping:sanitize", "params": parameters, "cache": "none"}
    tests = json.dumps([{"sanitizer": sanitizer, "records": [0]}])
    done = dit("run", config_file, "--out", tmp_path / "runs", "--set", f"tests={tests}")
    assert len(log.read_text().splitlines()) == 2
    assert "unexpected" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A folder whose lock somebody holds."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield tmp_path
    os.close(descriptor)


def test_a_lock_that_is_never_released_ends_the_wait_with_one_line(
    held: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(atomic, "LOCK_SECONDS", 1.0)
    monkeypatch.setattr(atomic, "LOCK_NOTICE_SECONDS", 0.2)
    start = time.monotonic()
    with pytest.raises(RunError, match=r"index\.json: .*another process has held the lock of .* for 1 s") as caught:
        Folder(Location(str(held), {})).update("index.json", lambda _: b"[]")
    assert "\n" not in str(caught.value)
    assert time.monotonic() - start >= 1.0
    assert [record.getMessage() for record in caplog.records] == [
        f"waiting up to 1 s for another process that holds the lock of {held}"
    ]
