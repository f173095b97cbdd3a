"""Classifiers that learn from statistics of a release, against scikit-learn trained on its rows, for every removal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier

from dit_dask.adversaries.classifier import Classifier, training_threads
from dit_dask.adversaries.encoded import FRACTION_BITS, join_limbs, join_products, multiply_limbs, split_fractions
from dit_dask.adversaries.statistics import SUMMARIES, summary_of
from dit_dask.config.registry import Context
from dit_dask.encoders import Encoder
from dit_dask.encoders.by_kind import EncodingByKind, build
from dit_dask.encoders.names import NAMES
from dit_dask.engines.brute_force import influence
from dit_dask.inputs import datasets
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.release import Release
from dit_dask.values.table import Table
from tests.audits import loaded, points
from tests.properties.code_tables import procedures, tables

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
NAIVE_BAYES = [
    BernoulliNB(),
    BernoulliNB(alpha=0.5, binarize=0.3, fit_prior=False),
    CategoricalNB(min_categories=2),
    MultinomialNB(),
    ComplementNB(),
    ComplementNB(alpha=0.1, norm=True),
]
FIXED = [name for name, pair in NAMES.items() if "tf" not in pair and "quantiles-before" not in pair]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")  # of scikit-learn on constant rows
CLOSE = 1e-8  # scikit-learn sums floats, so its means and logarithms have rounding errors of their own


def encoder_for(table: Table, name: str) -> Encoder:
    keys: dict[str, Any] = {"name": name, "quantiles": 3, "cut": "frequency"}
    return build(
        keys, Context(table.schema, table.rows, table.persons, 0, "test", "tests[0]", lambda path, _where: path, table=table)
    )


def train_on_rows(model: Any, release: Release, encoder: Encoder, target: np.ndarray) -> np.ndarray:
    """One sample a secret of each class with its weight, or repeated for classifiers without weights."""
    features, secrets, weights = [], [], []
    for own, counts in zip(encoder.classes(release, target), release.counts, strict=True):
        for secret, count in enumerate(counts.tolist()):
            if count:
                features.append(own)
                secrets.append(secret)
                weights.append(count)
    beliefs = np.zeros(release.counts.shape[1])
    if len(set(secrets)) == 1:
        beliefs[secrets[0]] = 1.0
        return beliefs
    trained = clone(model)
    if isinstance(model, KNeighborsClassifier | LinearDiscriminantAnalysis):
        trained.fit(np.repeat(features, weights, axis=0), np.repeat(secrets, weights))
    else:
        trained.fit(np.array(features), secrets, sample_weight=weights)
    beliefs[trained.classes_] = trained.predict_proba(encoder.target(release, target)[None])[0]
    return beliefs


def classifier(model: Any) -> Classifier:
    weighted = not isinstance(model, KNeighborsClassifier | LinearDiscriminantAnalysis)
    assert summary_of(model, weighted=weighted) is not None
    return Classifier(model, weighted)


def beliefs_or_error(work: Callable[[], np.ndarray]) -> np.ndarray | type[Exception]:
    """What scikit-learn refuses must be refused, too."""
    try:
        return work()
    except (ValueError, IndexError) as error:
        return type(error)


def assert_every_removal_equals_training(model: Any, table: Table, sanitizer: Any, encoder: Encoder, atol: float) -> None:
    """Compare the beliefs about each record and a bystander, with and without it."""
    learner, everyone = classifier(model), np.arange(table.distinct)
    full = sanitizer.release(table, np.random.default_rng(0))
    for record, release in zip(everyone, sanitizer.leave_one_out(table, everyone), strict=True):
        for one, target in ((full, table.codes[record]), (release, table.codes[record]), (release, table.codes[-1])):
            expected = beliefs_or_error(lambda one=one, target=target: train_on_rows(model, one, encoder, target))
            found = beliefs_or_error(lambda one=one, target=target: learner.learn(one, encoder, target)(target))
            if isinstance(expected, type):
                assert found is expected
            else:
                np.testing.assert_allclose(found, expected, atol=atol, rtol=0)


def sanitizer_of(procedure: Any, raw: bool) -> Any:
    return Raw() if raw else procedure.sanitizer


@pytest.mark.parametrize("model", NAIVE_BAYES, ids=repr)
@settings(UNHURRIED, max_examples=15)
@given(table=tables(30), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED))
def test_naive_bayes_of_counts_equals_training(model: Any, table: Table, procedure: Any, raw: bool, name: str) -> None:
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), CLOSE)


@pytest.mark.parametrize("smoothing", [1e-9, 1e-3])
@settings(UNHURRIED, max_examples=30)
@given(table=tables(30), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED))
def test_gaussian_naive_bayes_equals_training(smoothing: float, table: Table, procedure: Any, raw: bool, name: str) -> None:
    model = GaussianNB(var_smoothing=smoothing)
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), CLOSE)


@settings(UNHURRIED, max_examples=60)
@given(table=tables(40), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED))
def test_a_linear_discriminant_equals_training(table: Table, procedure: Any, raw: bool, name: str) -> None:
    model = LinearDiscriminantAnalysis()
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), 1e-7)


@pytest.mark.parametrize(
    "options", [{}, {"p": 1}, {"metric": "chebyshev"}, {"algorithm": "brute"}, {"algorithm": "kd_tree"}], ids=repr
)
@settings(UNHURRIED, max_examples=15)
@given(table=tables(30), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED), count=st.integers(1, 7))
def test_nearest_neighbours_equal_training_to_the_bit(
    options: dict[str, Any], table: Table, procedure: Any, raw: bool, name: str, count: int
) -> None:
    model = KNeighborsClassifier(count, **options)
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), 0.0)
