"""Terminals, pipes and signals that try to make the command end in a trace, and refusals that try to destroy or leave files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask import run as runner
from dit_dask.audit.grammar import check_config
from dit_dask.errors import InputError
from dit_dask.execution.progress import Silent
from dit_dask.execution.workers import Workers
from tests.audits import WORKED, WORKED_SCHEMA
from tests.cluster.runs import CONFIG, DIT, ended, started

INTERRUPTED = "dit: interrupted; the same command resumes where it stopped\n"
TESTS = [{"sanitizer": {"name": "mondrian", "k": 2}}]


def document(folder: Path, **keys: Any) -> dict[str, Any]:
    WORKED.to_csv(folder / "people.csv", index=False)
    shared = {"version": 1, "data": {"source": "people.csv"}, "schema": WORKED_SCHEMA, "tests": TESTS}
    return shared | {"output": str(folder / "runs")} | keys


def write_config(folder: Path, **keys: Any) -> Path:
    (folder / "audit.yaml").write_text(yaml.safe_dump(document(folder, **keys)), "utf-8")
    return folder / "audit.yaml"


def shell(command: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command with redirections of a shell; "$@" is the command itself."""
    whole = ["sh", "-c", command, "sh", *DIT, *map(str, arguments)]
    return subprocess.run(whole, capture_output=True, text=True, timeout=300, env=os.environ | environment, check=False)


def test_an_ascii_terminal_shows_everything(tmp_path: Path) -> None:
    done = shell('"$@"', "risk", write_config(tmp_path), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "unexpected" not in done.stderr
    missing = shell('"$@"', "risk", "Köln–日本.yaml", PYTHONIOENCODING="ascii")
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "\\u65e5" in missing.stderr


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full", "| true"])
def test_a_closed_stdout_is_one_line(redirection: str, tmp_path: Path) -> None:
    command = f'("$@"; echo "exit $?" >&2) {redirection}'
    done = shell(command, "risk", write_config(tmp_path))
    lines = done.stderr.splitlines()
    if redirection == "| true" and lines == ["exit 0"]:
        pytest.skip("the reader was still there")
    assert lines[-1] == "exit 2"
    assert len(lines) == 2
    assert lines[0].startswith("dit: stdout")


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.2])
@pytest.mark.slow  # it must hit moments that a busy machine moves
def test_an_interrupt_in_the_first_moments_is_one_line(seconds: float, tmp_path: Path) -> None:
    with ended(started("run", write_config(tmp_path))) as process:
        waiting_since = time.monotonic()
        while "dit_dask" not in _state(process.pid) and time.monotonic() - waiting_since < 120:
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=300)
    assert process.returncode == 2, shown
    assert shown == INTERRUPTED


def _state(pid: int) -> str:
    """Whether the interpreter has come to our code: before that, no program can handle a signal in its own way."""
    try:
        handled = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    except (OSError, StopIteration):
        return ""
    return "dit_dask" if int(handled.split()[1], 16) >> (signal.SIGTERM - 1) & 1 else ""  # only we handle SIGTERM


@pytest.mark.slow  # it must hit moments that a busy machine moves
def test_a_double_interrupt_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(CONFIG)
    with ended(started("run", tmp_path / "long.yaml", "--out", tmp_path / "runs", "--quiet")) as process:
        waiting_since = time.monotonic()
        while not list(tmp_path.glob("runs/*/manifest.json")) and time.monotonic() - waiting_since < 120:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=300)
    assert process.returncode == 2, shown
    assert shown == INTERRUPTED


class RefusedError(InputError):
    """Peers that cannot be used."""


def refusing() -> Any:
    raise RefusedError("cluster: its peers run another version")


def test_fresh_deletes_nothing_when_its_peers_are_refused(tmp_path: Path) -> None:
    prepared = runner.prepare(check_config(document(tmp_path), str(tmp_path)))
    finished = runner.run(prepared, Workers(None, 1), Silent())
    folder = Path(finished.folder.url)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(RefusedError):
        runner.run(prepared, Workers(refusing, 1), Silent(), fresh=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    again = runner.run(prepared, Workers(refusing, 1), Silent())  # complete: no worker is needed
    assert again.folder == finished.folder


def test_a_run_refused_for_its_peers_leaves_no_folder(tmp_path: Path) -> None:
    prepared = runner.prepare(check_config(document(tmp_path), str(tmp_path)))
    with pytest.raises(RefusedError):
        runner.run(prepared, Workers(refusing, 1), Silent())
    assert not (tmp_path / "runs").exists()


def test_a_run_refused_before_any_work_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise InputError("tests[0]: refused")

    prepared = runner.prepare(check_config(document(tmp_path), str(tmp_path)))
    monkeypatch.setattr(runner.plan, "make", refuse)
    with pytest.raises(InputError, match="refused"):
        runner.run(prepared, Workers(None, 1), Silent())
    assert not list((tmp_path / "runs").glob("*"))


LOST = """
import os, signal, sys, time
from dit_dask.cli import interrupts

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

interrupts.raise_on_interrupt()
sys.unraisablehook = lambda _: print("lost")
Callback()
try:
    time.sleep(60)
except KeyboardInterrupt:
    try:
        time.sleep(2.5)
    finally:
        print("closed")
    interrupts.ignore_interrupts()
"""


def test_an_interrupt_that_compiled_code_swallows_is_raised_again_and_breaks_no_clean_up() -> None:
    found = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=300, check=False)
    assert (found.stdout, found.stderr, found.returncode) == ("lost\nclosed\n", "", 0)
