"""The space in which records are near or far: rows of numbers, and an index that finds the nearest two exactly.

buckets: in how many columns the buckets differ. gower: the mean over the columns of |difference| / training range, at most
1, for numbers and of 0 or 1 for categories. euclidean: numbers divided by their training range, categories one-hot, so that
two different ones are √2 apart. A missing cell is 0 from a missing one and 1 (a category: as far as another category) from
any other. A number whose training range is zero counts 0 if equal and 1 if not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.kernels import nearest
from dit_dask.kernels import nearest_scan as scan
from dit_dask.measures.synthetic.buckets import put_in_buckets
from dit_dask.measures.synthetic.columns import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Floats, Ints

DISTANCES = ("buckets", "gower", "euclidean")
TREE_ROWS = 1_000_000
SAMPLE = 32
FEWEST_ROWS = 500
MOST_EFFORT = {"buckets": 0.15, "gower": 0.15, "euclidean": 0.05}  # above it comparing all rows is faster
MOST_INDICATORS = 1_000
ROUGH_CELLS = 2**22
ROUGH = 2.0**-22
FAR = (-2.0, 3.0)  # as far from any number of the range as everything beyond


@dataclass(frozen=True, eq=False)
class Metric:
    """What the columns of encoded rows mean: kind, scale and number of codes of each; `name` is the distance."""

    name: str
    kinds: Ints
    scales: Floats
    levels: Ints

    def finish(self, totals: Floats) -> Floats:
        """Turn sums over columns into distances; both ways are monotone, so the smallest stay the smallest."""
        if self.name == "gower":
            return totals / len(self.kinds)
        return np.sqrt(totals) if self.name == "euclidean" else totals


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Of each query: the distances to its nearest two records, copies counted, and the number of the nearest distinct row
    in lexicographic order, any of them where several are equally near."""

    first: Floats
    second: Floats
    row: Ints

    @property
    def ratio(self) -> Floats:
        """Nearest by second nearest; two neighbours at distance zero are equally near: 1."""
        return np.divide(self.first, self.second, out=np.ones_like(self.first), where=self.second > 0)


def join_blocks(parts: Sequence[Neighbours]) -> Neighbours:
    """Concatenate blocks of queries."""
    return Neighbours(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("first", "second", "row")))


@dataclass(frozen=True, eq=False)
class Tree:
    """Distinct rows in the order of a tree over them, their numbers, how often each occurs, and the tree."""

    rows: Floats
    number: Ints
    copies: Ints
    nodes: Ints
    bounds: Floats
    masks: NDArray[np.uint64]

    def search(self, metric: Metric, queries: Floats, first: Floats, second: Floats, match: Ints) -> int:
        """Lower the distances by those to rows of the tree; return how many rows and nodes were compared."""
        what = (metric.kinds, metric.scales, self.nodes, self.bounds, self.masks)
        effort: int = nearest.search(queries, self.rows, self.copies, *what, first, second, match)
        return effort

    def effort(self, metric: Metric) -> float:
        """Return which share of the rows a search compares, from some rows of the tree itself: no query decides it."""
        some = np.ascontiguousarray(self.rows[np.argsort(self.number)[:: max(1, len(self.rows) // SAMPLE)]])
        ends = np.full((2, len(some)), np.inf)
        return self.search(metric, some, ends[0], ends[1], np.full(len(some), -1)) / (len(some) * len(self.rows))


@dataclass(frozen=True, eq=False)
class Scan:
    """The rows of a tree for comparing all of them: single precision, numbers in parts of their range."""

    metric: Metric
    tree: Tree
    low: Floats

    @classmethod
    def of(cls, metric: Metric, tree: Tree) -> Scan | None:
        """Prepare the rows; None where missing numbers or too many categories leave only the tree."""
        is_number = metric.kinds != nearest.CATEGORY
        if np.isnan(tree.rows).any() or (metric.name == "euclidean" and metric.levels.sum() > MOST_INDICATORS):
            return None
        return cls(metric, tree, np.where(is_number, tree.rows.min(axis=0), 0.0))

    def search(self, queries: Floats, first: Floats, second: Floats, match: Ints) -> None:
        """Lower the distances by those to all rows, exactly."""
        known = ~np.asarray(np.isnan(queries).any(axis=1))
        for start in range(0, len(queries), max(1, ROUGH_CELLS // len(self.tree.rows))):
            block = np.arange(start, min(len(queries), start + max(1, ROUGH_CELLS // len(self.tree.rows))))
            for part, compare in ((block[known[block]], self._compare), (block[~known[block]], self._search_tree)):
                if len(part):
                    ends = first[part], second[part], match[part]
                    compare(np.ascontiguousarray(queries[part]), *ends)
                    first[part], second[part], match[part] = ends

    def _search_tree(self, queries: Floats, first: Floats, second: Floats, match: Ints) -> None:
        self.tree.search(self.metric, queries, first, second, match)

    def _compare(self, queries: Floats, first: Floats, second: Floats, match: Ints) -> None:
        exact = (queries, self.tree.rows, self.tree.copies, self.metric.kinds, self.metric.scales, first, second, match)
        if self.metric.name == "euclidean":
            rough, margin = self._rough_squares(queries)
            scan.refine(rough, margin, *exact)
            return
        width = len(self.metric.kinds)
        units = self._units(queries)
        units = np.where(self.metric.kinds == nearest.CATEGORY, units, np.clip(units, *FAR))
        scan.scan_gower(units.astype(np.float32), self._columns, width * (1 + width / 8) * ROUGH, *exact)

    def _units(self, rows: Floats) -> Floats:
        is_number = self.metric.kinds != nearest.CATEGORY
        units: Floats = np.where(is_number, (rows - self.low) / np.where(is_number, self.metric.scales, 1.0), rows)
        return units

    @cached_property
    def _columns(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self._units(self.tree.rows).T.astype(np.float32))

    @cached_property
    def _indicators(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self._expand(self.tree.rows)

    def _expand(self, rows: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return numbers and indicators of categories, (n, width), and their squared lengths."""
        units = self._units(rows)
        parts = []
        for column, (kind, levels) in enumerate(zip(self.metric.kinds, self.metric.levels, strict=True)):
            if kind == nearest.CATEGORY:
                indicators = units[:, column, None] == np.arange(levels)
                parts.append(indicators * np.sqrt(self.metric.scales[column] / 2))
            else:
                parts.append(units[:, column, None])
        wide = np.concatenate(parts, axis=1)
        return wide.astype(np.float32), (wide**2).sum(axis=1).astype(np.float32)

    def _rough_squares(self, queries: Floats) -> tuple[NDArray[np.float32], float]:
        """Return (queries, rows) squared distances and how wrong they may be."""
        rows, lengths = self._indicators
        wide, own = self._expand(queries)
        rough = wide @ rows.T
        rough *= -2
        rough += own[:, None]
        rough += lengths
        return rough, float(own.max() + lengths.max()) * (wide.shape[1] + 8) * ROUGH


@dataclass(frozen=True, eq=False)
class Index:
    """Records to be found: one tree for every million distinct ones, so that building one never needs more than that."""

    metric: Metric
    trees: tuple[Tree, ...]
    scans: Mapping[Tree, Scan]
    """Those of the trees that would exclude little: all of their rows are compared instead."""

    def nearest(self, queries: Floats) -> Neighbours:
        """Find the nearest two records of every query, exactly as comparing with all of them would."""
        distinct, inverse, _ = unique_rows(queries)
        first, second = np.full(len(distinct), np.inf), np.full(len(distinct), np.inf)
        row = np.full(len(distinct), -1)
        for tree in self.trees:
            match = np.full(len(distinct), -1)
            if tree in self.scans:
                self.scans[tree].search(distinct, first, second, match)
            else:
                tree.search(self.metric, distinct, first, second, match)
            row = np.where(match >= 0, tree.number[match], row)
        return Neighbours(self.metric.finish(first)[inverse], self.metric.finish(second)[inverse], row[inverse])


def encode(columns: Sequence[Column], distance: str, bins: int) -> tuple[Metric, list[Floats]]:
    """Encode every frame as float64 rows[n, d]; scales and buckets come from the first frame."""
    frames = len(columns[0].cells)
    kinds, scales, levels = [], [], []
    encoded: list[list[Floats]] = [[] for _ in range(frames)]
    for column in columns:
        kind, scale, size, cells = _encode_column(column, distance, bins)
        kinds.append(kind)
        scales.append(scale)
        levels.append(size)
        for frame, part in zip(encoded, cells, strict=True):
            frame.append(part.astype(np.float64))
    metric = Metric(distance, np.array(kinds, np.int64), np.array(scales, np.float64), np.array(levels, np.int64))
    return metric, [np.ascontiguousarray(np.column_stack(frame)) for frame in encoded]


def _encode_column(column: Column, distance: str, bins: int) -> tuple[int, float, int, Sequence[NDArray[Any]]]:
    """Return kind, scale, number of codes and the cells of every frame."""
    if distance == "buckets":
        parts = put_in_buckets(column, bins)
        return nearest.CATEGORY, 1.0, parts.size, parts.codes
    if column.kind == "categorical":
        cells = [np.where(cells < 0, len(column.labels), cells) for cells in column.cells]
        return nearest.CATEGORY, 2.0 if distance == "euclidean" else 1.0, len(column.labels) + 1, cells
    scale = float(np.nanmax(column.cells[0]) - np.nanmin(column.cells[0]))
    if scale == 0:
        values = np.unique(np.concatenate(column.cells))  # a missing value sorts last and is there at most once
        return nearest.CATEGORY, 1.0, len(values), [np.searchsorted(values, cells) for cells in column.cells]
    return nearest.CAPPED if distance == "gower" else nearest.SQUARED, scale, 0, column.cells


def build_index(metric: Metric, rows: Floats) -> Index:
    """Build the index of some encoded rows; it depends on which rows there are, not on their order."""
    distinct, _, copies = unique_rows(rows)
    trees = tuple(_grow_trees(metric, distinct, copies))
    scans: dict[Tree, Scan] = {}
    for tree in trees:
        if len(tree.rows) >= FEWEST_ROWS and tree.effort(metric) > MOST_EFFORT[metric.name]:
            prepared = Scan.of(metric, tree)
            scans |= {tree: prepared} if prepared is not None else {}
    return Index(metric, trees, scans)


def _grow_trees(metric: Metric, rows: Floats, copies: Ints) -> Iterator[Tree]:
    for start in range(0, len(rows), TREE_ROWS):
        part = rows[start : start + TREE_ROWS]
        order, nodes, bounds, masks = nearest.grow(part, metric.kinds, metric.scales, metric.levels)
        number = order + start
        yield Tree(part[order], number, copies[number], nodes, bounds, masks)


def unique_rows(rows: Floats) -> tuple[Floats, Ints, Ints]:
    """Return the distinct rows in lexicographic order, the distinct row of each row, and how often each occurs."""
    comparable = np.where(np.isnan(rows), -np.inf, rows)  # missing values are equal here
    order = np.lexsort(comparable.T[::-1])
    ordered = comparable[order]
    starts = np.ones(len(rows), bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(starts) - 1
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = group
    return np.ascontiguousarray(rows[order[starts]]), inverse, np.bincount(group)
