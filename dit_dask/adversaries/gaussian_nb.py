"""Gaussian naive Bayes on patterns, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats


def gaussian_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs of Gaussian naive Bayes, or None where a variance is 0: scikit-learn decides what that gives."""
    present = np.flatnonzero(patterns.counts.any(axis=0))
    counts = patterns.counts[:, present].astype(np.float64)
    weight = counts.sum(axis=0)
    mean = counts.T @ patterns.features(patterns.distinct) / weight[:, None]
    # the smoothing is a share of the largest variance of unweighted rows
    smoothing = model.var_smoothing * patterns.features(patterns.pattern).var(axis=0).max()
    variance = mean * (1 - mean) + smoothing
    if not (variance > 0).all():
        return None
    scores = np.log(weight / weight.sum()) - 0.5 * (np.log(2 * np.pi * variance) + (1 - mean) ** 2 / variance).sum(axis=1)
    raised = np.exp(scores - scores.max())
    beliefs = np.zeros(patterns.counts.shape[1])
    beliefs[present] = raised / raised.sum()
    return beliefs
