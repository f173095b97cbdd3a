"""Third-party sanitizers that try to forge replies, and to leave files and processes; they run in child processes only."""

from __future__ import annotations

import json
import os
import signal
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd

FORGED = {"status": "raised", "error": "forged", "stderr": ""}


def _write_forged_replies(descriptors: list[str]) -> None:
    """Write the reply in every form that the worker ever understood."""
    for document in (FORGED, {"reply": FORGED, "nonce": ""}):
        for path in descriptors:
            with suppress(OSError):
                target = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                if stat.S_ISFIFO(os.fstat(target).st_mode):
                    os.write(target, json.dumps(document).encode() + b"\n")


def writes_to_every_descriptor(frame: pd.DataFrame) -> pd.DataFrame:
    """Forge a reply on all that it inherited."""
    _write_forged_replies([f"/proc/self/fd/{number}" for number in range(256) if number != 2])
    return frame


def writes_to_the_pipes_of_its_parent(frame: pd.DataFrame) -> pd.DataFrame:
    """Forge a reply through /proc."""
    _write_forged_replies([f"/proc/{os.getppid()}/fd/{number}" for number in range(256)])
    time.sleep(0.2)
    return frame


def _leave_process(pids: str) -> None:
    """Start a process in a session of its own whose parent is gone, as a daemon does."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(pids, "a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(3600)
        os._exit(0)
    while not Path(pids).exists():
        time.sleep(0.01)


def leaves_a_daemon(frame: pd.DataFrame, pids: str) -> pd.DataFrame:
    """Return, and leave a daemon behind."""
    _leave_process(pids)
    return frame


def hangs_beside_a_daemon(frame: pd.DataFrame, pids: str) -> pd.DataFrame:
    """Leave a daemon, write a table to a temporary file, and never return."""
    with open(pids, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    _leave_process(f"{pids}.daemon")
    frame.to_csv(tempfile.mkstemp()[1])
    time.sleep(3600)
    return frame


def kills_its_parent(frame: pd.DataFrame, pids: str) -> pd.DataFrame:
    """Kill the sanitizer process, and go on."""
    Path(pids).write_text(f"{os.getpid()}\n")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)
    return frame


def raises_after_writing(frame: pd.DataFrame) -> pd.DataFrame:
    """Write the table to a temporary file, and fail."""
    frame.to_csv(tempfile.mkstemp()[1])
    raise ValueError


def writes_temporary_files(frame: pd.DataFrame) -> pd.DataFrame:
    """Write the table to a temporary file and forget it."""
    frame.to_csv(tempfile.mkstemp()[1])
    return frame
