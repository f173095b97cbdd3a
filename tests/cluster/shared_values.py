"""A large value for workers on several machines, and what they see of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client, get_worker

from dit_dask.execution import hosts
from dit_dask.execution.cluster_session import call_with_opened
from dit_dask.storage import scratch
from tests.cluster.separate_hosts import Host, workers_on_hosts

LENGTH = 5_000_000
NUMBERS = np.arange(LENGTH)
BYTES = NUMBERS.nbytes
TOTAL = int(NUMBERS.sum()) + LENGTH
SECONDS = 120


@dataclass(frozen=True)
class Seen:
    """What a task saw: where it was, the result, the file of the array, and the memory that only its process has."""

    worker: str
    machine: str
    total: int
    file: str
    private: int


def look(value: dict[str, np.ndarray], pause: float = 0.0) -> Seen:
    """On a worker: read all, and say how."""
    numbers, ones = value["numbers"], value["ones"]
    total = int(numbers.sum()) + int(ones.sum(dtype=np.int64))
    time.sleep(pause)
    return Seen(get_worker().address, os.readlink("/proc/self/ns/pid"), total, file_of(numbers), private_bytes())


def file_of(array: np.ndarray) -> str:
    """The device and number of the file that an array is mapped from; 0 if it is in memory."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            ends, _, _, device, inode, *_ = line.split()
            first, last = (int(end, 16) for end in ends.split("-"))
            if first <= array.ctypes.data < last:
                return "" if inode == "0" else f"{device} {inode}"
    return ""


def private_bytes() -> int:
    """The memory of this process that is no page of a file."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon:"))


def value() -> dict[str, np.ndarray]:
    return {"numbers": NUMBERS, "ones": np.ones((1000, LENGTH // 1000), np.int8).T}


@contextmanager
def client_of(counts: Collection[int], nanny: bool = False) -> Iterator[tuple[Client, list[Host]]]:
    """A client of so many workers on each machine, and the machines."""
    with workers_on_hosts(list(counts), nanny) as (address, machines), Client(address) as client:
        client.wait_for_workers(sum(counts), timeout=SECONDS)
        yield client, machines


def workers_of(client: Client) -> list[str]:
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def look_on(client: Client, shared: Any, workers: Collection[str]) -> list[Seen]:
    """Have workers read a shared value, each for itself."""
    tasks = [client.submit(call_with_opened, look, shared, workers=[worker], pure=False) for worker in workers]
    found: list[Seen] = client.gather(tasks)
    return found


def kill(client: Client, workers: Collection[str]) -> None:
    """Kill worker processes, and wait until the scheduler knows."""
    client.run(lambda: os.kill(os.getpid(), signal.SIGKILL), workers=list(workers), on_error="ignore")
    until(lambda: not set(workers) & set(workers_of(client)))


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def nameless_files(client: Client) -> list[int]:
    """How many nameless files each worker has open."""

    def count() -> int:
        names = set()
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # that of the list itself
                names.add(os.readlink(f"/proc/self/fd/{number}"))
        return sum("(deleted)" in name for name in names)

    return list(client.run(count).values())


def shared_owner(client: Client) -> str:
    """The worker from which others of its machine have the file."""
    owners = hosts.find_owners(client.run(hosts.seen_of, client.run(scratch.own_place)))
    (owner,) = {owner for worker, owner in owners.items() if owner != worker}
    return owner
