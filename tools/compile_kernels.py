"""Compile every kernel that audits use, by small audits: for an image whose containers must not compile at every start.

Usage: python tools/compile_kernels.py
The compiled kernels are where numba keeps them: beside the source, or below NUMBA_CACHE_DIR.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pandas as pd

import dit_dask as dit
from dit_dask.inputs.datasets import census

SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical"},
        "hours-per-week": {"kind": "numeric"},
    },
    "sensitive": "occupation",
}
LAPLACE = {"name": "laplace", "epsilon": 1, "bins": {"age": 3, "hours-per-week": 2}}
TESTS = [
    {"sanitizer": {"name": "mondrian", "k": 5, "variant": ["strict", "basic"]}},
    {"sanitizer": {"name": "mondrian", "l": 3, "variant": ["strict", "basic"]}},
    {"sanitizer": {"name": "mondrian", "k": 5}, "engine": "brute-force", "records": {"sample": 5, "seed": 1}},
    {"sanitizer": "raw", "records": {"sample": 5, "seed": 1}},
    {"sanitizer": LAPLACE, "method": "exact"},
    {"sanitizer": LAPLACE, "method": "simulate", "samples": 100},
]


def main() -> None:
    """Run the audits and forget their results."""
    people = census(1200)
    with tempfile.TemporaryDirectory() as folder:
        dit.audit(people[:400], schema=SCHEMA, tests=TESTS, output=folder)
    thirds = people[:400], people[400:800], people[800:]
    for distance in ("buckets", "gower", "euclidean"):
        dit.closeness(*(third.reset_index(drop=True) for third in thirds), distance=distance)
    numbers = [pd.DataFrame(np.random.default_rng(seed).normal(size=(700, 20))).add_prefix("x") for seed in range(3)]
    for distance in ("gower", "euclidean"):  # many columns: all rows are compared
        dit.closeness(*numbers, distance=distance)
    dit.singling_out(*numbers, columns=["x0", "x1", "x2"])
    dit.linkability(*numbers, (["x0"], ["x1"]), columns=["x0", "x1"])
    dit.discrimination_rate(people["occupation"], people[["age", "education"]])


if __name__ == "__main__":
    main()
