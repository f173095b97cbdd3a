"""Starting `dit` as users do, and reading what it left."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

DIT = [sys.executable, "-m", "dit_dask"]
LIMIT = 600.0  # seconds until a test gives up: many times what is needed, since the machine may have other work
CONFIG = """\
version: 1
name: long
data: {source: "dit://census", limit: 6000}
schema:
  quasi_identifiers:
    age: {kind: numeric}
    education: {kind: categorical, hierarchy: "dit://hierarchies/adult-education.csv"}
    hours-per-week: {kind: numeric}
    native-country: {kind: categorical, hierarchy: "dit://hierarchies/adult-native-country.csv"}
  sensitive: occupation
tests:
  - sanitizer: {name: mondrian, k: [2, 3]}
    adversary: bernoulli-nb
    engine: brute-force
cluster: {workers: 2}
"""


def dit(*arguments: object, timeout: float = LIMIT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*DIT, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=os.environ | environment, check=False
    )


@contextmanager
def terminal_signals() -> Iterator[None]:
    """Let child processes start with SIGINT at its default, also where this suite is a background job that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a handler becomes the default in a child
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def started(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start the command in a session of its own, with the signals of a terminal, and do not wait."""
    pipe = subprocess.PIPE
    command, variables = [*DIT, *map(str, arguments)], os.environ | environment
    with terminal_signals():
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env=variables)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Leave nothing behind when a test fails."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def until(condition: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = LIMIT) -> None:
    """Wait for something to become true while a process is alive."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def workers_of(pid: int) -> list[psutil.Process]:
    """The worker processes of a local cluster."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
    return found


def rows(folder: Path, test: str) -> pd.DataFrame:
    """All rows of a test, in the order of its parts."""
    parts = sorted((folder / "records" / test).glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(io.BytesIO(part.read_bytes())) for part in parts], ignore_index=True)


def summary(folder: Path) -> list[dict[str, Any]]:
    """summary.json without the seconds, which may differ."""
    entries = json.loads((folder / "summary.json").read_text())
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in entries]


def written_text(folder: Path) -> str:
    """All that the files of a folder say; Parquet is compressed, so its tables are read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files, f"nothing in {folder}"
    tables = [path for path in files if path.suffix == ".parquet"]
    read = [pd.read_parquet(io.BytesIO(path.read_bytes())).to_csv() for path in tables]
    return "\n".join([*(path.read_bytes().decode("latin-1") for path in files), *read])


def assert_same(one: Path, other: Path) -> None:
    """Two runs of one audit agree in every row and every figure."""
    assert summary(one) == summary(other)
    for entry in summary(one):
        pd.testing.assert_frame_equal(rows(one, entry["test"]), rows(other, entry["test"]), check_exact=True)
    left, right = (pd.read_parquet(folder / "distributions.parquet") for folder in (one, other))
    pd.testing.assert_frame_equal(left, right, check_exact=True)
