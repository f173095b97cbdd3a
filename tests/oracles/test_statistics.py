"""Classifiers that learn from statistics of a release, against scikit-learn trained on its rows, for every removal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
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

from dit_dask.adversaries import classifier as classifier_module
from dit_dask.adversaries.classifier import Classifier, training_threads
from dit_dask.adversaries.encoded import (
    FRACTION_BITS,
    Change,
    Encoded,
    join_limbs,
    join_products,
    multiply_limbs,
    split_fractions,
)
from dit_dask.adversaries.neighbours import find_neighbours
from dit_dask.adversaries.statistics import SUMMARIES, summary_of
from dit_dask.config.registry import Context
from dit_dask.encoders import Encoder
from dit_dask.encoders.by_kind import build
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


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As in a run."""
    with training_threads([Classifier(GaussianNB(), weighted=True)]):
        yield


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")  # of scikit-learn on constant rows
CLOSE = 1e-8  # scikit-learn sums floats, so its means and logarithms have rounding errors of their own
WIDE = 1e-5  # of Gaussian naive Bayes, whose scores reach -1e10 where a smoothed variance of 1e-9 is all there is


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
    learner, everyone = classifier(model), np.arange(table.distinct)[:12]
    full = sanitizer.release(table, np.random.default_rng(0))
    for record, release in zip(everyone, sanitizer.leave_one_out(table, everyone), strict=True):
        # the same model for a target with and without its record, and for another one
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
    close = WIDE if smoothing < CLOSE else CLOSE
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), close)


@settings(UNHURRIED, max_examples=60)
@given(table=tables(40), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED))
def test_a_linear_discriminant_equals_training(table: Table, procedure: Any, raw: bool, name: str) -> None:
    model = LinearDiscriminantAnalysis()
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), 1e-7)


@pytest.mark.parametrize(
    "options", [{}, {"p": 1}, {"metric": "chebyshev"}, {"algorithm": "brute"}, {"algorithm": "kd_tree"}], ids=repr
)
@settings(UNHURRIED, max_examples=10)
@given(table=tables(30), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED), count=st.integers(1, 7))
def test_nearest_neighbours_equal_training_to_the_bit(
    options: dict[str, Any], table: Table, procedure: Any, raw: bool, name: str, count: int
) -> None:
    model = KNeighborsClassifier(count, **options)
    assert_every_removal_equals_training(model, table, sanitizer_of(procedure, raw), encoder_for(table, name), 0.0)


@pytest.mark.parametrize("find", [row.find for row in SUMMARIES.values() if row.find is not find_neighbours])
@settings(UNHURRIED, max_examples=20)
@given(table=tables(40), procedure=procedures(), raw=st.booleans(), name=st.sampled_from(FIXED))
def test_updated_sums_are_new_sums_to_the_bit(find: Any, table: Table, procedure: Any, raw: bool, name: str) -> None:
    sanitizer, encoder, model = sanitizer_of(procedure, raw), encoder_for(table, name), BernoulliNB()
    for release in sanitizer.leave_one_out(table, np.arange(table.distinct)[:8]):
        changes, base = encoder.changes(release), release.difference.base
        if changes is None:
            continue
        fractions = encoder.fractions(base)
        gone = Encoded(changes[0], fractions, base.counts[release.difference.gone])
        new = Encoded(changes[1], fractions, release.counts[release.difference.new])
        whole = Encoded(encoder.classes(base, table.codes[0]), fractions, base.counts)
        updated = find(model, whole).update(model, Change(release.difference.gone, gone, new))
        anew = find(model, Encoded(encoder.classes(release, table.codes[0]), fractions, release.counts))
        for total, expected in zip(updated.totals, anew.totals, strict=True):
            np.testing.assert_array_equal(total, expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_sums_of_limbs_are_sums_of_fractions_and_of_their_squares(values: list[float]) -> None:
    limbs = split_fractions(np.array(values)[:, None])
    rounded = [Fraction(round(Fraction(value) * 2**FRACTION_BITS)) for value in values]
    assert join_limbs(limbs.sum(axis=0)[:, None])[0, 0] == sum(rounded)
    assert join_products(multiply_limbs(limbs).sum(axis=0)[:, None])[0, 0] == sum(value**2 for value in rounded)


def test_a_category_that_disappears_with_a_record_renumbers_the_others() -> None:
    frame = pd.DataFrame({"town": list("aabbcdd"), "age": [1, 2, 3, 4, 5, 6, 7], "secret": list("xyxyxyx")})
    rows = loaded(frame, TOWNS)
    model, raw = BernoulliNB(), Raw()
    for name in ("scaling-hot-after", "scaling-binary"):
        encoder = encoder_for(rows.table, name)
        known = [encoder.changes(one) is not None for one in raw.leave_one_out(rows.table, np.arange(7))]
        assert known == [True, True, True, True, False, True, True]  # only one record has town c
        assert_every_removal_equals_training(model, rows.table, raw, encoder, CLOSE)


TOWNS = {"quasi_identifiers": {"town": {"kind": "categorical"}, "age": {"kind": "numeric"}}, "sensitive": "secret"}
CENSUS = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}
BAYES = "sklearn.naive_bayes."
PATHS = [
    f"{BAYES}GaussianNB",
    f"{BAYES}BernoulliNB",
    {"name": f"{BAYES}CategoricalNB", "params": {"min_categories": 2}},
    f"{BAYES}MultinomialNB",
    f"{BAYES}ComplementNB",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
    "sklearn.neighbors.KNeighborsClassifier",
]


def real_table(title: str, folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Three hundred rows of a real table, with flat hierarchies."""
    if title == "Adult":
        frame = pd.read_csv(folder / "adult.csv", dtype=str, keep_default_na=False)
        numeric, categorical, secret = ["age", "hours-per-week"], ["workclass", "marital-status", "sex"], "occupation"
    else:
        frame = pd.read_csv(folder / "internet_usage.csv", dtype=str, keep_default_na=False)
        frame = frame[frame["age"] != "Not-Say"]
        numeric, categorical, secret = ["age"], ["education_attainment", "marital_status", "race"], "household_income"
    kinds = dict.fromkeys(numeric, "numeric") | dict.fromkeys(categorical, "categorical")
    described = {name: {"kind": kind} for name, kind in kinds.items()}
    return frame[[*kinds, secret]].head(300), {"quasi_identifiers": described, "sensitive": secret}


@pytest.mark.parametrize("encoder", ["scaling-hot", "bounds-binary", "quantiles-after-hot-after", "quantiles-before-hot"])
@pytest.mark.parametrize("sanitizer", ["raw", {"name": "mondrian", "k": 5}], ids=["raw", "mondrian"])
@pytest.mark.parametrize("title", ["Adult", "Internet Usage"])
def test_distances_of_real_records_equal_training(title: str, sanitizer: Any, encoder: str, data_folder: Path) -> None:
    frame, schema = real_table(title, data_folder)
    rows = loaded(frame, schema)
    (test,) = points(rows, schema, [{"sanitizer": sanitizer, "encoder": encoder, "adversary": PATHS}])
    table, everyone = test.rows.table, np.arange(test.rows.table.distinct)[::5]
    found, trainings = influence_and_trainings(table, everyone, test.procedure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier_module, "summary_of", lambda *_args, **_options: None)
        (again,) = points(rows, schema, [{"sanitizer": sanitizer, "encoder": encoder, "adversary": PATHS}])
        expected, all_trainings = influence_and_trainings(table, everyone, again.procedure)
    for name, shift in found.shifts.items():
        close = WIDE if name == "GaussianNB" else 0.0 if name == "KNeighborsClassifier" else CLOSE
        np.testing.assert_allclose(shift.distance, expected.shifts[name].distance, atol=close, rtol=0)
        assert all_trainings[name] == len(everyone) + 1
        # neighbours that are tied are searched, and where no secret has a target's features scores may lose their digits
        assert trainings[name] <= {"KNeighborsClassifier": len(everyone) + 1, "GaussianNB": len(everyone) / 10}.get(name, 0)


def influence_and_trainings(table: Table, records: np.ndarray, procedure: Any) -> tuple[Any, Counter[str]]:
    """Test records, and count how often each classifier was trained."""
    trainings: Counter[str] = Counter()
    train = Classifier.train

    def counting(self: Classifier, *arguments: Any) -> Any:
        trainings[type(self.model).__name__] += 1
        return train(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Classifier, "train", counting)
        return influence(table, records, procedure), trainings


@pytest.mark.parametrize("sanitizer", ["raw", {"name": "mondrian", "k": 3}, {"name": "mondrian", "k": 3, "t": 0.4}], ids=str)
def test_no_bit_depends_on_which_records_are_tested_together(sanitizer: Any) -> None:
    frame, schema = datasets.census(150), CENSUS
    rows = loaded(frame, schema)
    tests = [{"sanitizer": sanitizer, "encoder": "scaling-hot-after", "adversary": PATHS}]
    together = influence(rows.table, np.arange(20), points(rows, schema, tests)[0].procedure)
    for block in (np.arange(20)[::-1], np.arange(5, 12)):
        apart = influence(rows.table, block, points(rows, schema, tests)[0].procedure)
        for name, shift in together.shifts.items():
            np.testing.assert_array_equal(apart.shifts[name].distance, shift.distance[block])
