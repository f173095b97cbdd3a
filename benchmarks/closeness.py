"""Closest records: against sdmetrics and brute force, then growth on 13 columns of Adult up to 100,000 × 100,000.

python benchmarks/closeness.py [--environment FOLDER] [--rows N ...] Ratios are of processor seconds of one core in one run,
so that other work on the machine distorts them less; what two workers do is timed by the clock. sdmetrics runs in an
environment of its own, which is made in FOLDER if it is not there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dit_dask import api, cluster
from dit_dask.config.cluster import DEFAULT
from dit_dask.inputs import datasets
from dit_dask.measures.synthetic import space
from dit_dask.measures.synthetic.columns import align

ROOT = Path(__file__).parents[1]
LEFT_OUT = ["split", "fnlwgt", "education-num"]
LOCAL = replace(DEFAULT, workers=2)


def adult() -> pd.DataFrame:
    """The 13 columns; a question mark is a category."""
    return pd.read_csv(datasets.locate("adult")).drop(columns=LEFT_OUT)


def people(source: pd.DataFrame, rows: int, seed: int, replaced: float) -> pd.DataFrame:
    """Rows of the source in which each cell is that of another row with some probability; 1: independent columns."""
    rng = np.random.default_rng(seed)
    drawn = source.iloc[rng.integers(0, len(source), rows)].reset_index(drop=True)
    for column in source.columns:
        others = source[column].to_numpy()[rng.integers(0, len(source), rows)]
        drawn[column] = np.where(rng.random(rows) < replaced, others, drawn[column].to_numpy())
    return drawn


def timed(function: Callable[[], object], clock: Callable[[], float] = time.process_time) -> tuple[object, float]:
    """A result and the seconds it took, of the processor unless another clock is given."""
    start = clock()
    result = function()
    return result, clock() - start


def nearest(training: pd.DataFrame, synthetic: pd.DataFrame, distance: str) -> np.ndarray:
    """From frames to the distances to the closest record, in this process."""
    metric, (known, new) = space.encode(align({"training": training, "synthetic": synthetic}), distance, 10)
    return space.build_index(metric, known).nearest(new).first


def brute(training: pd.DataFrame, synthetic: pd.DataFrame) -> np.ndarray:
    """Gower's distances with numpy, a matrix of some queries by all records at a time."""
    metric, (known, new) = space.encode(align({"training": training, "synthetic": synthetic}), "gower", 10)
    found = []
    for start in range(0, len(new), 256):
        total = np.zeros((len(new[start : start + 256]), len(known)))
        for column, (kind, scale) in enumerate(zip(metric.kinds, metric.scales, strict=True)):
            gap = np.abs(new[start : start + 256, column, None] - known[None, :, column])
            total += (gap != 0) if kind == 0 else np.minimum(1, gap / scale)
        found.append(total.min(axis=1) / len(metric.kinds))
    return np.concatenate(found)


def against_others(source: pd.DataFrame, rows: int, environment: str) -> None:
    """Print how long sdmetrics, numpy and the tree take for the same distances."""
    training, synthetic = people(source, rows, 1, 0.3), people(source, rows, 2, 0.3)
    nearest(training[:50], synthetic[:50], "gower")
    ours, seconds = timed(lambda: nearest(training, synthetic, "gower"))
    numpy, numpy_seconds = timed(lambda: brute(training, synthetic))
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{name}.csv") for name in ("training", "synthetic", "binned", "binned_synthetic")]
        for file, frame in zip(files, (training, synthetic, training[["sex"]], synthetic[["sex"]]), strict=True):
            frame.to_csv(file, index=False)
        command = [sys.executable, str(ROOT / "tools" / "sdmetrics_oracle.py"), environment, *files]
        theirs = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert np.abs(np.array(theirs["dcr"]) - ours).max() < 1e-12
    assert (numpy == ours).all()
    print(f"\nDistance to the closest record, Gower, {rows:,} × {rows:,} × {source.shape[1]} columns, one core, from frames\n")
    print("| | processor seconds | times as long |\n|---|---|---|")
    for name, took in (
        ("sdmetrics calculate_dcr", theirs["seconds"]),
        ("numpy, all pairs", numpy_seconds),
        ("dit_dask", seconds),
    ):
        print(f"| {name} | {took:.3g} | {took / seconds:.0f} |")


def growth(source: pd.DataFrame, sizes: list[int]) -> None:
    """Print how the search grows on one core, and the whole of dit.closeness on two."""
    print("\nSeconds from frames to result; synthetic and training have so many rows, the holdout a fourth")
    print("\n| cells from other rows | distance | rows | search, processor s | µs a record | dit.closeness, two workers, s |")
    print("|---|---|---|---|---|---|")
    with cluster.connect(LOCAL) as client:
        for replaced in (0.3, 1.0):
            everyone = [people(source, sizes[-1], seed, replaced) for seed in (1, 2, 3)]
            for distance in space.DISTANCES:
                api.closeness(*(frame[:100] for frame in everyone), distance, client=client)
                for rows in sizes:
                    training, synthetic, holdout = (frame[:rows] for frame in everyone)
                    _, alone = timed(lambda a=training, b=synthetic, d=distance: nearest(a, b, d))
                    work = (training, synthetic, holdout[: rows // 4], distance)
                    _, whole = timed(lambda work=work: api.closeness(*work, client=client), time.perf_counter)
                    print(
                        f"| {replaced:.0%} | {distance} | {rows:,} | {alone:.2f} | {1e6 * alone / rows:.0f} | {whole:.1f} |",
                        flush=True,
                    )


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", default=str(ROOT / ".venv-sdmetrics"))
    parser.add_argument("--rows", type=int, nargs="+", default=[6_250, 25_000, 100_000])
    options = parser.parse_args()
    source = adult()
    against_others(source, 4_000, options.environment)
    growth(source, options.rows)


if __name__ == "__main__":
    main()
