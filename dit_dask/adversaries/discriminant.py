"""Linear discriminant analysis on patterns: scikit-learn's solution from counts, without its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats

CERTAIN = 100.0  # a direction whose size is not so many times above or below a tolerance is left to scikit-learn


def discriminant_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs of the solver svd, or None where rounding could decide which directions count.

    The singular values of centred rows are the roots of the eigenvalues of their covariance, which follows from counts.
    """
    present = np.flatnonzero(patterns.counts.any(axis=0))
    counts = patterns.counts[:, present].astype(np.float64)
    rows, total = counts.sum(axis=0), float(counts.sum())
    if len(present) < 2 or total == len(present):
        return None
    features = patterns.features(patterns.distinct)
    priors, means = rows / total, counts.T @ features / rows[:, None]
    centre = priors @ means
    within = np.zeros((patterns.attributes, patterns.attributes))
    for mean, weight in zip(means, counts.T, strict=True):
        apart = features - mean
        within += (apart * weight[:, None]).T @ apart / total
    scale = np.sqrt(np.diag(within))
    scale[scale == 0] = 1.0
    squares, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    sizes = np.sqrt(np.maximum(squares, 0.0))
    kept = _above(sizes, model.tol)
    if kept is None or not kept.any():  # scikit-learn refuses rows that do not vary inside a class
        return None
    scalings = vectors[:, kept] / scale[:, None] / sizes[kept]
    between = np.sqrt(rows / (len(present) - 1))[:, None] * (means - centre) @ scalings
    _, spread, turns = np.linalg.svd(between, full_matrices=False)
    kept = _above(spread, model.tol * spread[0])
    if kept is None:
        return None
    directions = scalings @ turns[kept].T
    places = (means - centre) @ directions
    scores = np.log(priors) - 0.5 * (places**2).sum(axis=1) + places @ ((np.ones(patterns.attributes) - centre) @ directions)
    raised = np.exp(scores - scores.max())
    beliefs = np.zeros(patterns.counts.shape[1])
    beliefs[present] = raised / raised.sum()
    return beliefs


def _above(sizes: Floats, tolerance: float) -> Bools | None:
    """Return which sizes are above a tolerance; None if one is near it."""
    near = (sizes > tolerance / CERTAIN) & (sizes < tolerance * CERTAIN)
    return None if near.any() or tolerance <= 0 else sizes > tolerance
