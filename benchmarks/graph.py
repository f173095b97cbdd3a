"""What the graph costs: a million rows in ten thousand parts, and a hundred tests in one sweep.

The scheduler is a process of its own, so that its memory can be told. Usage: python benchmarks/graph.py [rows] [parts] [tests]
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

import dit_dask as dit
from dit_dask import datasets, plan

SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-education.csv"},
        "hours-per-week": {"kind": "numeric"},
    },
    "sensitive": "occupation",
}
MEGABYTE = 2**20


class Peak:
    """The largest resident memory of a process while it is watched, above what it had before."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._base = self._most = self._process.memory_info().rss
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self._most = max(self._most, self._process.memory_info().rss)

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def megabytes(self) -> float:
        """What was added at most."""
        return (self._most - self._base) / MEGABYTE


@contextmanager
def cluster() -> Iterator[tuple[Client, int]]:
    """Two workers, a scheduler process, and its id."""
    with SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1}) as running, Client(running) as client:
        client.wait_for_workers(2)
        yield client, client.run_on_scheduler(os.getpid)


def measured(audit: Callable[[Client, str], Any]) -> tuple[float, dict, float, float]:
    """Run an audit; return its seconds, the manifest, and the memory that scheduler and client needed on top, in MB."""
    with cluster() as (client, pid), tempfile.TemporaryDirectory() as folder:
        with Peak(pid) as scheduler, Peak(os.getpid()) as here:
            start = time.perf_counter()
            result = audit(client, folder)
            seconds = time.perf_counter() - start
        return seconds, json.loads((Path(result.url) / "manifest.json").read_text()), scheduler.megabytes, here.megabytes


def in_parts(people, parts: int) -> tuple[float, dict, float, float]:
    """Audit one test cut into so many parts."""
    cut = plan.cut
    plan.cut = lambda first, _: cut(first, first.sum() / parts)
    try:
        tests = [{"sanitizer": {"name": "mondrian", "k": 5}}]
        return measured(lambda client, folder: dit.audit(people, schema=SCHEMA, tests=tests, client=client, output=folder))
    finally:
        plan.cut = cut


def swept(people, tests: int) -> tuple[float, dict, float, float]:
    """Audit a sweep of so many tests."""
    sweep = [{"sanitizer": {"name": "mondrian", "k": list(range(2, 2 + tests))}}]
    return measured(lambda client, folder: dit.audit(people, schema=SCHEMA, tests=sweep, client=client, output=folder))


def main() -> None:
    """Print the costs as a Markdown table."""
    defaults = ["1000000", "10000", "100"]
    rows, parts, tests = (int(one) for one in [*sys.argv[1:], *defaults[len(sys.argv) - 1 :]])
    people = datasets.census(rows)
    few, _, _, _ = in_parts(people, 10)
    print(f"\n{rows:,} rows, exact engine, two workers\n")
    print("| what | seconds | per part | scheduler memory | client memory |\n|---|---|---|---|---|")
    print(f"| 10 parts | {few:.1f} | | | |")
    seconds, document, scheduler, here = in_parts(people, parts)
    many = sum(len(one) for one in document["parts"].values())
    over = 1000 * (seconds - few) / many
    print(f"| {many:,} parts | {seconds:.1f} | {over:.1f} ms | {scheduler:.0f} MB | {here:.0f} MB |")
    people = datasets.census(10_000)
    seconds, document, scheduler, here = swept(people, tests)
    print(f"| 10,000 rows, {tests} tests in one sweep | {seconds:.1f} | | {scheduler:.0f} MB | {here:.0f} MB |")


if __name__ == "__main__":
    main()
