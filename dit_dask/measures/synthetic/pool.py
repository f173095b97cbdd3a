"""The real records of both tables together, without a mark of which is in which, beside the synthetic ones.

Everything here depends on the set of real records only, neither on their order nor on who is in training: ranges and buckets
come from all of them, and records are in the order of their cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.kernels.density import record_density
from dit_dask.measures.synthetic.buckets import put_in_buckets
from dit_dask.measures.synthetic.columns import Column
from dit_dask.measures.synthetic.space import Metric, encode

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

GROUPS = 8
GROUP_SIZES = (3, 4, 5)
BINS = 10
DENSITY_CELLS = 5e8
FEWEST_OTHERS = 500


@dataclass(frozen=True)
class View:
    """Some columns in one space: the family of tests they belong to, the distance, and the positions of the columns."""

    family: str
    distance: str
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """Encoded real and synthetic records, sorted by their cells, and the views that are searched."""

    names: tuple[str, ...]
    is_training: Bools
    codes: Codes
    synthetic_codes: Codes
    ordered: Ints
    spaces: dict[str, tuple[Metric, Floats, Floats]]
    views: tuple[View, ...]

    def rows(self, view: View) -> tuple[Metric, Floats, Floats]:
        """Return the metric of a view, its real rows and its synthetic rows."""
        metric, real, synthetic = self.spaces[view.distance]
        chosen = list(view.columns)
        part = Metric(metric.name, metric.kinds[chosen], metric.scales[chosen], metric.levels[chosen])
        return part, np.ascontiguousarray(real[:, chosen]), np.ascontiguousarray(synthetic[:, chosen])

    def density(self, positions: Ints, seed: int) -> Floats:
        """Estimate how likely each of some real records is, from the other real records."""
        total, width = self.codes.shape
        most = int(max(FEWEST_OTHERS, DENSITY_CELLS / max(1, len(positions) * width)))
        others = np.arange(total)
        if most < total:
            others = np.sort(seeds.stream(seed, "closeness", "density").choice(total, most, replace=False))
        place = np.full(total, -1)
        place[others] = np.arange(len(others))
        shares, ranks = np.empty(self.codes.shape), np.empty(self.codes.shape)
        for column in range(width):
            counts = np.bincount(self.codes[:, column]) / total
            shares[:, column] = counts[self.codes[:, column]]
            ranks[:, column] = (np.cumsum(counts) - counts / 2)[self.codes[:, column]]
        codes = self.codes.astype(np.int64)
        density: Floats = record_density(
            codes[positions], shares[positions], ranks[positions], codes[others], ranks[others], self.ordered, place[positions]
        )
        return density


def build_pool(columns: Sequence[Column], distance: str, bins: int, seed: int) -> Pool:
    """Put training and holdout (the first and the third frame) together; `columns` are those that the verdict looks at."""
    training = len(columns[0].cells[0])
    pooled = [
        Column(column.name, column.kind, (np.concatenate([column.cells[0], column.cells[2]]), column.cells[1]), column.labels)
        for column in columns
    ]
    total = len(pooled[0].cells[0])
    numbers = [np.unique(np.concatenate(column.cells), return_inverse=True)[1] for column in pooled]
    codes = np.column_stack(numbers).astype(np.int32)
    is_training = np.arange(total) < training
    order, order_synthetic = np.lexsort(codes[:total].T[::-1]), np.lexsort(codes[total:].T[::-1])
    spaces = {}
    for name in dict.fromkeys(["gower", distance]):
        metric, (real, synthetic) = encode(pooled, name, bins)
        spaces[name] = (metric, real[order], synthetic[order_synthetic])
    return Pool(
        tuple(column.name for column in columns),
        is_training[order],
        codes[:total][order],
        codes[total:][order_synthetic],
        np.array([column.kind == "numeric" for column in columns], np.int64),
        spaces,
        tuple(choose_views(pooled, distance, seed)),
    )


def choose_views(pooled: Sequence[Column], distance: str, seed: int) -> list[View]:
    """Choose the column subsets: all columns (in the asked distance too), correlated groups and random groups."""
    width = len(pooled)
    every = tuple(range(width))
    views = [View("all columns", name, every) for name in dict.fromkeys(["gower", distance])]
    if width < 4:
        return views
    seen = {every}
    for family, groups in (("correlated columns", correlated_groups(pooled)), ("random columns", random_groups(width, seed))):
        fresh = [group for group in dict.fromkeys(groups) if group not in seen][:GROUPS]
        seen |= set(fresh)
        views += [View(family, "gower", group) for group in fresh]
    return views


def correlated_groups(pooled: Sequence[Column]) -> list[tuple[int, ...]]:
    """Return for each column itself and those with which it is associated most, the most associated groups first."""
    codes = [put_in_buckets(column, BINS).codes[0] for column in pooled]
    width = len(codes)
    strength = np.zeros((width, width))
    for one, other in itertools.combinations(range(width), 2):
        strength[one, other] = strength[other, one] = association(codes[one], codes[other])
    groups = []
    for column in range(width):
        size = GROUP_SIZES[column % len(GROUP_SIZES)]
        partners = sorted((other for other in range(width) if other != column), key=lambda other: -strength[column, other])
        chosen = partners[: min(size, width - 1) - 1]
        groups.append((-strength[column, chosen].mean(), tuple(sorted([column, *chosen]))))
    return [group for _, group in sorted(groups)]


def association(one: Codes, other: Codes) -> float:
    """Return Cramér's V of two columns of codes."""
    span = int(other.max()) + 1
    table = np.bincount(one.astype(np.int64) * span + other, minlength=(int(one.max()) + 1) * span).reshape(-1, span)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return 0.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return math.sqrt(statistic / table.sum() / (min(table.shape) - 1))


def random_groups(width: int, seed: int) -> list[tuple[int, ...]]:
    """Draw groups of three columns up to half of them."""
    rng = seeds.stream(seed, "closeness", "groups", width)
    sizes = rng.integers(3, max(4, width // 2 + 1), 4 * GROUPS)
    return [tuple(sorted(rng.choice(width, min(int(size), width - 1), replace=False).tolist())) for size in sizes]
