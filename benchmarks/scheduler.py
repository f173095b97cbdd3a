"""What a task costs the scheduler and the client: many empty tasks on simulated workers.

The scheduler is a process of its own. The simulated workers share one process: each registers, is given tasks and answers as a
real one does, over TCP on loopback. They share one core, so only processor seconds of the scheduler and of the client count,
and a thousand of them are too many.
Usage: python benchmarks/scheduler.py [--tasks 100000] [--workers 2 50]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dask
import psutil
from distributed import Client, Worker

from dit_dask.execution.cluster_session import ClusterSession
from dit_dask.execution.stall import Watchdog

MEGABYTE = 2**20
SMALLEST = 1_000  # tasks of the first run, against which further ones are counted
START_SECONDS = 300


@dataclass(frozen=True)
class Spent:
    """Processor seconds and resident bytes of a process."""

    seconds: float
    memory: int

    @classmethod
    def of(cls, pid: int) -> Spent:
        """Look at a process now."""
        process = psutil.Process(pid)
        times = process.cpu_times()
        return cls(times.user + times.system, process.memory_info().rss)


def empty_part(_record: int) -> None:
    """Do nothing, as quickly as a part can be done."""


async def _serve(address: str, count: int, folder: str) -> None:
    workers = []
    for start in range(0, count, 50):
        batch = [
            Worker(
                address,
                host="127.0.0.1",
                nthreads=1,
                local_directory=folder,
                dashboard=False,
                memory_limit=0,
                name=f"simulated-{number}",
            )
            for number in range(start, min(start + 50, count))
        ]
        workers += await asyncio.gather(*batch)
    await asyncio.gather(*(worker.finished() for worker in workers))


def serve_workers(address: str, count: int, folder: str) -> None:
    """Run so many workers in this process, until the scheduler is closed."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # each worker would sample its own threads and memory; a thousand in one process would do nothing else
    dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "60s"})
    asyncio.run(_serve(address, count, folder))


@contextmanager
def simulated(count: int) -> Iterator[Client]:
    """A scheduler in a process of its own with simulated workers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        command = [*command, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
        scheduler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
        workers = None
        try:
            while not file.exists():
                time.sleep(0.1)
            with Client(scheduler_file=str(file), timeout=60) as client:
                context = multiprocessing.get_context("spawn")
                workers = context.Process(target=serve_workers, args=(client.scheduler.address, count, folder), daemon=True)
                workers.start()
                client.wait_for_workers(count, timeout=START_SECONDS)
                yield client
        finally:
            if workers is not None:
                workers.kill()
                workers.join()
            scheduler.kill()
            scheduler.wait()


def run_empty(client: Client, tasks: int) -> tuple[float, Spent, Spent]:
    """Run so many empty tasks as a run submits its parts; return the wall seconds and what scheduler and client spent."""
    scheduler = client.run_on_scheduler(os.getpid)
    before = Spent.of(scheduler), Spent.of(os.getpid())
    start = time.perf_counter()
    with ClusterSession(client, Watchdog()) as session:
        for number in range(tasks):
            session.submit(empty_part, number, key=f"part-{number:06d}", description=f"part {number}")
        for future in session.completed():
            session.result(future)
        wall = time.perf_counter() - start
        after = Spent.of(scheduler), Spent.of(os.getpid())  # while the tasks are held
    spent = [Spent(last.seconds - first.seconds, last.memory - first.memory) for first, last in zip(before, after, strict=True)]
    return wall, spent[0], spent[1]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    chosen = parser.parse_args()
    print(
        "| workers | tasks | wall s | scheduler CPU ms a task | client CPU ms a task | scheduler MB added | client MB added |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for count in chosen.workers:
        with simulated(count) as client:
            for tasks in sorted({SMALLEST, chosen.tasks // 10, chosen.tasks}):
                wall, scheduler, here = run_empty(client, tasks)
                each = f"{1000 * scheduler.seconds / tasks:.2f} | {1000 * here.seconds / tasks:.2f}"
                memory = f"{scheduler.memory / MEGABYTE:.0f} | {here.memory / MEGABYTE:.0f}"
                print(f"| {count:,} | {tasks:,} | {wall:.0f} | {each} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
