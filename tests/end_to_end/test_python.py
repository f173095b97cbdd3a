"""`dit.audit` as a notebook uses it."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.inputs import datasets

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
TESTS = [{"sanitizer": {"name": "mondrian", "k": [2, 8]}}]


def test_public_names_are_exactly_those_promised() -> None:
    rates = [f"discrimination_{name}" for name in ("by_value", "interval", "rate")]
    synthetic = ["Accuracy", "Closeness", "accuracy", "closeness", "flatten_events"]
    attacks = ["AttackRisk", "attribute_inference", "linkability", "singling_out"]
    results = ["ControlSummary", "Result", "RunVerdict", "Tuning", "Verdict"]
    errors = ["DitError", "InputError", "RunError"]
    names = [*errors, "Mondrian", "__version__", "audit", "open", "tune", *results, *rates, *synthetic, *attacks]
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
    result = dit.audit(people, schema=SCHEMA, tests=TESTS, gates=["delta <= 2", "mean < 0"])  # nobody can exceed 2
    assert result.summary.index.tolist() == ["mondrian-k2", "mondrian-k8"]
    assert {"delta", "quantiles[0.99]", "share_over[0.01]"} <= set(result.summary.columns)
    assert isinstance(result.verdict, dit.RunVerdict)
    assert [verdict.status for verdict in result.verdict.verdicts] == ["inconclusive"] * 2 + ["failed"] * 2
    assert [control.control for control in result.verdict.controls] == ["raw", "suppressed"]
    assert not result.passed
    assert result.distances(1).equals(result.distances("mondrian-k8"))
    assert result.secrets == tuple(sorted(people["occupation"].unique()))
    assert result.plot()._repr_svg_().startswith("<svg")
    with pytest.raises(dit.InputError, match="did you mean 'mondrian-k8'"):
        result.distances("mondrian-k9")


INDEXES = {
    "texts": lambda rows: pd.Index([f"patient {row * 7 % rows}" for row in range(rows)], name="patient"),
    "labels that repeat": lambda rows: pd.Index([row // 3 for row in range(rows)]),
    "two levels": lambda rows: pd.MultiIndex.from_tuples(
        [(row % 4, f"v{row}") for row in range(rows)], names=["ward", "visit"]
    ),
    "dates": lambda rows: pd.date_range("2020-01-01", periods=rows),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("more", [{}, {"limit": 70}, {"sample": {"rows": 50, "seed": 3}}], ids=["all", "limit", "sample"])
def test_distances_are_indexed_like_the_frame(kind: str, more: dict) -> None:
    """Rows that were dropped, or are outside a limit or a sample, do not shift the labels of the others."""
    people = datasets.census(90)
    people.index = INDEXES[kind](len(people))
    people.iloc[[0, 4, 40], people.columns.get_loc("occupation")] = None
    result = dit.audit(people, schema=SCHEMA, tests=TESTS, **more)
    found = result.distances(1)
    complete = np.flatnonzero(people["occupation"].notna())
    assert set(found["row"]) <= set(complete)
    pd.testing.assert_index_equal(found.index, people.index[found["row"]])
    secrets = np.array(result.secrets)
    sure = people.iloc[found["row"]].set_axis(found.index)  # what the user sees at these labels
    assert sure["occupation"].notna().all()
    assert set(secrets[found["predicted"]]) <= set(sure["occupation"])


def test_the_worst_person_is_found_again_by_label() -> None:
    """A lone person of an own age in an own town, behind rows that are dropped, stands out under her own label."""
    frame = pd.DataFrame({"age": [30, 30, 30, 31, 31, 31] * 6 + [90], "ill": ["a", "b", None] * 12 + ["c"]})
    frame.index = [f"p{row}" for row in range(len(frame))]
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "ill"}
    result = dit.audit(frame, schema=schema, tests=[{"sanitizer": "raw"}])
    assert result.distances()["distance"].idxmax() == "p36"


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


WRONG = {
    "data.missing must be a list of marks, or a mapping from columns to lists; got 'M/A'": {"missing": "M/A"},
    "data.missing.sex must be a list; got 'M/A'": {"missing": {"sex": "M/A"}},
    "gates must be a list; got 'delta <= 1'": {"gates": "delta <= 1"},
    "gates must be a list; got nothing": {"gates": None},
    "tests must be a list; got a mapping": {"tests": {"sanitizer": "raw"}},
    "tests must be a list; got nothing": {"tests": None},
    "tests must be a list; got a value of type DataFrame": {"tests": datasets.census(5)},
    r"tests\[0\] must be a mapping with a sanitizer": {"tests": ["raw"]},
    "measures must be a list; got 'accuracy'": {"measures": "accuracy"},
    "schema must be a mapping; got nothing": {"schema": None},
    "schema must be a mapping; got a value of type DataFrame": {"schema": datasets.census(5)},
    "data must be a DataFrame, a path or a URL; got a value of type Series": {"data": datasets.census(5)["age"]},
    "data must be a DataFrame, a path or a URL; got a mapping": {"data": {"age": [1, 2]}},
    "data must be a DataFrame, a path or a URL; got nothing": {"data": None},
    "client must be a Client of dask.distributed; got 3": {"client": 3},
    "claims: unknown 'no'": {"claims": "no"},
    "controls must be true or false; got 'no'": {"controls": "no"},
    "data.limit must be an integer >= 1; got '3'": {"limit": "3"},
    "data.sample must be a mapping; got 20": {"sample": 20},
    "ordered needs schema.sensitive.order": {
        "tests": [{"sanitizer": "raw", "distance": {"name": "wasserstein", "ground": "ordered"}}]
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_arguments_are_checked_like_a_config(message: str) -> None:
    arguments = {"data": datasets.census(20), "schema": SCHEMA, "tests": TESTS} | WRONG[message]
    with pytest.raises(dit.InputError, match=message) as caught:
        dit.audit(arguments.pop("data"), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sizes", [(np.int64(2), 8), np.array([2, 8])])
def test_tuples_and_numbers_of_numpy_are_as_good_as_those_of_a_config(sizes: Any) -> None:
    tests = ({"sanitizer": {"name": "mondrian", "k": sizes}},)
    result = dit.audit(datasets.census(60), schema=SCHEMA, tests=tests, limit=np.int64(30), claims="report", controls=False)
    assert result.summary["records"].tolist() == [30, 30]
    assert not result.verdict.has_controls


def test_a_test_is_given_by_its_id_or_its_position() -> None:
    result = dit.audit(datasets.census(60), schema=SCHEMA, tests=TESTS, controls=False)
    assert result.distances(-1).equals(result.distances("mondrian-k8"))
    with pytest.raises(dit.InputError, match="test must be an id or a position from 0 to 1; got 3"):
        result.distances(3)
    for wrong in (True, 1.0, None):
        with pytest.raises(dit.InputError, match=f"test: unknown {wrong}"):
            result.distances(wrong)


def test_the_temporary_folder_goes_with_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = dit.audit(datasets.census(60), schema=SCHEMA, tests=TESTS, controls=False)
    assert Path(result.url).is_dir()
    assert len(list(tmp_path.glob("dit-*"))) == 1
    del result
    gc.collect()
    assert not list(tmp_path.glob("dit-*"))
    with pytest.raises(dit.InputError):
        dit.audit(datasets.census(60), schema=SCHEMA, tests=[])
    assert not list(tmp_path.glob("dit-*"))
