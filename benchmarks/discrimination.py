"""Discrimination rates out of core against a plain pandas groupby, with peak memory, and the ranking of columns.

Every contender runs in a process of its own, whose memory is watched together with that of its workers. Ratios within one
run; absolute times depend on the machine. Usage: python benchmarks/discrimination.py [rows]
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

TARGET = "occupation"
TASKS = {
    "few combinations": ["sex", "race", "education"],
    "many combinations": ["sex", "postcode", "birthday"],
    "a target of its own per row": ["sex", "race", "education", "postcode"],
}
BLOCK = 250_000


def write_table(folder: Path, rows: int) -> None:
    """Write Parquet files of people, block by block."""
    for place, start in enumerate(range(0, rows, BLOCK)):
        rng = np.random.default_rng(place)
        size = min(BLOCK, rows - start)
        job = rng.integers(0, 14, size)
        frame = pd.DataFrame(
            {
                "person": np.arange(start, start + size),
                "sex": rng.choice(["Female", "Male"], size),
                "race": rng.choice(["A", "B", "C", "D", "E"], size, p=[0.8, 0.1, 0.05, 0.03, 0.02]),
                "education": (job + rng.integers(0, 9, size)).astype(str),
                "postcode": rng.integers(0, 20_000, size),
                "birthday": rng.integers(0, 30_000, size),
                "occupation": np.char.add("job ", job.astype(str)),
            }
        )
        frame.to_parquet(folder / f"part-{place:04d}.parquet", index=False)


def entropy(counts: pd.Series) -> float:
    """The plug-in entropy of counts, as anyone would write it."""
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def with_pandas(folder: Path, target: str, keys: list[str]) -> float:
    """Read everything, group, take entropies."""
    frame = pd.read_parquet(folder, columns=[target, *keys])
    pairs, values = frame.groupby([*keys, target], observed=True).size(), frame.groupby(target).size()
    return 1 - (entropy(pairs) - entropy(frame.groupby(keys, observed=True).size())) / entropy(values)


def in_memory(folder: Path, target: str, keys: list[str]) -> float:
    """Read everything, ask dit."""
    import dit_dask as dit

    frame = pd.read_parquet(folder, columns=[target, *keys])
    return dit.discrimination_rate(frame[target], frame[keys])


def out_of_core(folder: Path, target: str, keys: list[str]) -> float:
    """Let Dask's threads read blocks and shuffle on disk."""
    import dask.dataframe as dd

    import dit_dask as dit

    frame = dd.read_parquet(folder, columns=[target, *keys])
    return dit.discrimination_rate(frame[target], frame[keys])


def on_a_cluster(folder: Path, target: str, keys: list[str]) -> float:
    """The same on two workers of a local cluster, each allowed 1 GB."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        return out_of_core(folder, target, keys)


CONTENDERS = {
    "pandas groupby": with_pandas,
    "dit, pandas": in_memory,
    "dit, Dask threads": out_of_core,
    "dit, Dask cluster": on_a_cluster,
}


def watched(arguments: list[str]) -> tuple[dict[str, float], float]:
    """Run one contender; return what it printed and the peak megabytes of it and its children."""
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    tree, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        total = 0
        for one in [tree, *_children(tree)]:
            try:
                total += one.memory_info().rss
            except psutil.Error:
                continue
        peak = max(peak, total)
        time.sleep(0.05)
    output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{arguments} failed")
    return json.loads(output.splitlines()[-1]), peak / 1e6


def _children(tree: psutil.Process) -> list[psutil.Process]:
    try:
        return tree.children(recursive=True)
    except psutil.Error:
        return []


def contend(name: str, folder: str, task: str) -> None:
    """In the child: one rate, timed without imports."""
    import dask.dataframe  # noqa: F401 - imports are not what is measured

    target = "person" if task == "a target of its own per row" else TARGET
    start = time.perf_counter()
    rate = CONTENDERS[name](Path(folder), target, TASKS[task])
    print(json.dumps({"rate": rate, "seconds": time.perf_counter() - start}))


def main() -> None:
    """Print the ratios as a Markdown table."""
    if len(sys.argv) == 4:
        contend(*sys.argv[1:])
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder), rows)
        print(f"\nDiscrimination rate of {rows:,} rows in Parquet, reading included\n")
        print("| keys | contender | rate | seconds | speed against pandas | peak MB | memory against pandas |")
        print("|---|---|---|---|---|---|---|")
        for task in TASKS:
            base: tuple[dict[str, float], float] | None = None
            for name in CONTENDERS:
                found, peak = watched([name, folder, task])
                base = base or (found, peak)
                if not math.isclose(found["rate"], base[0]["rate"], abs_tol=1e-9):
                    raise SystemExit(f"{name} disagrees on {task}: {found['rate']} and {base[0]['rate']}")
                speed, share = base[0]["seconds"] / found["seconds"], peak / base[1]
                cells = (
                    task,
                    name,
                    f"{found['rate']:.6f}",
                    f"{found['seconds']:.1f}",
                    f"{speed:.2f}×",
                    f"{peak:,.0f}",
                    f"{share:.2f}",
                )
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
