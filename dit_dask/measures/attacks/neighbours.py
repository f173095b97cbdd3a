"""The nearest published records of attacked ones, in some of the columns.

As in anonymeter a number counts |difference| / range, the range being that of the release and the attacked table together,
and a category 0 or 1. Of equally near records the one with the lower number wins; numbers are drawn at random once for all
records of the release in sorted order, so that neither the order of rows nor a chosen value is preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.kernels import nearest
from dit_dask.kernels.nearest_several import search_several
from dit_dask.measures.synthetic.columns import Column
from dit_dask.measures.synthetic.space import Metric, unique_rows

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


def number_records(columns: Sequence[Column], frame: int, seed: int) -> Ints:
    """Return the number of each record of a frame: a random order that depends on its records and not on their order."""
    cells = np.column_stack([np.nan_to_num(column.cells[frame].astype(np.float64), nan=-np.inf) for column in columns])
    number = np.empty(len(cells), np.int64)
    number[np.lexsort(cells.T[::-1])] = seeds.stream(seed, "attacks", "ties").permutation(len(cells))
    return number


@dataclass(frozen=True, eq=False)
class Nearest:
    """Of each attacked record: the numbers and distances of its nearest published records, (n, k), the nearest first."""

    number: Ints
    distance: Floats


def find_nearest(columns: Sequence[Column], frames: tuple[int, int], number: Ints, neighbours: int) -> Nearest:
    """Find the nearest records of the first frame for each record of the second; `number` is of those of the first."""
    # anonymeter's order of summation: numbers before categories, each sorted by name
    ordered = sorted(columns, key=lambda column: (column.kind != "numeric", column.name))
    metric, published, attacked = _encode(ordered, frames)
    distinct, inverse, copies = unique_rows(published)
    order, nodes, bounds, masks = nearest.grow(distinct, metric.kinds, metric.scales, metric.levels)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row = place[inverse]
    by_row = np.lexsort((number, row))
    starts = np.concatenate([[0], np.cumsum(copies[order])]).astype(np.int64)
    queries, query, _ = unique_rows(attacked)
    kept = min(neighbours, len(published))
    distances = np.full((len(queries), kept), np.inf)
    numbers = np.full((len(queries), kept), np.iinfo(np.int64).max)
    tree = (metric.kinds, metric.scales, nodes, bounds, masks)
    search_several(queries, distinct[order], starts, number[by_row], *tree, distances, numbers)
    return Nearest(numbers[query], distances[query])


def _encode(columns: Sequence[Column], frames: tuple[int, int]) -> tuple[Metric, Floats, Floats]:
    kinds, scales, levels = [], [], []
    encoded: tuple[list[Floats], list[Floats]] = ([], [])
    for column in columns:
        cells = [column.cells[frame] for frame in frames]
        if column.kind == "categorical":
            cells = [np.where(codes < 0, len(column.labels), codes) for codes in cells]
            kinds.append(nearest.CATEGORY)
            scales.append(1.0)
            levels.append(len(column.labels) + 1)
        else:
            known = np.concatenate(cells)
            known = known[~np.isnan(known)]
            spread = float(known.max() - known.min()) if len(known) else 0.0
            kinds.append(nearest.CAPPED)
            scales.append(spread or 1.0)
            levels.append(0)
        for rows, own in zip(encoded, cells, strict=True):
            rows.append(own.astype(np.float64))
    metric = Metric("gower", np.array(kinds, np.int64), np.array(scales), np.array(levels, np.int64))
    first, second = (np.ascontiguousarray(np.column_stack(rows)) for rows in encoded)
    return metric, first, second
