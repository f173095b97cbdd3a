"""`dit run` on a large table, from prompt to prompt: stage times, memory, and the ratio to a pandas groupby of its columns.

python benchmarks/million.py [--rows N] [--repeat N] [--data FOLDER] [--code FOLDER ...]
Each FOLDER of --code is a tree of this project (say, a git worktree of another commit); they take turns in one run, so that
other work on the machine distorts all of them. The first round compiles and is not counted. All must write the same records.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow.parquet

ROOT = Path(__file__).parents[1]
QI = ("age", "education", "marital-status", "hours-per-week", "native-country")
SECRET, NUMERIC = "occupation", ("age", "hours-per-week")
GROUP = f"""
import pandas
frame = pandas.read_parquet("million.parquet", columns={[*QI, SECRET]!r})
frame.groupby({[*QI, SECRET]!r}, observed=True).size()
"""


def read_adult(data: Path) -> pd.DataFrame:
    """The used columns of the complete rows of Adult."""
    columns = [*QI, SECRET]
    return pd.read_csv(data / "adult.csv", usecols=columns, na_values="?", skipinitialspace=True)[columns].dropna()


def write_table(data: Path, path: Path, rows: int) -> None:
    """Resample Adult and add noise of two units, in hundredths, to its numeric columns; the same rows every time."""
    adult, rng = read_adult(data), np.random.default_rng(1)
    frame = adult.iloc[rng.integers(0, len(adult), rows)].reset_index(drop=True)
    for name in NUMERIC:
        frame[name] = (frame[name] + rng.normal(0, 2, rows)).round(2)
    frame.to_parquet(path, index=False)


def config(data: Path, source: str = "million.parquet") -> dict[str, object]:
    """One test of all rows."""
    categorical = {
        name: {"kind": "categorical", "hierarchy": str(data / "hierarchies" / f"kassem_adult_{name}.csv")}
        for name in QI
        if name not in NUMERIC
    }
    quasi = {name: categorical.get(name, {"kind": "numeric"}) for name in QI}
    return {
        "version": 1,
        "name": "million",
        "data": {"source": source},
        "schema": {"quasi_identifiers": quasi, "sensitive": SECRET},
        "tests": [{"sanitizer": {"name": "mondrian", "k": 5}, "adversary": "bernoulli-nb"}],
    }


class Footprint:
    """The largest memory and scratch space of a process and of all that it starts, in MB; `update` looks at them now.

    Resident memory counts mapped pages of files, which the system can take back; private memory does not.
    """

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._all, self._looked = [self._process], -math.inf
        self.figures = dict.fromkeys(("client MB", "private MB", "other process MB", "its private MB", "scratch MB"), 0.0)

    def update(self) -> None:
        """Look at every process; which there are, and what their scratch files take, twice a second."""
        if time.monotonic() - self._looked > 0.5:
            with suppress(psutil.Error):
                self._all = [self._process, *self._process.children(recursive=True)]
            files = dict(entry for process in self._all for entry in nameless_files(process.pid))
            self._raise({"scratch MB": sum(files.values())})
            self._looked = time.monotonic()
        for process in self._all:
            heads = ("client MB", "private MB") if process == self._process else ("other process MB", "its private MB")
            with suppress(OSError, ValueError):
                status = dict(line.split(":") for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
                sizes = (int(status[key].split()[0]) * 1024 for key in ("VmRSS", "RssAnon") if key in status)
                self._raise(dict(zip(heads, sizes, strict=False)))

    def _raise(self, sizes: dict[str, int]) -> None:
        self.figures |= {head: max(self.figures[head], size / 2**20) for head, size in sizes.items()}


def nameless_files(pid: int) -> Iterator[tuple[int, int]]:
    """The number and the bytes on disk of every file that a process has open and nobody can name."""
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found = link.stat()
                if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    yield found.st_ino, found.st_blocks * 512


def measure(command: list[str], folder: Path, code: Path | None = None, limit: float = 7200) -> dict[str, float]:
    """Run a command; return its wall and processor seconds, with those of its workers, and its footprint."""
    variables = os.environ if code is None else os.environ | {"PYTHONPATH": str(code)}
    start, output = time.perf_counter(), folder / "output.txt"
    with output.open("w") as shown:
        process = subprocess.Popen(command, cwd=folder, stdout=shown, stderr=shown, env=variables, start_new_session=True)
        footprint = Footprint(process.pid)
        try:
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.perf_counter() - start > limit:
                    sys.exit(f"no result after {limit:,.0f} s: {' '.join(command)}\n{output.read_text()}")
                footprint.update()
                time.sleep(0.02)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what a failed command left
    wall = time.perf_counter() - start
    if status:
        sys.exit(output.read_text())
    return {"wall": wall, "processor": usage.ru_utime + usage.ru_stime, **footprint.figures}


def audit(folder: Path, code: Path, number: int, *options: str) -> tuple[dict[str, float], dict[str, str]]:
    """Run the audit once; return what it took, with its stages, and a digest of each column of the records."""
    out = folder / f"runs-{number}"
    took = measure([sys.executable, "-m", "dit_dask", "run", "million.json", "--out", str(out), *options], folder, code)
    (run,) = out.glob("million-*")
    stages = json.loads((run / "manifest.json").read_text())["timings"]
    engine = sum(stages["engine_seconds"].values())
    return took | stages["seconds"] | {"engine, summed": engine}, digest_rows(run)


def digest_rows(run: Path) -> dict[str, str]:
    """Fingerprint the columns of all parts, wherever the tree cut them."""
    columns: dict[str, Any] = {}
    for part in sorted(run.glob("records/*/*.parquet")):
        rows = pyarrow.parquet.read_table(part)
        for name in rows.column_names:
            columns.setdefault(name, hashlib.sha256()).update(np.asarray(rows[name]).tobytes())
    return {name: content.hexdigest() for name, content in columns.items()}


def are_same(digests: list[dict[str, str]]) -> bool:
    """Tell whether all trees wrote the same columns; those that only some trees write do not count."""
    shared = set(digests[0]).intersection(*digests)
    return "distance" in shared and all(len({one[name] for one in digests}) == 1 for name in shared)


def main() -> None:
    """Print a table with a row for each tree, medians over the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="the folder with adult.csv and hierarchies/ (DIT_DATA)")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--code", type=Path, nargs="+", default=[ROOT])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(options.data.absolute(), folder / "million.parquet", options.rows)
        (folder / "million.json").write_text(json.dumps(config(options.data.absolute())))
        rounds: dict[str, list[dict[str, float]]] = {"pandas groupby": [], **{str(code): [] for code in options.code}}
        digests: list[dict[str, str]] = []
        for number in range(options.repeat + 1):
            group = measure([sys.executable, "-c", GROUP], folder)
            results = {"pandas groupby": group}
            for place, code in enumerate(options.code):
                results[str(code)], digest = audit(folder, code.absolute(), number * len(options.code) + place)
                digests.append(digest)
            for row, took in results.items() if number else ():
                rounds[row].append(took | {"wall of groupby": took["wall"] / group["wall"]})
    print_table(options.rows, rounds)
    if not are_same(digests):
        sys.exit("the trees wrote different records")


def print_table(rows: int, rounds: dict[str, list[dict[str, float]]]) -> None:
    """Print medians over the rounds."""
    heads = list(dict.fromkeys(head for took in rounds.values() for head in took[0]))
    longest = max(rounds.values(), key=lambda took: len(took[0]))
    heads = [head for head in longest[0] if head in heads]
    print(f"\n{rows:,} rows, medians of {len(longest)} rounds, seconds unless stated\n")
    print(f"| code | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for row, took in rounds.items():
        cells = [f"{statistics.median(one[head] for one in took):,.1f}" if head in took[0] else "" for head in heads]
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
