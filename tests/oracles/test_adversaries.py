"""Adversaries against scikit-learn trained on the published rows, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from dit_dask.audit.test import Test as Point
from dit_dask.engines.brute_force import influence
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.seeds import stream
from dit_dask.values.release import Release
from dit_dask.values.table import Rows
from tests.audits import loaded, points

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}


@pytest.fixture(scope="module")
def rows() -> Rows:
    return loaded(datasets.census(400), SCHEMA)


def point(rows: Rows, adversary: object, sanitizer: object = None, **more: object) -> Point:
    test = {"sanitizer": sanitizer or {"name": "mondrian", "k": 4}, "adversary": adversary, **more}
    return points(rows, SCHEMA, [test], seed=5)[0]


def only(chosen: Point) -> Any:
    """The one adversary of a test."""
    (adversary,) = chosen.procedure.adversaries.values()
    return adversary


def published_rows(release: Release, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every published record on its own, TF-encoded relative to the target."""
    where, secret = np.nonzero(release.counts)
    count = release.counts[where, secret]
    return np.repeat(release.covers(target)[where], count, axis=0).astype(float), np.repeat(secret, count)


def spread(model: object, target: np.ndarray, domain: int) -> np.ndarray:
    beliefs = np.zeros(domain)
    beliefs[model.classes_] = model.predict_proba(np.ones((1, len(target))))[0]
    return beliefs


@pytest.mark.parametrize(
    ("adversary", "model"),
    [
        ("bernoulli-nb", BernoulliNB()),
        ({"name": "sklearn.naive_bayes.BernoulliNB", "params": {}}, BernoulliNB()),
        (
            {"name": "sklearn.tree.DecisionTreeClassifier", "params": {"random_state": 3, "max_depth": 2}},
            DecisionTreeClassifier(random_state=3, max_depth=2),
        ),
        (
            {"name": "sklearn.linear_model.LogisticRegression", "params": {"tol": 1e-9, "max_iter": 5000}},
            LogisticRegression(tol=1e-9, max_iter=5000),
        ),
        ({"name": "sklearn.neighbors.KNeighborsClassifier", "params": {"n_neighbors": 9}}, KNeighborsClassifier(9)),
    ],
    ids=["closed-form", "by-path", "tree", "logistic", "neighbours-without-weights"],
)
def test_beliefs_are_those_of_the_model_trained_on_rows(rows: Rows, adversary: object, model: object) -> None:
    chosen = point(rows, adversary)
    tolerance = 1e-6 if isinstance(model, LogisticRegression) else 1e-12  # an iterative solver stops where it stops
    for record in range(0, rows.table.distinct, 40):
        release = chosen.procedure.sanitizer.release(rows.table.without(record), stream(0))
        target = rows.table.codes[record]
        mine = only(chosen).beliefs(release, chosen.procedure.encoder, target)
        model.fit(*published_rows(release, target))
        np.testing.assert_allclose(mine, spread(model, target, len(mine)), atol=tolerance)
        assert mine.sum() == pytest.approx(1)


def test_a_class_that_only_the_removed_record_had_gets_probability_0() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "education": list("aabb"), "sex": list("mfmf"), "occupation": list("xxyz")})
    rows = loaded(frame, SCHEMA)
    for adversary in ("bernoulli-nb", "conditional-frequency", {"name": "sklearn.tree.DecisionTreeClassifier"}):
        chosen = point(rows, adversary, {"name": "mondrian", "k": 2})
        record = int(rows.index[2])  # the only y
        release = chosen.procedure.sanitizer.release(rows.table.without(record), stream(0))
        beliefs = only(chosen).beliefs(release, chosen.procedure.encoder, rows.table.codes[record])
        assert beliefs[1] == 0
        assert beliefs.sum() == pytest.approx(1)


def test_one_class_left_is_certain() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "education": list("aab"), "sex": list("mfm"), "occupation": list("xxy")})
    rows = loaded(frame, SCHEMA)
    chosen = point(rows, {"name": "sklearn.linear_model.LogisticRegression"}, {"name": "mondrian", "k": 2})
    result = influence(rows.table, rows.index[2:], chosen.procedure)
    assert (result.predicted_without == 0).all()


def test_an_unset_random_state_comes_from_the_seed_and_the_test(rows: Rows) -> None:
    path = "sklearn.ensemble.RandomForestClassifier"
    one, same, other = (only(point(rows, {"name": path, "params": {"n_estimators": number}})).model for number in (3, 3, 4))
    assert one.random_state == same.random_state != other.random_state
    assert only(point(rows, {"name": path, "params": {"random_state": 9}})).model.random_state == 9


def test_what_a_model_complains_of_is_noted_not_printed(rows: Rows) -> None:
    chosen = point(rows, {"name": "sklearn.linear_model.LogisticRegression", "params": {"max_iter": 1}})
    assert influence(rows.table, np.arange(2), chosen.procedure).notes == ("ConvergenceWarning",)


@pytest.mark.parametrize(
    ("adversary", "message"),
    [
        ("sklearn.tree.NoSuchTree", "cannot import"),
        ("no.such.module.Model", "cannot import"),
        ("sklearn.linear_model.Lasso", "must have fit and predict_proba"),
        ("sklearn.base.clone", "must be the import path of a class"),
        ({"name": "sklearn.tree.DecisionTreeClassifier", "params": {"max_dept": 2}}, "did you mean 'max_depth'?"),
        ("bayes", "did you mean"),
    ],
)
def test_a_wrong_adversary_is_explained(rows: Rows, adversary: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        point(rows, adversary)
    assert message in str(caught.value)


def test_null_parameters_are_values_of_their_own(rows: Rows) -> None:
    path = "sklearn.ensemble.RandomForestClassifier"
    default, null = (point(rows, {"name": path, "params": params}) for params in ({}, {"max_features": None}))
    assert default.id != null.id
    assert only(null).model.max_features is None
    unset = point(rows, {"name": path, "params": {"random_state": None}})
    assert only(unset).model.random_state is not None


def test_beliefs_that_are_no_numbers_stop_the_test(rows: Rows) -> None:
    chosen = point(
        rows, {"name": "sklearn.naive_bayes.GaussianNB", "params": {"var_smoothing": 0.0}}, {"name": "mondrian", "k": 400}
    )
    with pytest.raises(InputError, match="beliefs that are not numbers"):
        influence(rows.table, np.arange(1), chosen.procedure)


def test_a_class_is_not_called_before_it_is_known_to_be_a_classifier(rows: Rows, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must have fit and predict_proba"):
        point(rows, {"name": "subprocess.Popen", "params": {"args": ["touch", str(tmp_path / "called")]}})
    assert not (tmp_path / "called").exists()
