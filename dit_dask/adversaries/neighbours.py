"""Nearest neighbours on patterns: the distance to the target is a function of the number of zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


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
