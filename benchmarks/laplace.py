"""The Laplace test on 10,000 census rows: a straight numpy loop over rows, the shared simulation, and the exact integral.

CPU seconds of one core, so that a busy machine shows less; ratios within one run. The loop is timed on some rows
and extrapolated to all. Usage: python benchmarks/laplace.py [rows of the loop]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dit_dask.audit.grammar import check_config
from dit_dask.engines.noisy_counts import Counted, Patterns, Sampling, binned, count, exact, simulate
from dit_dask.inputs import datasets
from dit_dask.inputs.load import load
from dit_dask.kernels.mechanisms import Laplace

SAMPLES = 25_000
SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical"},
        "marital-status": {"kind": "categorical"},
        "hours-per-week": {"kind": "numeric"},
        "native-country": {"kind": "categorical"},
    },
    "sensitive": "occupation",
}


def census() -> tuple[Counted, np.ndarray]:
    """The counts, and the record of each row."""
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    rows = load(check_config(document, "."), datasets.census(10_000))
    table, index = binned(rows.table, {"age": 4, "hours-per-week": 4}, "bins")
    return count(table), index[rows.index]


def loop(patterns: Patterns, chosen: np.ndarray, epsilon: float) -> float:
    """CPU seconds a row of the published procedure, vectorised over samples and values."""
    rng = np.random.default_rng(1)
    wide = ((0, 0), (0, patterns.cells - patterns.counts.shape[1]))
    with_record, without = np.pad(patterns.counts, wide), np.pad(patterns.without(), wide)
    start = time.process_time()
    for pattern in chosen:
        sides = []
        for counts in (with_record[pattern], without[pattern]):
            noisy = 1 + np.maximum(0, counts[:, None] + rng.laplace(0, 1 / epsilon, (patterns.cells, SAMPLES)))
            sides.append(np.sort(noisy / noisy.sum(axis=0), axis=1))
        np.abs(sides[0] - sides[1]).mean(axis=1).sum()
    return (time.process_time() - start) / len(chosen)


def seconds(function, *arguments, repeat: int) -> float:
    """The median of some calls."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return float(np.median(times))


def main() -> None:
    """Print the ratios as a Markdown table."""
    looped = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    counted, record = census()
    patterns, of_row = counted.patterns, counted.of[record]
    chosen = np.random.default_rng(0).choice(of_row, looped, replace=False)
    simulate(patterns.take(np.arange(2)), Sampling(Laplace(1.0), 0, 10))
    exact(patterns, 1.0)
    vectors = {tuple(vector) for vector in (*patterns.counts, *patterns.without())}
    print(f"\nLaplace test, N = {SAMPLES:,}, n = {patterns.cells}; 10,000 census rows, {len(counted.of):,} distinct records,")
    print(f"{len(patterns):,} patterns, {len(vectors):,} count vectors; CPU seconds of one core;")
    print(f"the loop is timed on {looped} rows and extrapolated to 10,000\n")
    print("| ε | numpy loop over all rows, s | simulate, s | loop / simulate | exact, s | delta sampled | delta exact |")
    print("|---|---|---|---|---|---|---|")
    for epsilon in (0.01, 0.1, 1.0):
        bare = loop(patterns, chosen, epsilon) * len(of_row)
        start = time.process_time()
        simulated = simulate(patterns, Sampling(Laplace(epsilon), 7, SAMPLES))
        shared = time.process_time() - start
        closed = seconds(exact, patterns, epsilon, repeat=9)
        deltas = f"{simulated.distance.max():.4f} | {exact(patterns, epsilon).max():.4f}"
        print(f"| {epsilon:g} | {bare:.0f} | {shared:.1f} | {bare / shared:.0f} | {closed:.3f} | {deltas} |")


if __name__ == "__main__":
    main()
