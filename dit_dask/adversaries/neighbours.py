"""Nearest neighbours by counting: on patterns, where the distance is the number of zeros, and among encoded classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.encoded import Change, Encoded, Predict
from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


TIED = 1e-9  # distances, or their squares, that differ by less: rounding could decide which is nearer
MOST_ATTRIBUTES = 15  # of scikit-learn's choice of a tree for algorithm: auto


def neighbour_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs; ties between neighbours with different secrets are broken by the tree that scikit-learn builds."""
    zeros = patterns.attributes - patterns.features(patterns.distinct).sum(axis=1).astype(np.int64)
    nearer = np.zeros(patterns.counts.shape[1], np.int64)
    for distance in range(patterns.attributes + 1):
        tied = patterns.counts[zeros == distance].sum(axis=0)
        missing = model.n_neighbors - int(nearer.sum())
        if missing > tied.sum():
            nearer = nearer + tied
        elif missing == tied.sum():
            return _shares(nearer + tied)
        elif np.count_nonzero(tied) == 1:
            return _shares(nearer + np.where(tied > 0, missing, 0))
        else:
            return _search(model, patterns)
    return None  # fewer records than neighbours: scikit-learn says so


def _search(model: Any, patterns: Patterns) -> Floats | None:
    """Ask the tree of all records, in the order of the release."""
    from sklearn.neighbors import KDTree

    features, secrets = patterns.repeated()
    if model.algorithm != "auto" or patterns.attributes > MOST_ATTRIBUTES or model.n_neighbors >= len(secrets) // 2:
        return None
    tree = KDTree(features, model.leaf_size, metric="euclidean")
    nearest = tree.query(np.ones((1, patterns.attributes)), model.n_neighbors, return_distance=False)[0]
    return _shares(np.bincount(secrets[nearest], minlength=patterns.counts.shape[1]))


def _shares(counts: Ints) -> Floats:
    shares: Floats = counts / counts.sum()
    return shares


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The classes of the release of the whole table, the places of those that are gone, and the new ones."""

    base: Encoded
    measure: Callable[[Floats, Floats], Floats]
    gone: Ints
    new: Encoded

    def update(self, _model: Any, change: Change) -> Neighbours:
        """Replace the classes that changed."""
        return replace(self, gone=change.places, new=change.new)

    def learn(self, model: Any) -> Predict:
        """Measure the distance of every class to a target; the nearest records have the secrets of the nearest classes."""
        return partial(self._count_nearest, model.n_neighbors)

    def _count_nearest(self, wanted: int, target: Floats) -> Floats | None:
        """None where neighbours that are tied for the last places have different secrets, and if there are too few records."""
        distance = self.measure(self.base.features, target)
        distance[self.gone] = np.inf
        distance = np.append(distance, self.measure(self.new.features, target))
        last = min(wanted, len(distance)) - 1
        limit = np.partition(distance, last)[last]  # every class has a record, so no more of them are needed
        near = np.flatnonzero(distance <= limit + TIED)
        near = near[np.argsort(distance[near], kind="stable")]
        counts = self._counts(near[np.isfinite(distance[near])])
        groups = np.flatnonzero(np.diff(distance[near[: len(counts)]], prepend=-np.inf) > TIED)
        nearer = np.zeros(counts.shape[1], np.int64)
        for tied in np.add.reduceat(counts, groups) if len(counts) else ():
            missing = wanted - int(nearer.sum())
            if missing > tied.sum():
                nearer = nearer + tied
            elif missing == tied.sum():
                return _shares(nearer + tied)
            else:
                is_certain = np.count_nonzero(tied) == 1
                return _shares(nearer + np.where(tied > 0, missing, 0)) if is_certain else None
        return None

    def _counts(self, classes: Ints) -> Ints:
        is_new = classes >= len(self.base.counts)
        counts = self.base.counts[np.where(is_new, 0, classes)]
        counts[is_new] = self.new.counts[classes[is_new] - len(self.base.counts)]
        return counts


def find_neighbours(model: Any, encoded: Encoded) -> Neighbours:
    """Keep the classes; nothing is gone."""
    nothing = Encoded(encoded.features[:0], encoded.fractions, encoded.counts[:0])
    measure = MEASURES[model.p if model.metric == "minkowski" else model.metric]
    return Neighbours(encoded, measure, np.empty(0, np.int64), nothing)


def _squares(features: Floats, target: Floats) -> Floats:
    apart = features - target
    squares: Floats = np.einsum("cf,cf->c", apart, apart)
    return squares


def _sums(features: Floats, target: Floats) -> Floats:
    sums: Floats = np.abs(features - target).sum(axis=1)
    return sums


def _largest(features: Floats, target: Floats) -> Floats:
    largest: Floats = np.abs(features - target).max(axis=1)
    return largest


MEASURES: dict[object, Callable[[Floats, Floats], Floats]] = {
    **dict.fromkeys((2, "euclidean", "l2"), _squares),
    **dict.fromkeys((1, "manhattan", "cityblock", "l1"), _sums),
    "chebyshev": _largest,
}
