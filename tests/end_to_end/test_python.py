"""`dit.audit` as a notebook uses it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.inputs import datasets

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
TESTS = [{"sanitizer": {"name": "mondrian", "k": [2, 8]}}]


def test_public_names_are_exactly_those_promised() -> None:
    rates = [f"discrimination_{name}" for name in ("by_value", "interval", "rate")]
    synthetic = ["Accuracy", "Closeness", "accuracy", "closeness", "flatten_events"]
    names = ["DitError", "InputError", "Result", "RunError", "__version__", "audit", *rates, *synthetic]
    assert sorted(dit.__all__) == sorted(names)
    assert all(getattr(dit, name) is not None for name in dit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'audti'"):
        dit.audti  # noqa: B018


def test_a_frame_and_its_file_give_the_same_distances(tmp_path: Path) -> None:
    people = datasets.census(150)
    people.to_csv(tmp_path / "people.csv", index=False)
    by_frame = dit.audit(people, schema=SCHEMA, tests=TESTS)
    by_path = dit.audit(str(tmp_path / "people.csv"), schema=SCHEMA, tests=TESTS, output=str(tmp_path / "runs"))
    for test in ("mondrian-k2", "mondrian-k8"):
        pd.testing.assert_frame_equal(by_frame.distances(test), by_path.distances(test), check_exact=True)
    assert Path(by_path.url).parent == tmp_path / "runs"


def test_the_result_is_tidy() -> None:
    people = datasets.census(150)
    result = dit.audit(people, schema=SCHEMA, tests=TESTS, gates=["delta <= 2", "mean < 0"])
    assert result.summary.index.tolist() == ["mondrian-k2", "mondrian-k8"]
    assert {"delta", "quantiles[0.99]", "share_over[0.01]"} <= set(result.summary.columns)
    assert [verdict.passed for verdict in result.verdicts] == [True, True, False, False]
    assert not result.passed
    assert result.distances(1).equals(result.distances("mondrian-k8"))
    assert result.secrets == tuple(sorted(people["occupation"].unique()))
    assert result.plot()._repr_svg_().startswith("<svg")
    with pytest.raises(dit.InputError, match="did you mean 'mondrian-k8'"):
        result.distances("mondrian-k9")


def test_the_frame_is_not_changed() -> None:
    people = datasets.census(60)
    before = people.copy()
    dit.audit(people, schema=SCHEMA, tests=TESTS)
    pd.testing.assert_frame_equal(people, before)


def test_wrong_input_raises_the_same_clear_line() -> None:
    with pytest.raises(dit.InputError, match=r"tests\[0\].sanitizer.k must be an integer >= 2; got 1"):
        dit.audit(datasets.census(20), schema=SCHEMA, tests=[{"sanitizer": {"name": "mondrian", "k": 1}}])


def test_an_adversary_that_needs_many_records_is_not_run_on_a_few() -> None:
    test = {"sanitizer": "raw", "adversary": {"name": "sklearn.neighbors.KNeighborsClassifier", "params": {"n_neighbors": 60}}}
    result = dit.audit(datasets.census(150), schema=SCHEMA, tests=[{**test, "records": [0, 1]}])
    assert result.summary["records"].tolist() == [2]
