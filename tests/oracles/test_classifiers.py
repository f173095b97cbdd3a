"""Classifiers that are counted, collapsed or solved, against scikit-learn trained on the rows of the release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from dit_dask.adversaries.classifier import Classifier, training_threads
from dit_dask.adversaries.counted_trees import forest_beliefs, tree_beliefs
from dit_dask.adversaries.discriminant import discriminant_beliefs
from dit_dask.adversaries.logistic import logistic_beliefs
from dit_dask.adversaries.neighbours import neighbour_beliefs
from dit_dask.adversaries.patterns import Patterns
from dit_dask.adversaries.shortcuts import shortcuts_of
from dit_dask.encoders.tf import TF
from dit_dask.engines.brute_force import influence
from dit_dask.inputs import datasets
from dit_dask.values.release import Ranges, Release
from dit_dask.values.schema import Attribute, Schema, Secret
from tests.audits import loaded, points


def release_of(low: np.ndarray, high: np.ndarray, counts: np.ndarray) -> Release:
    attributes = tuple(Attribute(f"q{number}", "numeric", (0, 1, 2), np.arange(3.0)) for number in range(low.shape[1]))
    secret = Secret("s", tuple(f"s{number}" for number in range(counts.shape[1])))
    ranges = Ranges(low.astype(np.int32), high.astype(np.int32))
    return Release(Schema(attributes, secret), ranges, counts.astype(np.int64))


@st.composite
def releases(draw: st.DrawFn, most_classes: int = 24) -> Release:
    """Classes that often cover the target (1, 1, …), and few or many records in each."""
    classes, attributes, secrets = draw(st.integers(2, most_classes)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = rng.choice([0, 1, 2], (classes, attributes), p=[0.3, 0.4, 0.3])
    high = np.maximum(low, rng.integers(0, 3, (classes, attributes)))
    counts = rng.poisson(draw(st.sampled_from([0.3, 1.0, 5.0])), (classes, secrets))
    counts[counts.sum(axis=1) == 0, 0] = 1
    counts[:2, :2] += np.eye(2, dtype=np.int64)  # two secrets at least
    return release_of(low, high, counts)


def train_on_rows(model: Any, release: Release, weighted: bool) -> np.ndarray:
    """One sample a secret of each class, in the order of the release, weighted or repeated."""
    features, secrets, weights = [], [], []
    for ends, counts in zip(zip(release.published.low, release.published.high, strict=True), release.counts, strict=True):
        for secret, count in enumerate(counts.tolist()):
            for weight in [count] if weighted else [1] * count:
                if weight:
                    features.append([float(low <= 1 <= high) for low, high in zip(*ends, strict=True)])
                    secrets.append(secret)
                    weights.append(float(weight))
    trained = clone(model).fit(features, secrets, **({"sample_weight": weights} if weighted else {}))
    beliefs = np.zeros(release.counts.shape[1])
    beliefs[trained.classes_] = trained.predict_proba(np.ones((1, len(features[0]))))[0]
    return beliefs


def learned(model: Any, release: Release, weighted: bool = True) -> np.ndarray:
    return Classifier(model, weighted).beliefs(release, TF(), np.ones(release.published.low.shape[1], np.int32))


def patterns_of(release: Release) -> Patterns:
    return Patterns.of(release, np.ones(release.published.low.shape[1], np.int32))


@settings(max_examples=150)
@given(releases(), st.integers(0, 5), st.sampled_from([None, "sqrt", 1]))
def test_a_decision_tree_is_equal_to_the_bit(release: Release, seed: int, max_features: object) -> None:
    model = DecisionTreeClassifier(random_state=seed, max_features=max_features)
    assert shortcuts_of(model)[0] is tree_beliefs
    np.testing.assert_array_equal(learned(model, release), train_on_rows(model, release, weighted=True))


@settings(max_examples=60)
@given(releases(), st.sampled_from([{"max_depth": 2}, {"criterion": "entropy"}, {"max_leaf_nodes": 3}, {"ccp_alpha": 0.01}]))
def test_a_limited_tree_is_trained_on_different_rows_and_equal_to_the_bit(release: Release, limits: dict) -> None:
    model = DecisionTreeClassifier(random_state=1, **limits)
    assert len(shortcuts_of(model)) == 1
    np.testing.assert_array_equal(learned(model, release), train_on_rows(model, release, weighted=True))


@settings(max_examples=60)
@given(releases(), st.integers(0, 5), st.sampled_from(["sqrt", None]))
def test_a_random_forest_is_equal_to_the_bit(release: Release, seed: int, max_features: object) -> None:
    model = RandomForestClassifier(7, random_state=seed, max_features=max_features)
    assert shortcuts_of(model)[0] is forest_beliefs
    assert forest_beliefs(model, patterns_of(release)) is not None
    np.testing.assert_array_equal(learned(model, release), train_on_rows(model, release, weighted=True))


@settings(max_examples=60)
@given(releases(), st.integers(1, 6), st.sampled_from(["auto", "brute", "kd_tree", "ball_tree"]))
def test_nearest_neighbours_are_equal_to_the_bit(release: Release, neighbours: int, algorithm: str) -> None:
    if neighbours > release.counts.sum():
        return
    model = KNeighborsClassifier(neighbours, algorithm=algorithm)
    assert shortcuts_of(model)[0] is neighbour_beliefs
    np.testing.assert_array_equal(learned(model, release, weighted=False), train_on_rows(model, release, weighted=False))


@settings(max_examples=40)
@given(releases(), st.sampled_from([BernoulliNB(), MultinomialNB(), CategoricalNB(min_categories=2), ComplementNB(alpha=0.5)]))
def test_naive_bayes_is_the_same_on_different_rows(release: Release, model: Any) -> None:
    assert shortcuts_of(model)
    expected = train_on_rows(model, release, weighted=True)
    np.testing.assert_allclose(learned(model, release), expected, atol=1e-13)  # sums in another order


@settings(max_examples=60)
@given(releases(), st.sampled_from([1e-9, 1e-2, 0.5]))
def test_gaussian_naive_bayes_is_scikit_learns(release: Release, smoothing: float) -> None:
    model = GaussianNB(var_smoothing=smoothing)
    with np.errstate(all="ignore"):
        expected = train_on_rows(model, release, weighted=True)
        mine = learned(model, release)
    # a variance of 1e-9 magnifies the rounding of a mean, 1e-16, in the exponent (1 - mean)² / variance
    np.testing.assert_allclose(mine, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@settings(max_examples=60)
@given(releases(), st.sampled_from([1e-4, 1e-3]))
def test_linear_discriminants_are_scikit_learns(release: Release, tol: float) -> None:
    model = LinearDiscriminantAnalysis(tol=tol)
    assert shortcuts_of(model)[0] is discriminant_beliefs
    mine = discriminant_beliefs(model, patterns_of(release))
    assume(mine is not None)
    np.testing.assert_allclose(mine, train_on_rows(model, release, weighted=False), atol=1e-9)


@pytest.mark.filterwarnings("ignore::scipy.optimize._linesearch.LineSearchWarning")  # newton-cg at the limit of rounding,
@pytest.mark.filterwarnings("ignore:Line Search failed:UserWarning")  # where it stops: 1e-7 holds there, too
@settings(max_examples=60)
@given(releases(), st.booleans(), st.sampled_from([0.01, 1.0, 30.0]))
def test_logistic_regression_is_the_optimum_that_a_patient_solver_approaches(
    release: Release, intercept: bool, c: float
) -> None:
    model = LogisticRegression(C=c, fit_intercept=intercept, random_state=0)
    assert shortcuts_of(model)[0] is logistic_beliefs
    assert logistic_beliefs(model, patterns_of(release)) is not None
    mine = learned(model, release)
    patient = LogisticRegression(C=c, fit_intercept=intercept, solver="newton-cg", tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(mine, train_on_rows(patient, release, weighted=True), atol=1e-7)  # where newton-cg gives up
    assert mine.sum() == pytest.approx(1, abs=1e-14)


def test_a_tree_is_not_counted_where_no_record_has_the_target_pattern_or_rounding_could_stop_it() -> None:
    counted = release_of(np.array([[0], [2]]), np.array([[1], [2]]), np.array([[3, 1], [1, 4]]))
    absent = release_of(np.array([[0], [2]]), np.array([[0], [2]]), np.array([[3, 1], [1, 4]]))
    square = np.array([[0, 0], [0, 2], [2, 0], [2, 2]])
    exclusive_or = release_of(square, np.maximum(square, 1), np.array([[3, 3, 0], [1, 1, 4], [1, 1, 4], [3, 3, 0]]))
    model = DecisionTreeClassifier(random_state=0)
    assert tree_beliefs(model, patterns_of(counted)).tolist() == [0.75, 0.25]
    assert tree_beliefs(model, patterns_of(absent)) is None
    assert tree_beliefs(model, patterns_of(exclusive_or)) is None  # no single feature improves the root
    for release in (counted, absent, exclusive_or):
        np.testing.assert_array_equal(learned(model, release), train_on_rows(model, release, weighted=True))


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(class_weight="balanced"),
        RandomForestClassifier(max_samples=0.5),
        RandomForestClassifier(min_samples_leaf=2),
        DecisionTreeClassifier(min_samples_leaf=2),
        DecisionTreeClassifier(min_weight_fraction_leaf=0.1),
        DecisionTreeClassifier(class_weight="balanced"),
        DecisionTreeClassifier(splitter="random"),
        DecisionTreeClassifier(max_features="banana", random_state=0),
        RandomForestClassifier(0, random_state=0),
        LogisticRegression(class_weight="balanced"),
        LogisticRegression(solver="saga"),
        LogisticRegression(solver="liblinear"),
        KNeighborsClassifier(weights="distance"),
        KNeighborsClassifier(metric="chebyshev"),
        AdaBoostClassifier(),
        BaggingClassifier(),
        ExtraTreesClassifier(),
        GaussianNB(priors=[0.5, 0.5]),
        MLPClassifier(),
        SGDClassifier(loss="log_loss"),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=repr,
)
def test_what_depends_on_the_rows_themselves_is_trained_on_them(model: Any) -> None:
    assert shortcuts_of(model) == ()


class CountingTree(DecisionTreeClassifier):
    """A subclass may do anything, so it is trained; this one counts how often."""

    fits = 0

    def fit(self, *arguments: Any, **options: Any) -> CountingTree:
        CountingTree.fits += 1
        return super().fit(*arguments, **options)


def test_equal_training_rows_are_not_learned_twice() -> None:
    low, high, counts = np.array([[0, 1], [2, 0]]), np.array([[1, 2], [2, 1]]), np.array([[3, 1], [1, 4]])
    classifier = Classifier(CountingTree(random_state=0), True)
    target, fits = np.ones(2, np.int32), []
    for release in (
        release_of(low, high, counts),
        release_of(np.array([[1, 1], [2, 1]]), high, counts),  # publishes other values, which cover the same
        release_of(low, high, counts - [[1, 0], [0, 0]]),
    ):
        CountingTree.fits = 0
        classifier.beliefs(release, TF(), target)
        fits.append(CountingTree.fits)
    assert fits == [1, 0, 1]


class ThreadCounter(ClassifierMixin, BaseEstimator):
    """Believes what its features say, and notes the threads that it may use."""

    seen: tuple[int, ...] = ()

    def fit(self, features: np.ndarray, secrets: np.ndarray) -> ThreadCounter:
        del features
        ThreadCounter.seen += tuple(pool["num_threads"] for pool in threadpool_info())
        self.classes_ = np.unique(secrets)
        return self

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        return np.full((len(features), len(self.classes_)), 1 / len(self.classes_))


SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}
PATHS = (
    "sklearn.tree.DecisionTreeClassifier",
    "sklearn.linear_model.LogisticRegression",
    "sklearn.neighbors.KNeighborsClassifier",
    {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 5}},
)


def test_classifiers_learn_with_one_thread_and_leave_the_limits_as_they_were() -> None:
    rows = loaded(datasets.census(60), SCHEMA)
    before = [pool["num_threads"] for pool in threadpool_info()]
    path = f"{__name__}.ThreadCounter"
    (test,) = points(rows, SCHEMA, [{"sanitizer": {"name": "mondrian", "k": 4}, "adversary": path}])
    ThreadCounter.seen = ()
    influence(rows.table, np.arange(2), test.procedure)
    assert set(ThreadCounter.seen) == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_no_thread_limit_is_set_where_nothing_is_trained() -> None:
    before = [pool["num_threads"] for pool in threadpool_info()]
    with training_threads([object()]):
        assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("sanitizer", ["raw", {"name": "mondrian", "k": 3}])
def test_no_bit_depends_on_which_records_are_tested_together(sanitizer: object) -> None:
    rows = loaded(datasets.census(120), SCHEMA)
    tests = [{"sanitizer": sanitizer, "adversary": list(PATHS)}]
    together = influence(rows.table, np.arange(20), points(rows, SCHEMA, tests)[0].procedure)
    for block in (np.arange(20)[::-1], np.arange(5, 12)):
        apart = influence(rows.table, block, points(rows, SCHEMA, tests)[0].procedure)
        for name, shift in together.shifts.items():
            np.testing.assert_array_equal(apart.shifts[name].distance, shift.distance[block])
