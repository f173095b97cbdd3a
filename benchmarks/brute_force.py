"""What the machinery costs: a bare loop against the same records on one worker, and two workers against one.

Ratios within one run; absolute times depend on the machine. Usage: python benchmarks/brute_force.py [records]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import dit_dask as dit
from dit_dask import cluster, run, seeds
from dit_dask.audit.grammar import check_config
from dit_dask.config.cluster import DEFAULT
from dit_dask.inputs import datasets

SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-education.csv"},
        "marital-status": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-marital-status.csv"},
        "hours-per-week": {"kind": "numeric"},
        "native-country": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-native-country.csv"},
    },
    "sensitive": "occupation",
}


def bare_loop(people, tests) -> float:
    """Seconds of sanitise + train + predict for each record, with nothing around it."""
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "tests": tests}
    prepared = run.prepare(check_config(document, "."), people)
    table, (test,) = prepared.rows.table, prepared.tests
    procedure, rng = test.procedure, seeds.stream(0)
    records = np.unique(prepared.rows.index[test.audited])
    procedure.sanitizer.release(table, rng)  # compile
    full = procedure.sanitizer.release(table, rng)
    start = time.perf_counter()
    for record in records:
        target = table.codes[record]
        p = procedure.adversary.beliefs(full, procedure.encoder, target)
        q = procedure.adversary.beliefs(procedure.sanitizer.release(table.without(int(record)), rng), procedure.encoder, target)
        np.abs(p - q).sum()
    return time.perf_counter() - start


def on_workers(people, tests, workers: int) -> float:
    """Seconds from the first task to the last merged distribution."""
    settings = replace(DEFAULT, workers=workers)
    with cluster.connect(settings) as client, tempfile.TemporaryDirectory() as folder:
        warm = [dict(tests[0], records=list(range(8)))]
        dit.audit(people, schema=SCHEMA, tests=warm, client=client, output=folder)  # every worker loads its kernels
        result = dit.audit(people, schema=SCHEMA, tests=tests, client=client, output=folder)
        return json.loads((Path(result.url) / "manifest.json").read_text())["timings"]["seconds"]["work"]


def main() -> None:
    """Print the ratios as a Markdown table."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    people = datasets.census(10_000)
    sample = {"sample": rows, "seed": 1}
    # `raw` has no shortcut, so that the bare loop and the engine do the same work
    tests = [{"sanitizer": "raw", "engine": "brute-force", "records": sample}]
    with threadpool_limits(1):  # a worker has one thread too
        bare = min(bare_loop(people, tests) for _ in range(2))
    one = on_workers(people, tests, 1)
    two = on_workers(people, tests, 2)
    print(f"\nraw, TF, Bernoulli naive Bayes by brute force; 10,000 census rows, {rows:,} of them tested\n")
    print("| what | seconds | ratio |\n|---|---|---|")
    print(f"| bare loop of sanitise + train + predict | {bare:.1f} | 1 |")
    print(f"| one Dask worker, parts written and merged | {one:.1f} | {one / bare:.2f} of the bare loop |")
    print(f"| two Dask workers | {two:.1f} | {one / two:.2f} times as fast as one |")


if __name__ == "__main__":
    main()
