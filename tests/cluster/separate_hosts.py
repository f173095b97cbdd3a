"""Machines in miniature: each has network and processes of its own, and a cable whose bytes are counted."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from string import ascii_lowercase

import pytest

from tests.cluster.dask_processes import QUIET, address_in, dask, processes

ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
NUMBERS = count()
WORKER = ("--nthreads", "1", "--no-dashboard", "--memory-limit", "4GB", "--death-timeout", "300")


@dataclass(frozen=True)
class Host:
    """A machine: its network namespace, its address, and this end of its cable."""

    name: str
    address: str
    cable: str

    def received(self) -> int:
        """The bytes that came to it so far."""
        return int(Path(f"/sys/class/net/{self.cable}/statistics/tx_bytes").read_text())

    def start_workers(self, scheduler: str, number: int, nanny: bool) -> subprocess.Popen[bytes]:
        """Start workers that see the processes of this machine only."""
        options = [*WORKER, "--host", self.address, "--nanny" if nanny else "--no-nanny"]
        worker = shlex.join([sys.executable, "-m", "dask", "worker", scheduler, *options])
        command = ["ip", "netns", "exec", self.name, *ALONE, "sh", "-c", f"{worker} & " * number + "wait"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, start_new_session=True, env=os.environ | QUIET, **quiet)


def skip_without_rights() -> None:
    """Skip a test where no process can be started that sees no other one, nor a network."""
    if os.geteuid() or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs root, iproute2 and unshare to make machines in miniature")
    tried = subprocess.run([*ALONE, "true"], check=False, capture_output=True)
    if tried.returncode:
        pytest.skip(f"no right to separate processes: {tried.stderr.decode().strip()}")


@contextmanager
def separate_hosts(number: int) -> Iterator[tuple[str, list[Host]]]:
    """Some machines and this one, on one switch; yield the address of this one, and the others."""
    switch = f"dit{os.getpid()}{ascii_lowercase[next(NUMBERS) % 26]}"
    hosts = [Host(f"{switch}-{place}", f"10.78.0.{place + 2}", f"{switch}{place}") for place in range(number)]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    skip_without_rights()
    try:
        try:
            ip("link", "add", switch, "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no right to make networks: {error.stderr.decode().strip()}")
        for host in hosts:
            ip("netns", "add", host.name)
            ip("link", "add", host.cable, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        ip("addr", "add", "10.78.0.1/24", "dev", switch)
        ip("link", "set", switch, "up")
        for host in hosts:
            ip("link", "set", host.cable, "master", switch, "up")
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "eth0")
            ip("-n", host.name, "link", "set", "eth0", "up")
            ip("-n", host.name, "link", "set", "lo", "up")
        yield "10.78.0.1", hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", switch], check=False, capture_output=True)


@contextmanager
def killed_at_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill it at the end: what it started ends with it."""
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def workers_on_hosts(counts: Sequence[int], nanny: bool = False) -> Iterator[tuple[str, list[Host]]]:
    """A scheduler here and so many workers on each machine; yield its address, and the machines."""
    with separate_hosts(len(counts)) as (here, hosts), tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        written = Path(folder) / "scheduler.json"
        scheduler = dask("scheduler", "--host", here, "--port", 0, "--no-dashboard", "--no-show", "--scheduler-file", written)
        stack.enter_context(processes(scheduler))
        address = address_in(written)
        for host, number in zip(hosts, counts, strict=True):
            if number:
                stack.enter_context(killed_at_end(host.start_workers(address, number, nanny)))
        yield address, hosts
