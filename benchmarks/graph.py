"""What the graph costs: a million rows in ten thousand parts, and a hundred tests in one sweep.

The scheduler is a process of its own, so that its memory can be told. Usage: python benchmarks/graph.py [rows] [parts] [tests]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

import dit_dask as dit
from dit_dask.audit import plan
from dit_dask.inputs import datasets

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-education.csv"},
        "hours-per-week": {"kind": "numeric"},
    },
    "sensitive": "occupation",
}
MEGABYTE = 2**20


class Watched:
    """The largest resident memory of a process while it is watched, above what it had before, and its CPU seconds."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._base = self._most = self._process.memory_info().rss
        self._spent = self._cpu()

    def _cpu(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def look(self) -> None:
        """Take notice of its memory."""
        self._most = max(self._most, self._process.memory_info().rss)

    @property
    def megabytes(self) -> float:
        """What was added at most."""
        return (self._most - self._base) / MEGABYTE

    @property
    def seconds(self) -> float:
        """CPU seconds since it is watched."""
        return self._cpu() - self._spent


@dataclass(frozen=True)
class Cost:
    """What an audit took: seconds on the wall, CPU seconds by process, and memory added, in MB."""

    wall: float
    cpu: dict[str, float]
    memory: dict[str, float]
    parts: int

    def row(self, what: str, base: Cost | None = None) -> str:
        """A line of the table; what each part adds is told against a run with few parts."""
        each = ""
        if base is not None:
            more = {name: 1000 * (self.cpu[name] - base.cpu[name]) / (self.parts - base.parts) for name in self.cpu}
            each = ", ".join(f"{name} {value:.1f}" for name, value in more.items())
        cells = (
            what,
            f"{self.wall:.0f}",
            f"{sum(self.cpu.values()):.0f}",
            each,
            *(f"{one:.0f}" for one in self.memory.values()),
        )
        return f"| {' | '.join(cells)} |"


HEAD = "| what | seconds | CPU s | CPU ms of each further part | scheduler MB | client MB |\n|---|---|---|---|---|---|"


def measured(people: pd.DataFrame, tests: list[dict[str, Any]]) -> Cost:
    """Run an audit on two workers and a scheduler of its own process."""
    with (
        SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1}) as running,
        Client(running) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        client.wait_for_workers(2)
        scheduler, here = Watched(client.run_on_scheduler(os.getpid)), Watched(os.getpid())
        workers = [Watched(pid) for pid in client.run(os.getpid).values()]
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.1):
                scheduler.look()
                here.look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        start = time.perf_counter()
        result = dit.audit(people, schema=SCHEMA, tests=tests, client=client, output=folder)
        wall = time.perf_counter() - start
        done.set()
        thread.join()
        cpu = {"scheduler": scheduler.seconds, "client": here.seconds, "workers": sum(one.seconds for one in workers)}
        document = json.loads((Path(result.url) / "manifest.json").read_text())
        parts = sum(len(one) for one in document["parts"].values())
        return Cost(wall, cpu, {"scheduler": scheduler.megabytes, "client": here.megabytes}, parts)


def in_parts(people: pd.DataFrame, parts: int) -> Cost:
    """Audit one test cut into so many parts."""
    cut = plan.cut
    plan.cut = lambda first, _, rows: cut(first, len(first) / parts, rows)
    try:
        return measured(people, [{"sanitizer": {"name": "mondrian", "k": 5}}])
    finally:
        plan.cut = cut


def main() -> None:
    """Print the costs as a Markdown table."""
    defaults = ["1000000", "10000", "100"]
    rows, parts, tests = (int(one) for one in [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]])
    people = datasets.census(rows)
    print(HEAD)
    few = in_parts(people, 10)
    print(few.row(f"{rows:,} rows in {few.parts} parts"), flush=True)
    many = in_parts(people, parts)
    print(many.row(f"{rows:,} rows in {many.parts:,} parts", few), flush=True)
    sweep = [{"sanitizer": {"name": "mondrian", "k": list(range(2, 2 + tests))}}]
    print(measured(datasets.census(10_000), sweep).row(f"10,000 rows, {tests} tests in one sweep"))


if __name__ == "__main__":
    main()
