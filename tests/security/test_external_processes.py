"""Attacks of third-party sanitizers on the audit that calls them, and what they leave behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from dit_dask.errors import ExternalSanitizerError
from dit_dask.sanitizers.external import calls
from dit_dask.sanitizers.external.calls import Command, Function, ProcessLimits
from dit_dask.sanitizers.external.process import SanitizerProcess
from tests.conftest import ROOT

HERE = Path(__file__).parent
FRAME = pd.DataFrame({"age": [31, 47], "illness": ["flu", "gout"]})
LIMITS = ProcessLimits(timeout=60.0, show_stderr=False)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="documented: only Linux ends processes that left their session")
WORKER = """
import sys
from tests.security import test_external_processes as attacks
attacks.function("hangs_beside_a_daemon", pids=sys.argv[1]).sanitize(attacks.FRAME, [0, 1], 0)
"""


def function(name: str, limits: ProcessLimits = LIMITS, **params: Any) -> Function:
    target = f"hostile_sanitizers:{name}"
    return Function(limits, target, params, tuple(FRAME.columns), SanitizerProcess(target, [str(HERE)]))


def release(sanitizer: Function | Command) -> pd.DataFrame:
    return sanitizer.sanitize(FRAME, np.arange(len(FRAME)), 0)


def alive(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_until_gone(*pids: int) -> None:
    deadline = time.monotonic() + 300
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, [pid for pid in pids if alive(pid)]
        time.sleep(0.05)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A TMPDIR of its own; at the end nothing may be left in it."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.rglob("*")) == []


def test_a_function_that_writes_to_every_descriptor_cannot_forge_a_reply(temporary: Path) -> None:
    sanitizer = function("writes_to_every_descriptor")
    with closing(sanitizer.process):
        for _ in range(2):  # a second reply in the pipe would answer the next call
            pd.testing.assert_frame_equal(release(sanitizer), FRAME)


@LINUX
def test_a_function_that_opens_the_pipes_of_its_parent_cannot_forge_a_reply(temporary: Path) -> None:
    sanitizer = function("writes_to_the_pipes_of_its_parent")
    with closing(sanitizer.process):
        for _ in range(2):
            said = ""
            try:  # root can open the pipe, and so break the call, but knows no nonce
                pd.testing.assert_frame_equal(release(sanitizer), FRAME)
            except ExternalSanitizerError as error:
                said = str(error)
            assert said in ("", "its process was killed")


@LINUX
def test_a_daemon_that_a_function_leaves_is_ended_before_its_result_is_used(tmp_path: Path, temporary: Path) -> None:
    sanitizer = function("leaves_a_daemon", pids=str(tmp_path / "pids"))
    with closing(sanitizer.process):
        pd.testing.assert_frame_equal(release(sanitizer), FRAME)
        assert not alive(int((tmp_path / "pids").read_text()))


@LINUX
def test_a_daemon_that_a_command_leaves_is_ended_before_its_result_is_used(tmp_path: Path, temporary: Path) -> None:
    script = (
        "import os, shutil, sys; sys.path.insert(0, sys.argv[1]); import hostile_sanitizers; "
        "hostile_sanitizers._leave_process(sys.argv[2]); shutil.copy(sys.argv[3], sys.argv[4])"
    )
    argv = (sys.executable, "-c", script, str(HERE), str(tmp_path / "pids"), "{input}", "{output}")
    sanitizer = Command(LIMITS, argv, "csv", {}, SanitizerProcess())
    with closing(sanitizer.process):
        assert list(release(sanitizer)["illness"]) == ["flu", "gout"]
        assert not alive(int((tmp_path / "pids").read_text()))


@LINUX
def test_a_call_that_exceeds_its_time_leaves_no_process_and_no_table(tmp_path: Path, temporary: Path) -> None:
    pids = tmp_path / "pids"
    sanitizer = function("hangs_beside_a_daemon", ProcessLimits(3.0, False), pids=str(pids))
    with closing(sanitizer.process):
        with pytest.raises(ExternalSanitizerError, match="it took longer than its 3 s"):
            release(sanitizer)
        wait_until_gone(int(pids.read_text()), int(Path(f"{pids}.daemon").read_text()))
        assert [path.name for path in temporary.rglob("*") if path.is_file()] == [".lock"]


@LINUX
def test_a_function_that_kills_its_sanitizer_process_does_not_outlive_it(tmp_path: Path, temporary: Path) -> None:
    sanitizer = function("kills_its_parent", pids=str(tmp_path / "pids"))
    with closing(sanitizer.process):
        with pytest.raises(ExternalSanitizerError, match="its process was killed"):
            release(sanitizer)
        wait_until_gone(int((tmp_path / "pids").read_text()))


@LINUX
def test_a_killed_worker_leaves_no_process_and_no_table(tmp_path: Path, temporary: Path) -> None:
    pids = tmp_path / "pids"
    variables = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(pids)], env=variables, start_new_session=True)
    deadline = time.monotonic() + 120
    while not Path(f"{pids}.daemon").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    wait_until_gone(int(pids.read_text()), int(Path(f"{pids}.daemon").read_text()))
    deadline = time.monotonic() + 120
    while list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("name", ["writes_temporary_files", "raises_after_writing"])
def test_temporary_files_of_a_function_are_removed_after_the_call(name: str, temporary: Path) -> None:
    sanitizer = function(name)
    with closing(sanitizer.process):
        with suppress(ExternalSanitizerError):
            release(sanitizer)
        assert [path.name for path in temporary.rglob("*") if path.is_file()] == [".lock"]


def test_other_users_cannot_read_the_tables_of_a_call(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = {}
    read_output = calls.read_output

    def look_first(path: str, *texts: str) -> pd.DataFrame:
        folder = Path(path).parent
        modes.update({each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()})
        modes["folders"] = stat.S_IMODE(folder.stat().st_mode) | stat.S_IMODE(folder.parent.stat().st_mode)
        return read_output(path, *texts)

    monkeypatch.setattr(calls, "read_output", look_first)
    sanitizer = function("writes_to_every_descriptor")
    before = os.umask(0)
    try:
        with closing(sanitizer.process):
            release(sanitizer)
    finally:
        os.umask(before)
    assert modes == {"input.pickle": 0o600, "output.parquet": 0o600, "folders": 0o700}
