"""A Dask cluster of single processes, each of which a test may kill."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical", "PYTHONPATH": ROOT}


def dask(*arguments: object, inside: Sequence[str] = (), **environment: str) -> subprocess.Popen[bytes]:
    """Start a Dask process, in a network namespace if one is named."""
    prefix = ["ip", "netns", "exec", *inside] if inside else []
    command = [*prefix, sys.executable, "-m", "dask", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | QUIET | environment,
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def address_in(scheduler_file: Path, seconds: float = 300) -> str:
    """Wait for the file that a scheduler writes when it listens, and return its address."""
    deadline = time.monotonic() + seconds
    while not (scheduler_file.exists() and scheduler_file.read_text().endswith("}")):
        assert time.monotonic() < deadline, "no scheduler listens"
        time.sleep(0.1)
    return str(json.loads(scheduler_file.read_text())["address"])


@contextmanager
def processes(*commands: subprocess.Popen[bytes]) -> Iterator[None]:
    """End these, whatever happens; a nanny ends its worker when it is asked to end."""
    try:
        yield
    finally:
        for process in commands:
            process.terminate()
        for process in commands:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def cluster(workers: int = 2, memory: str = "4GB", **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and workers on loopback; yield the address and the scheduler's process."""
    options = ("--nthreads", 1, "--memory-limit", memory, "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", 300)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "scheduler.json"  # it names the port that the scheduler got: one chosen before may be taken
        words = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--no-show", "--scheduler-file", written)
        scheduler = dask("scheduler", *words)
        with processes(scheduler):
            address = address_in(written)
            with processes(*(dask("worker", address, *options, **environment) for _ in range(workers))):
                yield address, scheduler
