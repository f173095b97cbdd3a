"""The search for nearest records against scikit-learn, in one run: processor seconds of one core for the nearest two.

OPENBLAS_NUM_THREADS=1 python benchmarks/nearest.py [--rows N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from dit_dask.measures.synthetic import space
from dit_dask.measures.synthetic.columns import align

CASES = [("euclidean", 50), ("euclidean", 10), ("euclidean", 5), ("gower", 20), ("gower", 10), ("gower", 5)]


def seconds(function: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(distance: str, columns: int, rows: int) -> None:
    """Print one line; normal numbers, which a tree excludes least of."""
    rng = np.random.default_rng(0)
    frames = {name: pd.DataFrame(rng.normal(size=(rows, columns))).add_prefix("c") for name in ("training", "synthetic")}
    metric, (known, new) = space.encode(align(frames), distance, 10)
    space.build_index(metric, known[:600]).nearest(new[:5])
    index = space.build_index(metric, known)
    ours = seconds(lambda: space.build_index(metric, known).nearest(new))
    theirs = {
        algorithm: seconds(
            lambda algorithm=algorithm: (
                NearestNeighbors(
                    n_neighbors=2, algorithm=algorithm, metric="euclidean" if distance == "euclidean" else "manhattan"
                )
                .fit(known / metric.scales)
                .kneighbors(new / metric.scales)
            )
        )
        for algorithm in ("brute", "kd_tree")
    }
    way = "all rows" if index.scans else "tree"
    times = f"{ours:.2f} | {theirs['brute']:.2f} | {theirs['kd_tree']:.2f} | {ours / min(theirs.values()):.2f}"
    print(f"| {distance}, {columns} columns | {way} | {times} |", flush=True)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    rows = parser.parse_args().rows
    print(
        f"\n{rows:,} × {rows:,}\n\n| | dit_dask | s | sklearn, brute | sklearn, k-d tree | times the better |\n"
        + "|---" * 6
        + "|"
    )
    for distance, columns in CASES:
        compare(distance, columns, rows)


if __name__ == "__main__":
    main()
