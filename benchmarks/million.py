"""`dit run` on a large table, from prompt to prompt: stage times, memory, and the ratio to a pandas groupby of its columns.

python benchmarks/million.py [--rows N] [--repeat N] [--data FOLDER] [--code FOLDER ...]
Each FOLDER of --code is a tree of this project (say, a git worktree of another commit); they take turns in one run, so that
other work on the machine distorts all of them. The first round compiles and is not counted. Where there are several, the
record files must have the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

ROOT = Path(__file__).parents[1]
QI = ("age", "education", "marital-status", "hours-per-week", "native-country")
SECRET, NUMERIC = "occupation", ("age", "hours-per-week")
GROUP = f"""
import pandas
frame = pandas.read_parquet("million.parquet", columns={[*QI, SECRET]!r})
frame.groupby({[*QI, SECRET]!r}, observed=True).size()
"""


def write_table(data: Path, path: Path, rows: int) -> None:
    """Resample Adult and add noise of two units, in hundredths, to its numeric columns; the same rows every time."""
    adult = pd.read_csv(data / "adult.csv", usecols=[*QI, SECRET], na_values="?", skipinitialspace=True).dropna()
    rng = np.random.default_rng(1)
    frame = adult.iloc[rng.integers(0, len(adult), rows)].reset_index(drop=True)
    for name in NUMERIC:
        frame[name] = (frame[name] + rng.normal(0, 2, rows)).round(2)
    frame.to_parquet(path, index=False)


def config(data: Path) -> dict[str, object]:
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
        "data": {"source": "million.parquet"},
        "schema": {"quasi_identifiers": quasi, "sensitive": SECRET},
        "tests": [{"sanitizer": {"name": "mondrian", "k": 5}, "adversary": "bernoulli-nb"}],
    }


def measure(command: list[str], folder: Path, code: Path | None = None) -> dict[str, float]:
    """Run a command; return its wall and processor seconds, with those of its workers, and its own peak memory in MB."""
    variables = os.environ if code is None else os.environ | {"PYTHONPATH": str(code)}
    start, peak = time.perf_counter(), 0
    with (folder / "output.txt").open("w") as shown:
        process = subprocess.Popen(command, cwd=folder, stdout=shown, stderr=shown, env=variables)
        watched = psutil.Process(process.pid)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            with suppress(psutil.Error):
                peak = max(peak, watched.memory_info().rss)
            time.sleep(0.02)
    wall = time.perf_counter() - start
    if status:
        sys.exit((folder / "output.txt").read_text())
    return {"wall": wall, "processor": usage.ru_utime + usage.ru_stime, "client MB": peak / 2**20}


def audit(folder: Path, code: Path, number: int) -> tuple[dict[str, float], str]:
    """Run the audit once; return what it took, with its stages, and a digest of the records' bytes."""
    out = folder / f"runs-{number}"
    command = [sys.executable, "-m", "dit_dask", "run", "million.json", "--out", str(out)]
    took = measure(command, folder, code)
    (run,) = out.glob("million-*")
    stages = json.loads((run / "manifest.json").read_text())["timings"]
    engine = sum(stages["engine_seconds"].values())
    content = hashlib.sha256(run.name.encode())
    for part in sorted(run.glob("records/*/*.parquet")):
        content.update(part.read_bytes())
    return took | stages["seconds"] | {"engine, summed": engine}, content.hexdigest()


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
        digests = set()
        for number in range(options.repeat + 1):
            group = measure([sys.executable, "-c", GROUP], folder)
            results = {"pandas groupby": group}
            for place, code in enumerate(options.code):
                results[str(code)], digest = audit(folder, code.absolute(), number * len(options.code) + place)
                digests.add(digest)
            for row, took in results.items() if number else ():
                rounds[row].append(took | {"wall of groupby": took["wall"] / group["wall"]})
    print_table(options.rows, rounds)
    if len(digests) > 1:
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
