"""Naive Bayes of counts, in closed form from sums over encoded classes: Bernoulli, categorical, multinomial, complement."""

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
    place_beliefs,
    split_fractions,
)

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats


def bernoulli_sums(model: Any, encoded: Encoded) -> Sums:
    """Count the records of each secret with features above the threshold."""
    return Sums(_count_above, _learn_bernoulli, encoded.fractions, _count_above(model, encoded))


def _count_above(model: Any, encoded: Encoded) -> Totals:
    return _sum_columns(encoded, (encoded.features > model.binarize).astype(np.float64))


def _learn_bernoulli(model: Any, totals: Totals, _fractions: Bools) -> Predict:
    present, rows, hits = _of_present(totals[0])
    denominator = np.log(rows + 2 * model.alpha)
    has, lacks = np.log(hits + model.alpha) - denominator, np.log(rows - hits + model.alpha) - denominator
    start = _prior(model, rows)
    return lambda target: place_beliefs(
        start + np.where((target > model.binarize)[:, None], has, lacks).sum(axis=0), present, totals[0].shape[1]
    )


def categorical_sums(model: Any, encoded: Encoded) -> Sums:
    """Count the records of each secret whose whole part of a feature is 1."""
    return Sums(_count_ones, _learn_categorical, encoded.fractions, _count_ones(model, encoded))


def _count_ones(_model: Any, encoded: Encoded) -> Totals:
    return _sum_columns(encoded, np.floor(encoded.features))


def _learn_categorical(model: Any, totals: Totals, _fractions: Bools) -> Predict:
    present, rows, hits = _of_present(totals[0])
    seen = np.where(hits.any(axis=1), 2, 1)
    categories = np.maximum(seen, model.min_categories or 0)
    denominator = np.log(rows + model.alpha * categories[:, None])
    has, lacks = np.log(hits + model.alpha) - denominator, np.log(rows - hits + model.alpha) - denominator
    start = _prior(model, rows)

    def predict(target: Floats) -> Floats | None:
        is_one = target >= 1
        if (is_one & (categories == 1)).any():  # a category that nothing has: scikit-learn says so
            return None
        return place_beliefs(start + np.where(is_one[:, None], has, lacks).sum(axis=0), present, totals[0].shape[1])

    return predict


def multinomial_sums(model: Any, encoded: Encoded) -> Sums:
    """Sum the features of the records of each secret."""
    return Sums(_sum_features, _learn_multinomial, encoded.fractions, _sum_features(model, encoded))


def complement_sums(model: Any, encoded: Encoded) -> Sums:
    """Sum the features of the records of each secret."""
    return Sums(_sum_features, _learn_complement, encoded.fractions, _sum_features(model, encoded))


def _sum_features(_model: Any, encoded: Encoded) -> Totals:
    limbs = split_fractions(encoded.features[:, encoded.fractions])
    return _sum_columns(encoded, np.concatenate([encoded.features[:, ~encoded.fractions], limbs], axis=1))


def _learn_multinomial(model: Any, totals: Totals, fractions: Bools) -> Predict:
    present, rows, amount = _of_present(totals[0], fractions)
    smoothed = amount + model.alpha
    logarithms = np.log(smoothed) - np.log(smoothed.sum(axis=0))
    start = _prior(model, rows)
    return lambda target: place_beliefs(start + target @ logarithms, present, totals[0].shape[1])


def _learn_complement(model: Any, totals: Totals, fractions: Bools) -> Predict:
    present, _, amount = _of_present(totals[0], fractions)
    others = amount.sum(axis=1, keepdims=True) - amount + model.alpha
    logarithms = np.log(others / others.sum(axis=0))
    weights = logarithms / logarithms.sum(axis=0) if model.norm else -logarithms
    return lambda target: place_beliefs(target @ weights, present, totals[0].shape[1])


def _sum_columns(encoded: Encoded, columns: Floats) -> Totals:
    """Return (1 + columns, n): the records of each secret, and sums over them."""
    weight = encoded.counts.astype(np.float64)
    return (np.concatenate([weight.sum(axis=0)[None], columns.T @ weight]),)


def _of_present(total: Floats, fractions: Bools | None = None) -> Any:
    """Return the secrets that are present, their records, and sums[f, present] in the order of the features."""
    present = np.flatnonzero(total[0])
    rows, sums = total[0, present], total[1:, present]
    if fractions is None or not fractions.any():
        return present, rows, sums
    hits, limbs = np.split(sums, [np.count_nonzero(~fractions)])
    amount = np.empty((len(fractions), len(present)))
    amount[~fractions], amount[fractions] = hits, join_limbs(limbs) / 2**FRACTION_BITS
    return present, rows, amount


def _prior(model: Any, rows: Floats) -> Floats:
    if model.fit_prior:
        logarithms: Floats = np.log(rows) - np.log(rows.sum())
        return logarithms
    return np.full(len(rows), -np.log(len(rows)))
