"""State of an external sanitizer belongs to one process: copies for other processes start without it."""

from __future__ import annotations

import os
import pickle
from contextlib import closing
from pathlib import Path

from dit_dask.sanitizers.external.process import SanitizerProcess
from dit_dask.sanitizers.external.process_messages import CommandCall, Request
from dit_dask.sanitizers.external.sanitizer import ProcessState


def test_a_copy_of_a_handle_starts_a_process_of_its_own() -> None:
    with closing(SanitizerProcess()) as process:
        process.open()
        with closing(pickle.loads(pickle.dumps(process))) as copy:
            assert copy.root == ""
            copy.open()
            assert copy.root != process.root
        assert os.path.isdir(process.root)


def test_a_copy_of_a_handle_imports_the_same_target() -> None:
    with closing(pickle.loads(pickle.dumps(SanitizerProcess("json:dumps", ["elsewhere"])))) as copy:
        copy.open()
        assert len(copy.code) == 64


def test_a_reply_says_how_a_command_ended() -> None:
    with closing(SanitizerProcess()) as process:
        process.open()
        folder = os.path.join(process.root, "call")
        os.mkdir(folder)
        call = CommandCall(["sh", "-c", "echo problem >&2; exit 3"], {"PATH": os.environ["PATH"]})
        reply = process.call(Request(folder, 30.0, command=call))
        assert (reply.status, reply.error, reply.stderr) == ("exit", "3", "problem\n")
        missing = process.call(Request(folder, 30.0, command=CommandCall(["no-such-program"], {})))
        assert missing.status == "not-started"


def test_a_copy_of_the_state_is_empty() -> None:
    state = ProcessState()
    state.full_releases["name"] = None  # type: ignore[assignment]
    assert pickle.loads(pickle.dumps(state)).full_releases == {}


def test_the_process_imports_nothing_of_the_package(tmp_path: Path) -> None:
    lines = [
        "import sys",
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'dit_dask']",
        "release = print",
    ]
    (tmp_path / "checks_imports.py").write_text("\n".join(lines))
    with closing(SanitizerProcess("checks_imports:release", [str(tmp_path)])) as process:
        process.open()
        assert len(process.code) == 64
