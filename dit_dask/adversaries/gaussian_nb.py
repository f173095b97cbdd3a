"""Gaussian naive Bayes in closed form: on patterns, and from sums over encoded classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.encoded import (
    FRACTION_BITS,
    Encoded,
    Predict,
    Sums,
    Totals,
    join_limbs,
    join_products,
    multiply_limbs,
    place_beliefs,
    split_fractions,
    to_integers,
    weigh_secrets,
)
from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats

ROUNDING = 1e-15  # of a mean or a variance, as scikit-learn computes it
WORST_ERROR = 1e-9  # of a score that rounding may cause before it is left to scikit-learn
LIKELY = 50.0  # scores that much below the largest one give no belief


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
    return place_beliefs(scores, present, patterns.counts.shape[1])


def gaussian_sums(model: Any, encoded: Encoded) -> Sums:
    """Count the records of each secret that have a feature; sum fractions and their squares."""
    return Sums(_sum_powers, _learn, encoded.fractions, _sum_powers(model, encoded))


def _sum_powers(_model: Any, encoded: Encoded) -> Totals:
    limbs = split_fractions(encoded.features[:, encoded.fractions])
    ones = np.ones((len(limbs), 1))
    columns = np.concatenate([ones, encoded.features[:, ~encoded.fractions], limbs, multiply_limbs(limbs)], axis=1)
    return (columns.T @ weigh_secrets(encoded),)


def _learn(model: Any, totals: Totals, fractions: Bools) -> Predict | None:
    (total,), hits, limbs, products = _split_totals(totals[0], fractions)
    secrets = len(total) - 1
    present = np.flatnonzero(total[:secrets])
    chosen = np.append(present, secrets)  # the last are unweighted rows, of which the smoothing is a share
    rows = total[chosen]
    mean, variance = np.empty((2, len(fractions), len(chosen)))
    mean[~fractions] = hits[:, chosen] / rows
    variance[~fractions] = hits[:, chosen] * (rows - hits[:, chosen]) / rows**2
    number, first, second = to_integers(rows), join_limbs(limbs[:, chosen]), join_products(products[:, chosen])
    mean[fractions] = first / (number * 2**FRACTION_BITS)
    variance[fractions] = (number * second - first * first) / (number * number * 4**FRACTION_BITS)
    variance += model.var_smoothing * variance[:, -1].max()
    if not (variance > 0).all():
        return None
    mean, variance = mean[:, :-1].T, variance[:, :-1].T
    # a feature with one law for all secrets adds the same to all scores: left out, so that it costs them no digits
    differs = ((mean != mean[0]) | (variance != variance[0])).any(axis=0)
    mean, variance = mean[:, differs], variance[:, differs]
    logarithms = np.log(2 * np.pi * variance)
    start = np.log(rows[:-1] / rows[:-1].sum()) - 0.5 * logarithms.sum(axis=1)

    def predict(target: Floats) -> Floats | None:
        apart = target[differs] - mean
        ratio = apart / variance
        square = (apart * ratio).sum(axis=1)
        scores = start - 0.5 * square
        error = ROUNDING * (np.abs(ratio).sum(axis=1) + square)
        if (error[scores > scores.max() - LIKELY] > WORST_ERROR).any():
            return None
        return place_beliefs(scores, present, secrets)

    return predict


def _split_totals(total: Floats, fractions: Bools) -> list[Floats]:
    """Return the sums of ones, of features that are 0 or 1, of limbs, and of their products."""
    count = int(np.count_nonzero(fractions))
    return np.split(total, np.cumsum([1, len(fractions) - count, 4 * count]))
