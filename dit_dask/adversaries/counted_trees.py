"""Decision trees and random forests on patterns: the leaf of the target is counted where the tree must be fully grown.

A tree without limits splits every node that holds two secrets and a feature that varies. So the leaf that the target reaches
holds exactly the records with its own pattern, or is pure above that; either way its shares are those of the target's
pattern, whatever the order of splits. One thing could stop scikit-learn earlier: a split is refused if its improvement,
weight(node) / weight(root) · (gini − mean gini of the children), is below −ε = −2⁻⁵² by rounding. Counts and their squares
are exact below 2⁵³, so the rounding error in the brackets is below 3 ε (½ ε in each gini, ½ ε in each of two factors and in
the difference), and no node with at most a third of the weight can be refused. Heavier nodes must have an improvement above
1e-9 for every feature that varies, which is far beyond rounding. Where that or the target's pattern is missing, the tree is
trained.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

MOST_CELLS = 2**22  # patterns × secrets × trees that are counted at once
HEAVY = 0.25  # of the weight; a third is proved to be safe
LEAST_IMPROVEMENT = 1e-9


def tree_beliefs(_model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs of a decision tree without limits, or None where they depend on which splits come first."""
    counts = patterns.target_counts
    if not counts.any() or patterns.counts.shape[1] << patterns.attributes > MOST_CELLS:
        return None
    if not are_fully_grown(_spread(patterns, patterns.counts[None]), patterns.attributes)[0]:
        return None
    shares: Floats = counts / counts.sum()
    return shares


def forest_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs of a random forest: each tree is counted, or trained on the different rows of its bootstrap."""
    tree_count, secrets = model.n_estimators, patterns.counts.shape[1]
    if tree_count * secrets << patterns.attributes > MOST_CELLS:
        return None
    seeds = _tree_seeds(model)
    if seeds is None:
        return None
    samples = _bootstrap_counts(seeds, patterns)
    has_target = samples[:, -1].any(axis=1) & (patterns.distinct[-1] == patterns.target)
    counted = has_target & are_fully_grown(_spread(patterns, samples), patterns.attributes)
    total = np.zeros(secrets)
    for seed, sample, is_counted in zip(seeds, samples, counted, strict=True):  # added up in the order of scikit-learn
        total += sample[-1] / sample[-1].sum() if is_counted else _train_tree(model, seed, patterns, sample)
    total /= tree_count
    return total


def are_fully_grown(dense: Ints, attributes: int) -> Bools:
    """Return (trees,): whether no node above the target's leaf can be refused a split; counts dense[trees, 2^d, n]."""
    nodes = dense.copy()  # nodes[t, S]: the records that have all features of S
    bits = 1 << np.arange(attributes)
    for bit in bits:
        view = nodes.reshape(len(nodes), -1, 2, int(bit), nodes.shape[-1])
        view[:, :, 0] += view[:, :, 1]
    weight = nodes.sum(axis=2)
    at_risk = (weight > HEAVY * weight[:, :1]) & (nodes.max(axis=2) < weight)
    fine = np.ones(len(nodes), bool)
    tree, node = np.nonzero(at_risk)
    for bit in bits:
        free = (node & bit) == 0
        t, s = tree[free], node[free]
        right, whole = nodes[t, s | bit], nodes[t, s]
        gain = _improvement(right.astype(np.float64), (whole - right).astype(np.float64))
        fine[t[gain <= LEAST_IMPROVEMENT]] = False
    return fine


def _improvement(right: Floats, left: Floats) -> Floats:
    """Return (m,): gini of a node minus that of its children; infinite where all records are on one side."""
    r, left_weight = right.sum(axis=1), left.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = ((right / r[:, None] - left / left_weight[:, None]) ** 2).sum(axis=1)
        gain = r * left_weight / (r + left_weight) ** 2 * gap
    return np.where((r > 0) & (left_weight > 0), gain, np.inf)


def _spread(patterns: Patterns, counts: Ints) -> Ints:
    """Return [trees, 2^d, n]: counts[trees, p, n] with a place for every pattern."""
    dense = np.zeros((len(counts), 1 << patterns.attributes, counts.shape[2]), np.int64)
    dense[:, patterns.distinct] = counts
    return dense


def _bootstrap_counts(seeds: tuple[int, ...], patterns: Patterns) -> Ints:
    """Return [trees, p, n]: how often each tree's bootstrap draws each pattern and secret."""
    secrets, size = patterns.counts.shape[1], patterns.counts.size
    cell = np.searchsorted(patterns.distinct, patterns.pattern) * secrets + patterns.secret
    cells = cell[_draw_rows(seeds, patterns.weight)] + size * np.arange(len(seeds))[:, None]
    return np.bincount(cells.ravel(), minlength=size * len(seeds)).reshape(len(seeds), -1, secrets)


def _draw_rows(seeds: tuple[int, ...], weight: Ints) -> Ints:
    """Return [trees, rows]: the rows that each tree draws, in proportion to their weights, as RandomState.choice does.

    A number u in [0, 1) draws the row with the record at floor(u · records); only where u lies so close to a boundary that
    rounding decides, the sums of shares are searched as `choice` searches them.
    """
    rows, records = len(weight), int(weight.sum())
    numbers = _draw_numbers(seeds, 1 << (rows - 1).bit_length())[:, :rows]
    scaled = numbers * records
    drawn = np.repeat(np.arange(rows), weight)[np.minimum(scaled.astype(np.int64), records - 1)]
    close = np.abs(scaled - np.rint(scaled)) <= rows * records * 2.0**-50
    if close.any():
        shares = weight.astype(np.float64)
        shares = shares / np.sum(shares)
        cumulative = shares.cumsum()
        cumulative /= cumulative[-1]
        drawn[close] = np.searchsorted(cumulative, numbers[close], "right")
    return drawn


@lru_cache(maxsize=4)
def _draw_numbers(seeds: tuple[int, ...], count: int) -> Floats:
    """Return [trees, count]: the first numbers of each tree's stream; a bootstrap of fewer rows uses the first of them."""
    return np.array([np.random.RandomState(seed).random_sample(count) for seed in seeds])


@lru_cache(maxsize=16)
def _tree_seeds(model: Any) -> tuple[int, ...] | None:
    """Return the seeds of a forest's trees, or None if this version of scikit-learn draws bootstraps in another way."""
    from sklearn.base import clone

    weight = np.random.default_rng(0).integers(1, 9, 40)
    forest = clone(model).fit(np.zeros((40, 1)), np.arange(40) % 2, sample_weight=weight.astype(np.float64))
    seeds = tuple(tree.random_state for tree in forest.estimators_)
    return seeds if np.array_equal(_draw_rows(seeds, weight), forest.estimators_samples_) else None


def _train_tree(model: Any, seed: int, patterns: Patterns, sample: Ints) -> Floats:
    """Return (n,) beliefs of one tree of a forest."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier

    where, secret = np.nonzero(sample)
    tree = DecisionTreeClassifier(max_features=model.max_features, random_state=seed)
    features = patterns.features(patterns.distinct[where]).astype(np.float32)
    beliefs = np.zeros(sample.shape[1])
    with config_context(skip_parameter_validation=True):  # a forest checks its input once for all trees, too
        tree.fit(features, secret, sample_weight=sample[where, secret].astype(np.float64), check_input=False)
        beliefs[tree.classes_] = tree.predict_proba(np.ones((1, patterns.attributes), np.float32), check_input=False)[0]
    return beliefs
