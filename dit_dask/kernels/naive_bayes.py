"""Bernoulli naive Bayes in closed form."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def posterior(
    coverage: NDArray[np.float64], class_counts: NDArray[np.float64], ones: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the (n,) beliefs of BernoulliNB(alpha=1) about a target.

    coverage[f, n]: records of each class whose feature is set; class_counts[n]; ones[f]: the target's features.
    A class without records gets probability 0.
    The operations and their order are those of kernels.exact_coverage.posterior, so that both engines agree to the bit.
    """
    belief = class_counts.copy()
    for covered, is_one in zip(coverage, ones, strict=True):
        hits = covered if is_one else class_counts - covered
        belief *= (hits + 1.0) / (class_counts + 2.0)
        belief /= belief.max()  # no underflow of the largest belief, for any number of features
    return belief / belief.cumsum()[-1]
