"""Reasons why a table cannot be judged: shared records, columns that number the rows, labels that nobody has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.measures.synthetic.buckets import count_labels
from dit_dask.measures.synthetic.columns import Column
from dit_dask.measures.synthetic.relabelling import Relabelling

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

SHARED_LEVEL = 0.001
MIN_ROWS = 20
UNIQUE_LABELS = 0.9
DENSE = 0.5
MISSED_PAIRS = 10
UNSEEN = 0.05


def find_identifiers(columns: Sequence[Column]) -> list[str]:
    """Return the columns that number or name the rows: labels that hardly repeat, or whole numbers that never do."""
    return [column.name for column in columns if _is_identifier(column)]


def _is_identifier(column: Column) -> bool:
    cells, counts = column.cells[0], column.counts_of(0)
    rows = int(counts.sum())
    if rows < MIN_ROWS:
        return False
    if column.kind == "categorical":
        return len(np.unique(cells[cells >= 0])) >= UNIQUE_LABELS * rows
    is_known = ~np.isnan(cells)
    values, known = np.unique(cells[is_known]), int(counts[is_known].sum())
    if len(values) < known or known < UNIQUE_LABELS * rows or (values != np.floor(values)).any():
        return False
    steps = np.diff(values)
    if not len(steps) or np.abs(values).max() >= 2**62:
        return False
    places = float(values[-1] - values[0]) / float(np.gcd.reduce(steps.astype(np.int64))) + 1
    # among so many independent numbers some would be equal
    return len(values) >= DENSE * places or len(values) ** 2 / (2 * places) >= MISSED_PAIRS


def describe_unseen(columns: Sequence[Column]) -> list[str]:
    """Return what is wrong with columns in which synthetic labels are new far more often than holdout labels are."""
    reasons = []
    for column in columns:
        if column.kind != "categorical":
            continue
        training, synthetic, holdout = column.cells
        real = np.union1d(training, holdout)
        unseen = float((~np.isin(synthetic, real)).mean())
        natural = float((~np.isin(holdout, training)).mean())
        if unseen > UNSEEN + 2 * natural:
            reasons.append(f"{unseen:.1%} of the synthetic cells of {column.name!r} have labels that no real record has")
    return reasons


def share_unseen(column: Column) -> float:
    """Return the share of the second frame's rows whose label the first one does not have."""
    counts = column.counts_of(1)
    return float(counts[~np.isin(column.cells[1], np.append(column.cells[0], -1))].sum() / counts.sum())


def describe_unlike(columns: Sequence[Column]) -> list[str]:
    """Return why the distributions of two tables cannot be judged: identifiers, and labels that only the second one has.

    Buckets put both into Other. By chance the share of unseen labels is that of labels which occur once in the first table.
    """
    reasons = [f"column {name!r} numbers or names the rows: leave it out with columns" for name in find_identifiers(columns)]
    for column in columns:
        if column.kind != "categorical":
            continue
        unseen, first = share_unseen(column), column.counts_of(0)
        natural = float((count_labels(column.cells[0], len(column.labels), first) == 1).sum() / first.sum())
        if unseen > UNSEEN + 2 * natural:
            reasons.append(
                f"{unseen:.1%} of the synthetic cells of {column.name!r} have labels that the original does not have"
            )
    return reasons


def count_shared(codes: Codes, relabelling: Relabelling) -> tuple[int, float]:
    """Return how many holdout records equal a training record, and how likely so many shared pairs are by chance.

    Equal records are compared in pairs, one in each table: a random division separates only some of them.
    """
    starts = np.ones(len(codes), bool)
    starts[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    group = np.cumsum(starts) - 1
    size = np.bincount(group)
    inside = np.bincount(group, relabelling.is_training, len(size))
    shared = int(np.where(inside > 0, size - inside, 0).sum())
    repeated = size[group] > 1
    if not shared or not repeated.any():
        return shared, 1.0
    numbers = np.unique(group[repeated], return_inverse=True)[1]
    sizes = np.bincount(numbers).astype(np.float64)

    def pairs(labels: Floats) -> float:
        training = np.bincount(numbers, labels[repeated], len(sizes))
        return float((training * (sizes - training)).sum())

    observed = pairs(relabelling.is_training.astype(np.float64))
    drawn = [
        pairs(np.unpackbits(row, count=len(codes)).astype(np.float64)) >= observed for row in relabelling.drawn[: 1000 - 1]
    ]
    return shared, (1 + sum(drawn)) / (1 + len(drawn))
