"""Which scikit-learn classifiers learn the same from patterns, and with which parameters.

A parameter that is not named here must have its default. Everything else is trained on the rows of the release: bootstraps
and shuffles depend on the number and order of rows, `min_samples_*` counts them, and `class_weight: balanced` is computed
from unweighted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.counted_trees import forest_beliefs, tree_beliefs
from dit_dask.adversaries.discriminant import discriminant_beliefs
from dit_dask.adversaries.gaussian_nb import gaussian_beliefs
from dit_dask.adversaries.logistic import logistic_beliefs
from dit_dask.adversaries.neighbours import neighbour_beliefs
from dit_dask.adversaries.parameters import (
    Condition,
    anything,
    has_parameters,
    integer,
    jobs,
    number,
    one_of,
    sklearn_name,
    switch,
)
from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

Learn = Callable[[Any, Patterns], "Floats | None"]


def train_collapsed(model: Any, patterns: Patterns) -> Floats:
    """Return (n,) beliefs of the model trained on the different rows, with summed weights."""
    from sklearn.base import clone

    features, secret, weight = patterns.collapsed()
    trained = clone(model).fit(features, secret, sample_weight=weight)
    beliefs = np.zeros(patterns.counts.shape[1])
    beliefs[trained.classes_] = trained.predict_proba(np.ones((1, patterns.attributes)))[0]
    return beliefs


def _max_features(value: Any) -> bool:
    if isinstance(value, float):
        return 0 < value <= 1
    return value is None or one_of("sqrt", "log2")(value) or integer(1)(value)


@dataclass(frozen=True)
class Shortcut:
    """How a model of this class learns from patterns, if these parameters have such values and all others their defaults."""

    learn: Learn
    parameters: Mapping[str, Condition]


# values that scikit-learn refuses are in none of these: it is left to say so
_NO_EFFECT = {"n_jobs": jobs, "verbose": integer(0)}
_TREE = {"max_features": _max_features, "random_state": integer(0)}
_LIMITS = dict.fromkeys(("max_depth", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "criterion"), anything)
_SMOOTH = {
    "solver": one_of("lbfgs", "newton-cg", "newton-cholesky"),
    "fit_intercept": switch,
    "random_state": lambda value: value is None or integer(0)(value),  # these solvers do not use it
    **_NO_EFFECT,
}
_PATIENT = {"C": number(1e-6, 1e6), "tol": number(1e-300, 1e-4), "max_iter": integer(100)}
_COUNTS = {"alpha": anything, "force_alpha": anything, "fit_prior": anything, "class_prior": anything}
_NEIGHBOURS = {
    "n_neighbors": integer(1),
    "leaf_size": integer(1),
    "algorithm": one_of("auto", "brute", "kd_tree", "ball_tree"),
    "n_jobs": jobs,
}

SHORTCUTS: dict[str, Sequence[Shortcut]] = {
    "DecisionTreeClassifier": (Shortcut(tree_beliefs, _TREE), Shortcut(train_collapsed, _TREE | _LIMITS)),
    "RandomForestClassifier": (Shortcut(forest_beliefs, {"n_estimators": integer(1), **_TREE, **_NO_EFFECT}),),
    "LogisticRegression": (
        Shortcut(logistic_beliefs, _PATIENT | _SMOOTH),
        Shortcut(train_collapsed, {"C": anything, "tol": anything, "max_iter": anything, **_SMOOTH}),
    ),
    "KNeighborsClassifier": (Shortcut(neighbour_beliefs, _NEIGHBOURS),),
    "BernoulliNB": (Shortcut(train_collapsed, {"binarize": anything, **_COUNTS}),),
    "CategoricalNB": (Shortcut(train_collapsed, {"min_categories": anything, **_COUNTS}),),
    "LinearDiscriminantAnalysis": (Shortcut(discriminant_beliefs, {"tol": number(1e-6, 1e-2), "store_covariance": switch}),),
    "GaussianNB": (Shortcut(gaussian_beliefs, {"var_smoothing": number(0, 1e300)}),),
    "ComplementNB": (Shortcut(train_collapsed, {"norm": anything, **_COUNTS}),),
    "MultinomialNB": (Shortcut(train_collapsed, _COUNTS),),
}


def shortcuts_of(model: Any) -> tuple[Learn, ...]:
    """The ways to learn from patterns that hold for a model, the fastest first; a subclass may do anything, so it has none."""
    rows = SHORTCUTS.get(sklearn_name(model), ())
    return tuple(row.learn for row in rows if has_parameters(model, row.parameters))
