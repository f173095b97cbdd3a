"""Bernoulli naive Bayes in closed form."""

import numpy as np
from numpy.typing import NDArray


def posterior(coverage: NDArray[np.float64], class_counts: NDArray[np.float64], ones: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the (n,) beliefs of BernoulliNB(alpha=1) about a target.

    coverage[f, n]: records of each class whose feature is set; class_counts[n]; ones[f]: the target's features.
    A class without records gets probability 0.
    """
    with np.errstate(divide="ignore"):
        prior = np.log(class_counts)
        hits = np.where(ones[:, None], coverage + 1.0, class_counts - coverage + 1.0)
        scores = prior + (np.log(hits) - np.log(class_counts + 2.0)).sum(axis=0)
    weights: NDArray[np.float64] = np.exp(scores - scores.max())
    beliefs: NDArray[np.float64] = weights / weights.sum()
    return beliefs
