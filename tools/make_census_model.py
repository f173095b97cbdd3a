"""Estimate the embedded census model: suppressed, rounded counts of UCI Adult along a Chow-Liu tree.

Usage: python tools/make_census_model.py ADULT_CSV OUT_JSON
"""

from __future__ import annotations

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

THRESHOLD = 10  # no smaller count is written
ROUNDING = 5  # the others are rounded: subtracting published counts does not give back the exact suppressed one
MISSING = "?"
DERIVED = "education-num"  # a function of education
UNUSED = ("fnlwgt", "split")
NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ABOUT = {
    "title": "Tree-structured model of UCI Adult: counts of single values and of pairs of values, no records",
    "source": "Becker, B. & Kohavi, R. (1996). Adult [Dataset]. UCI Machine Learning Repository. doi:10.24432/C5XW20",
    "licence": "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/",
    "changes": (
        f"Complete rows only, aggregated; counts below {THRESHOLD} are absent, the others are rounded to multiples of "
        f"{ROUNDING}; the tree maximises the mutual information of its edges (Chow-Liu, Miller-Madow corrected)."
    ),
    "generator": "tools/make_census_model.py",
    "threshold": THRESHOLD,
    "rounding": ROUNDING,
}


def information(left: pd.Series, right: pd.Series) -> float:
    """Return the mutual information in nats; uncorrected, many-valued pairs would win by their bias alone."""
    counts = pd.crosstab(left, right).to_numpy()
    joint = counts / counts.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    plug_in = float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())
    bias = (int(seen.sum()) - sum(counts.shape) + 1) / (2 * int(counts.sum()))
    return plug_in - bias


def tree(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the edges (parent, child) of the best spanning tree, grown from the most informative attribute."""
    names = list(rows.columns)
    weight = {frozenset(pair): information(rows[pair[0]], rows[pair[1]]) for pair in combinations(names, 2)}
    root = max(names, key=lambda name: sum(value for pair, value in weight.items() if name in pair))
    inside, edges = [root], []
    while len(inside) < len(names):
        outside = [name for name in names if name not in inside]
        edge = max(((a, b) for a in inside for b in outside), key=lambda ab: weight[frozenset(ab)])
        inside.append(edge[1])
        edges.append(edge)
    return edges


def published(counts: pd.Series) -> dict[str, int]:
    """Return the counts that may be shown, in the order of the values (numbers as numbers)."""
    kept = counts[counts >= THRESHOLD]
    order = sorted(kept.index, key=lambda value: (int(value) if value.isdigit() else 0, value))
    return {value: int(kept[value] + ROUNDING // 2) // ROUNDING * ROUNDING for value in order}


def edge_counts(rows: pd.DataFrame, parent: str, child: str, marginals: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the published cells of one edge, by parent value; parent values without any are absent."""
    known = rows[rows[parent].isin(marginals[parent]) & rows[child].isin(marginals[child])]
    cells = {value: published(known.loc[known[parent] == value, child].value_counts()) for value in marginals[parent]}
    return {"parent": parent, "child": child, "counts": {value: row for value, row in cells.items() if row}}


def model(adult: pd.DataFrame) -> dict[str, Any]:
    """Return the JSON document: who may use it and how, the marginals, the edges and the derived attribute."""
    complete = adult[(adult != MISSING).all(axis=1)]
    columns = [name for name in complete.columns if name not in UNUSED]
    rows = complete[[name for name in columns if name != DERIVED]]
    marginals = {name: published(rows[name].value_counts()) for name in rows.columns}
    derived = complete.groupby("education")[DERIVED].first().astype(int)
    return {
        **ABOUT,
        "rows": len(rows),
        "columns": columns,
        "numeric": list(NUMERIC),
        "marginals": marginals,
        "edges": [edge_counts(rows, parent, child, marginals) for parent, child in tree(rows)],
        "derived": {DERIVED: {"from": "education", "values": {k: int(derived[k]) for k in marginals["education"]}}},
    }


def main() -> None:
    """Estimate the model and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("adult_csv", type=Path)
    parser.add_argument("out_json", type=Path)
    arguments = parser.parse_args()
    document = model(pd.read_csv(arguments.adult_csv, dtype=str, keep_default_na=False))
    entries = (f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in document.items())
    arguments.out_json.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
