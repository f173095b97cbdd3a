"""Nearest records by comparing with all of them, one cell after the other: shares no code with the package."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd


def is_number(cells: pd.Series) -> bool:
    """Numbers and dates, but not booleans."""
    return cells.dtype.kind in "iufM"


def bucket_of(original: pd.Series, bins: int) -> Any:
    """A function from a cell to its bucket, by the rules of docs/synthetic-data.md."""
    known = sorted(original.dropna().tolist())
    if is_number(original):
        edges = sorted({known[len(known) * j // bins] for j in range(1, bins)})
        if edges[0] == known[0]:
            edges = sorted({*edges[1:], *[value for value in known if value > known[0]][:1]})
        return lambda cell: "missing" if pd.isna(cell) else sum(cell >= edge for edge in edges)
    counts = Counter(str(value) for value in known)
    kept = sorted(counts, key=lambda label: (-counts[label], label))[: bins - 1]
    return lambda cell: "missing" if pd.isna(cell) else (str(cell) if str(cell) in kept else "Other")


def cell_distance(training: pd.Series, distance: str, bins: int) -> Any:
    """How far two cells of a column are apart."""
    if distance == "buckets":
        bucket = bucket_of(training, bins)
        return lambda x, y: 0.0 if bucket(x) == bucket(y) else 1.0
    if not is_number(training):
        far = 2.0 if distance == "euclidean" else 1.0
        return lambda x, y: 0.0 if x == y or (pd.isna(x) and pd.isna(y)) else far
    reach = training.max() - training.min()

    def numbers(x: Any, y: Any) -> float:
        if pd.isna(x) or pd.isna(y):
            return 0.0 if pd.isna(x) and pd.isna(y) else 1.0
        if not reach:
            return 0.0 if x == y else 1.0
        share = float(abs(x - y) / reach)
        return min(1.0, share) if distance == "gower" else share * share

    return numbers


def nearest_two(
    training: pd.DataFrame, queries: pd.DataFrame, among: pd.DataFrame, distance: str, bins: int = 10
) -> Sequence[tuple[float, float]]:
    """The two smallest distances of each query, added up over the columns in their order."""
    apart = [cell_distance(training[name], distance, bins) for name in training]
    rows = [list(row) for row in zip(*(among[name] for name in training), strict=True)]
    found = []
    for query in zip(*(queries[name] for name in training), strict=True):
        totals = []
        for row in rows:
            total = 0.0
            for measure, x, y in zip(apart, query, row, strict=True):
                total += measure(x, y)
            totals.append(total / len(apart) if distance == "gower" else math.sqrt(total) if distance == "euclidean" else total)
        found.append(tuple(sorted(totals)[:2]))
    return found
