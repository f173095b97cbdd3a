"""`dit run --cluster tcp://…` where the command, the scheduler and every worker have a memory limit, as pods have.

python benchmarks/limited.py [--rows N] [--limit MB] [--workers N] [--data FOLDER]
Each process is in a memory control group of its own: one that needs more is killed by the system. Twice: once where workers
see the scratch files of the command, as on one machine, and once in process namespaces of their own, where all is sent to them,
as to another machine. Needs Linux and root. The table is that of rows.py.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from million import ROOT, config
from rows import Table, write_table

GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")  # of the first version and of the second
LIMITS, PEAKS = ("memory.limit_in_bytes", "memory.max"), ("memory.max_usage_in_bytes", "memory.peak")
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
START_SECONDS, MOST_SECONDS = 60, 1800


class Limited:
    """A process in a control group with a limit, which ends with it."""

    def __init__(self, name: str, limit: int, command: list[str], folder: Path) -> None:
        root, self._version = next((path, place) for place, path in enumerate(GROUPS) if (path / "cgroup.procs").exists())
        self.name, self._group, self._output = name, root / f"dit-benchmark-{os.getpid()}-{name}", folder / f"{name}.txt"
        self._group.mkdir()
        (self._group / LIMITS[self._version]).write_text(str(limit))

        def enter() -> None:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))

        with self._output.open("w") as shown:
            self._process = subprocess.Popen(
                command, cwd=folder, stdout=shown, stderr=shown, preexec_fn=enter, start_new_session=True
            )

    def wait(self) -> float:
        """Wait for its end; return how long it took."""
        start = time.perf_counter()
        if self._process.wait(MOST_SECONDS):
            sys.exit(f"{self.name}: exit code {self._process.returncode}\n{self._output.read_text()}")
        return time.perf_counter() - start

    @property
    def peak(self) -> float:
        """The most memory that it had, cached pages of its files included, in MB."""
        return int((self._group / PEAKS[self._version]).read_text()) / 2**20

    def end(self) -> None:
        """End it and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for _ in range(100):
            with suppress(OSError):
                self._group.rmdir()
                return
            time.sleep(0.1)


@contextmanager
def running(folder: Path, limit: int, workers: int, alone: tuple[str, ...]) -> Iterator[tuple[str, list[Limited]]]:
    """A scheduler and workers; yield their address and what has a limit."""
    file = folder / "scheduler.json"
    scheduler = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = [Limited("scheduler", limit, [*scheduler, "--scheduler-file", str(file)], folder)]
    try:
        end = time.monotonic() + START_SECONDS
        while not file.exists():
            if time.monotonic() > end:
                sys.exit("the scheduler did not start")
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        worker = [*alone, sys.executable, "-m", "dask", "worker", address, "--nthreads", "1", "--no-dashboard"]
        for number in range(workers):
            own = ["--memory-limit", str(limit), "--local-directory", str(folder / f"worker-{number}")]
            started.append(Limited(f"worker {number}", limit, [*worker, *own], folder))
        yield address, started
    finally:
        for process in reversed(started):
            process.end()
        file.unlink(missing_ok=True)


def run(folder: Path, limit: int, workers: int, alone: tuple[str, ...]) -> None:
    """Audit the table once, and print a line of the table."""
    with running(folder, limit, workers, alone) as (address, started):
        options = ["--out", str(folder / "runs"), "--fresh", "--cluster", address]
        command = Limited("command", limit, [sys.executable, "-m", "dit_dask", "run", "million.json", *options], folder)
        try:
            wall = command.wait()
            peaks = [f"{process.peak:,.0f}" for process in (command, *started)]
        finally:
            command.end()
    print(f"| {'sent to workers' if alone else 'mapped by workers'} | {wall:.0f} s | {' | '.join(peaks)} |", flush=True)


def main() -> None:
    """Print a Markdown table of the peaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="the folder with adult.csv and hierarchies/ (DIT_DATA)")
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--limit", type=int, default=2048, help="MB of each process")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if os.geteuid() or not any((path / "cgroup.procs").exists() for path in GROUPS):
        print("not measured: memory limits need Linux, control groups and root")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with tempfile.TemporaryDirectory() as name:
        folder, data = Path(name), options.data.absolute()
        write_table(data, Table(options.rows), folder / "table.parquet")
        (folder / "million.json").write_text(json.dumps(config(data, "table.parquet")))
        workers = " | ".join(f"worker {number}" for number in range(options.workers))
        print(f"{options.rows:,} rows, a limit of {options.limit:,} MB for each process; peaks in MB\n")
        print(f"| large arrays | wall | command | scheduler | {workers} |\n|---|---|---|---|{'---|' * options.workers}")
        for alone in ((), ALONE):
            run(folder, options.limit * 2**20, options.workers, alone)


if __name__ == "__main__":
    main()
