"""A Dask cluster of single processes, each of which a test may kill."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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


def listening(host: str, port: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "nothing listens"
            time.sleep(0.1)


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
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show")
    options = ("--nthreads", 1, "--memory-limit", memory, "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", 300)
    nannies = [dask("worker", address, *options, **environment) for _ in range(workers)]
    with processes(scheduler, *nannies):
        listening("127.0.0.1", port)
        yield address, scheduler
