"""Linear discriminant analysis from counts, as scikit-learn solves it from rows: on patterns, and on encoded classes."""

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
    to_integers,
)
from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats

CERTAIN = 100.0  # a direction whose size is not so many times above or below a tolerance is left to scikit-learn
SMALLEST_SHARE = 1e-6  # of the variance of a feature that is inside the secrets; below it differences lose too many digits


def discriminant_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs of the solver svd, or None where rounding could decide which directions count."""
    present = np.flatnonzero(patterns.counts.any(axis=0))
    counts = patterns.counts[:, present].astype(np.float64)
    rows, total = counts.sum(axis=0), float(counts.sum())
    features = patterns.features(patterns.distinct)
    means = counts.T @ features / rows[:, None]
    within = np.zeros((patterns.attributes, patterns.attributes))
    for mean, weight in zip(means, counts.T, strict=True):
        apart = features - mean
        within += (apart * weight[:, None]).T @ apart / total
    score = _solve(rows, means, within, model.tol)
    return None if score is None else place_beliefs(score(np.ones(patterns.attributes)), present, patterns.counts.shape[1])


def _solve(rows: Floats, means: Floats, within: Floats, tol: float) -> Any:
    """Return what gives scores[n] of a target's features, from the records of each secret, their means and their covariance.

    The singular values of centred rows are the roots of the eigenvalues of their covariance, which follows from counts.
    """
    if len(rows) < 2 or rows.sum() == len(rows):
        return None
    priors = rows / rows.sum()
    centre = priors @ means
    scale = np.sqrt(np.diag(within))
    scale[scale == 0] = 1.0
    squares, vectors = np.linalg.eigh(within / np.outer(scale, scale))
    sizes = np.sqrt(np.maximum(squares, 0.0))
    kept = _above(sizes, tol)
    if kept is None or not kept.any():  # scikit-learn refuses rows that do not vary inside a class
        return None
    scalings = vectors[:, kept] / scale[:, None] / sizes[kept]
    between = np.sqrt(rows / (len(rows) - 1))[:, None] * (means - centre) @ scalings
    _, spread, turns = np.linalg.svd(between, full_matrices=False)
    kept = _above(spread, tol * spread[0])
    if kept is None:
        return None
    directions = scalings @ turns[kept].T
    places = (means - centre) @ directions
    start = np.log(priors) - 0.5 * (places**2).sum(axis=1)
    return lambda target: start + places @ ((target - centre) @ directions)


def _above(sizes: Floats, tolerance: float) -> Bools | None:
    """Return which sizes are above a tolerance; None if one is near it."""
    near = (sizes > tolerance / CERTAIN) & (sizes < tolerance * CERTAIN)
    return None if near.any() or tolerance <= 0 else sizes > tolerance


def discriminant_sums(model: Any, encoded: Encoded) -> Sums:
    """Sum the features of the records of each secret, and the products of any two features."""
    return Sums(_sum_products, _learn, encoded.fractions, _sum_products(model, encoded))


def _sum_products(_model: Any, encoded: Encoded) -> Totals:
    limbs = split_fractions(encoded.features[:, encoded.fractions])
    columns = np.concatenate([encoded.features[:, ~encoded.fractions], limbs], axis=1)
    weight = encoded.counts.astype(np.float64)
    return weight.sum(axis=0), columns.T @ weight, (columns * weight.sum(axis=1)[:, None]).T @ columns


def _learn(model: Any, totals: Totals, fractions: Bools) -> Predict | None:
    present = np.flatnonzero(totals[0])
    rows, count = totals[0][present], int(np.count_nonzero(~fractions))
    shift, sums, products = _centre(rows, totals[1][:, present], totals[2], count)
    everyone = products.diagonal() - sums.sum(axis=1) ** 2 / rows.sum()
    within = products - (sums / rows) @ sums.T
    hits = np.abs(sums[:count])
    np.fill_diagonal(within[:count, :count], (hits * (rows - hits) / rows).sum(axis=1))  # 0 if it is constant in each secret
    constant = within.diagonal() == 0
    constant[count:] = everyone[count:] == 0
    uncertain = ~constant & (within.diagonal() < SMALLEST_SHARE * everyone)
    if uncertain.any() or (constant[count:] & (shift[count:] > 0) & (shift[count:] < 1)).any():
        return None  # scikit-learn may take rounding for variance
    within[constant] = within[:, constant] = 0.0
    score = _solve(rows, (sums / rows).T, within / rows.sum(), model.tol)
    if score is None:
        return None
    order = np.argsort(fractions, kind="stable")
    return lambda target: place_beliefs(score(target[order] - shift), present, len(totals[0]))


def _centre(rows: Floats, sums: Floats, products: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Return shift[f], and sums[f, n] and products[f, f] of features minus it, exact before they are rounded once.

    The first `count` features are 0 or 1 and shifted by the more frequent of both; fractions by their mean, up to its last bit.
    """
    total = int(rows.sum())
    hits, shared = sums[:count].sum(axis=1), products[:count, :count]
    frequent = (hits > total / 2).astype(np.float64)
    first = sums[:count] - np.outer(frequent, rows)
    second = shared - np.outer(frequent, hits) - np.outer(hits, frequent) + total * np.outer(frequent, frequent)
    if count == len(sums):
        return frequent, first, second
    number, mixed = join_limbs(sums[count:]), join_limbs(products[count:, :count])
    own = join_limbs(join_limbs(products[count:, count:]).T)
    everyone = number.sum(axis=1)
    mean = everyone // total
    whole, is_frequent = to_integers(hits), to_integers(frequent)
    mixed = mixed - np.outer(mean, whole) - np.outer(everyone, is_frequent) + total * np.outer(mean, is_frequent)
    own = own - np.outer(mean, everyone) - np.outer(everyone, mean) + total * np.outer(mean, mean)
    number = number - np.outer(mean, to_integers(rows))
    one = 2**FRACTION_BITS
    across = (mixed / one).astype(np.float64)
    shift = np.append(frequent, (mean / one).astype(np.float64))
    centred = np.concatenate([first, (number / one).astype(np.float64)])
    return shift, centred, np.block([[second, across.T], [across, (own / one**2).astype(np.float64)]])
