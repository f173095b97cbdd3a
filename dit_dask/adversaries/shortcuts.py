"""Which scikit-learn classifiers learn the same from patterns, and with which parameters.

A parameter that is not named here must have its default. Everything else is trained on the rows of the release: bootstraps
and shuffles depend on the number and order of rows, `min_samples_*` counts them, and `class_weight: balanced` is computed
from unweighted rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.counted_trees import forest_beliefs, tree_beliefs
from dit_dask.adversaries.discriminant import discriminant_beliefs
from dit_dask.adversaries.gaussian_nb import gaussian_beliefs
from dit_dask.adversaries.logistic import logistic_beliefs
from dit_dask.adversaries.neighbours import neighbour_beliefs
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


Condition = Callable[[Any], bool]


def _any(_value: Any) -> bool:
    return True


def _one_of(*values: Any) -> Condition:
    return lambda value: isinstance(value, str) and value in values


def _integer(least: int) -> Condition:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _number(least: float, most: float) -> Condition:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def _max_features(value: Any) -> bool:
    if isinstance(value, float):
        return 0 < value <= 1
    return value is None or _one_of("sqrt", "log2")(value) or _integer(1)(value)


def _jobs(value: Any) -> bool:
    return value is None or (isinstance(value, int) and value != 0)


@dataclass(frozen=True)
class Shortcut:
    """How a model of this class learns from patterns, if these parameters have such values and all others their defaults."""

    learn: Learn
    parameters: Mapping[str, Condition]

    def applies(self, model: Any) -> bool:
        """Whether the model has such parameters."""
        defaults = {name: entry.default for name, entry in inspect.signature(type(model)).parameters.items()}
        for name, value in model.get_params(deep=False).items():
            if not (self.parameters[name](value) if name in self.parameters else _is_default(value, defaults[name])):
                return False
        return True


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, bool | int | float | str) and value == default)


# values that scikit-learn refuses are in none of these: it is left to say so
_NO_EFFECT = {"n_jobs": _jobs, "verbose": _integer(0)}
_TREE = {"max_features": _max_features, "random_state": _integer(0)}
_LIMITS = {"max_depth": _any, "max_leaf_nodes": _any, "min_impurity_decrease": _any, "ccp_alpha": _any, "criterion": _any}
_SMOOTH = {
    "solver": _one_of("lbfgs", "newton-cg", "newton-cholesky"),
    "fit_intercept": _switch,
    "random_state": lambda value: value is None or _integer(0)(value),  # these solvers do not use it
    **_NO_EFFECT,
}
_PATIENT = {"C": _number(1e-6, 1e6), "tol": _number(1e-300, 1e-4), "max_iter": _integer(100)}
_COUNTS = {"alpha": _any, "force_alpha": _any, "fit_prior": _any, "class_prior": _any}
_NEIGHBOURS = {
    "n_neighbors": _integer(1),
    "leaf_size": _integer(1),
    "algorithm": _one_of("auto", "brute", "kd_tree", "ball_tree"),
    "n_jobs": _jobs,
}

SHORTCUTS: dict[str, Sequence[Shortcut]] = {
    "DecisionTreeClassifier": (Shortcut(tree_beliefs, _TREE), Shortcut(train_collapsed, _TREE | _LIMITS)),
    "RandomForestClassifier": (Shortcut(forest_beliefs, {"n_estimators": _integer(1), **_TREE, **_NO_EFFECT}),),
    "LogisticRegression": (
        Shortcut(logistic_beliefs, _PATIENT | _SMOOTH),
        Shortcut(train_collapsed, {"C": _any, "tol": _any, "max_iter": _any, **_SMOOTH}),
    ),
    "KNeighborsClassifier": (Shortcut(neighbour_beliefs, _NEIGHBOURS),),
    "BernoulliNB": (Shortcut(train_collapsed, {"binarize": _any, **_COUNTS}),),
    "CategoricalNB": (Shortcut(train_collapsed, {"min_categories": _any, **_COUNTS}),),
    "LinearDiscriminantAnalysis": (Shortcut(discriminant_beliefs, {"tol": _number(1e-6, 1e-2), "store_covariance": _switch}),),
    "GaussianNB": (Shortcut(gaussian_beliefs, {"var_smoothing": _number(0, 1e300)}),),
    "ComplementNB": (Shortcut(train_collapsed, {"norm": _any, **_COUNTS}),),
    "MultinomialNB": (Shortcut(train_collapsed, _COUNTS),),
}


def shortcuts_of(model: Any) -> tuple[Learn, ...]:
    """The ways to learn from patterns that hold for a model, the fastest first; a subclass may do anything, so it has none."""
    if not type(model).__module__.startswith("sklearn."):
        return ()
    return tuple(one.learn for one in SHORTCUTS.get(type(model).__name__, ()) if one.applies(model))
