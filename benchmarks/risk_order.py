"""What asking wisely saves: calls of a black box, and how soon the worst record is found.

    python benchmarks/risk_order.py [rows]

One process, no cluster. The black box publishes Mondrian classes as text, so that all distances are known from the exact
engine and only the order of work differs. Real rows are used where DIT_DATA leads to them.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dit_dask import run
from dit_dask.audit.grammar import check_config
from dit_dask.engines import ENGINES
from dit_dask.engines.priority import estimated_influence

SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical"},
        "marital-status": {"kind": "categorical"},
        "race": {"kind": "categorical"},
        "sex": {"kind": "categorical"},
        "hours-per-week": {"kind": "numeric"},
    },
    "sensitive": "occupation",
}
TESTS = {
    "raw": {"sanitizer": "raw", "engine": "brute-force"},
    "k=2": {"sanitizer": {"name": "mondrian", "k": 2}},
    "k=5": {"sanitizer": {"name": "mondrian", "k": 5}},
    "k=20": {"sanitizer": {"name": "mondrian", "k": 20}},
    "l=3": {"sanitizer": {"name": "mondrian", "l": 3}},
}
ADVERSARIES = ("bernoulli-nb", "conditional-frequency")


def main(rows: int) -> None:
    """Print a table."""
    document = {"version": 1, "data": {"source": "dit://census", "limit": rows}, "schema": SCHEMA}
    print(f"{rows:,} rows of dit://census; the worst record is found after so many records, by the order of work")
    heads = ("distinct", "file order", "at random", "at risk first", "sooner")
    print(f"{'release':10}{'adversary':24}" + "".join(f"{head:>15}" for head in heads))
    for name, test in TESTS.items():
        for adversary in ADVERSARIES:
            point = dict(test, adversary=adversary)
            if adversary != "bernoulli-nb":
                point["engine"] = "brute-force"
            prepared = run.prepare(check_config(document | {"tests": [point]}, "."))
            built = prepared.tests[0]
            table = built.rows.table
            distances = ENGINES[built.engine].influence(table, np.arange(table.distinct), built.procedure).distance
            worst = np.flatnonzero(distances == distances.max())
            first = np.unique(built.rows.index, return_index=True)[1]
            in_file = int(np.argsort(np.argsort(first))[worst].min()) + 1
            at_random = (table.distinct + 1) / (len(worst) + 1)
            began = time.perf_counter()
            order = np.argsort(-estimated_influence(table, built.procedure.publish(table), built.procedure), kind="stable")
            spent = time.perf_counter() - began
            at_risk = int(np.argsort(order)[worst].min()) + 1
            counts = "".join(f"{number:>15,.0f}" for number in (table.distinct, in_file, at_random, at_risk))
            print(f"{name:10}{adversary:24}{counts}{at_random / at_risk:>15.1f}   (ordering took {spent:.2f} s)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
