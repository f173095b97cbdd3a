"""Buckets: every column in at most m groups that are learned from the original.

Numbers and dates are cut at quantiles: the edges are the values at the positions ⌊n·j/m⌋ of the n sorted values, counted
from 0, for j = 1 … m-1, each edge kept once. A bucket holds its lower edge and not its upper one (18 ≤ age < 24). Nothing
lies below an edge that is the smallest value: such an edge moves up to the next value, so that a column of mostly zeros is
still split into zero and more. Categories: the m-1 most common ones, ties in the order of their labels; all others, and
those the original does not have, are Other. Missing cells have a bucket of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.synthetic.columns import Column

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

MOST_BINS = 10_000


@dataclass(frozen=True, eq=False)
class BucketedColumn:
    """A column in buckets: the codes of every frame, and how many codes there are."""

    name: str
    codes: tuple[Codes, ...]
    size: int


def check_bins(bins: Any) -> int:
    """Accept a number of buckets that codes and cross-tabulations can hold."""
    if not isinstance(bins, int | np.integer) or isinstance(bins, bool) or not 2 <= bins <= MOST_BINS:
        raise InputError(f"bins must be an integer from 2 to {MOST_BINS}; got {bins!r}")
    return int(bins)


def put_in_buckets(column: Column, bins: int) -> BucketedColumn:
    """Learn the buckets from the first frame and apply them to all."""
    if column.kind == "numeric":
        edges = quantile_edges(column.cells[0], bins, column.counts_of(0))
        missing = len(edges) + 1
        codes = [np.where(np.isnan(cells), missing, np.searchsorted(edges, cells, "right")) for cells in column.cells]
    else:
        group = group_by_frequency(column.cells[0], len(column.labels), bins, column.counts_of(0))
        missing = int(group.max()) + 1
        codes = [np.append(group, missing)[cells] for cells in column.cells]
    return BucketedColumn(column.name, tuple(part.astype(np.int32) for part in codes), missing + 1)


def quantile_edges(cells: Floats, bins: int, counts: Ints) -> Floats:
    """Return the distinct lower edges of all buckets but the first; cell n stands for counts[n] rows."""
    order = np.argsort(cells)[: np.count_nonzero(~np.isnan(cells))]  # missing ones are last
    values, ends = cells[order], np.cumsum(counts[order])
    edges = np.unique(values[np.searchsorted(ends, ends[-1] * np.arange(1, bins) // bins, "right")])
    if edges[0] == values[0]:
        above = values[np.searchsorted(values, values[0], "right") :][:1]
        edges = np.unique(np.concatenate([above, edges[1:]]))
    return edges


def group_by_frequency(cells: Ints, labels: int, bins: int, counts: Ints) -> Ints:
    """Return (labels,): the bucket of each label, its rank among the most common ones or the bucket after them."""
    totals = count_labels(cells, labels, counts)
    order = np.lexsort([np.arange(labels), -totals])
    kept = order[: min(bins - 1, int((totals > 0).sum()))]
    group = np.full(labels, len(kept))
    group[kept] = np.arange(len(kept))
    return group


def count_labels(cells: Ints, labels: int, counts: Ints) -> Ints:
    """Return (labels,): how many rows have each, where cell n stands for counts[n] of them."""
    return np.bincount(cells[cells >= 0], counts[cells >= 0], labels).astype(np.int64)


def stack_codes(columns: Sequence[BucketedColumn], frame: int) -> Codes:
    """Return the (rows, columns) codes of one frame."""
    return np.ascontiguousarray(np.column_stack([column.codes[frame] for column in columns]), np.int32)
