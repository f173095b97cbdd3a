"""Explanations against audits of tables that were changed with pandas, and against the worked example by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from tests.audits import WORKED, WORKED_SCHEMA


def patients(rows: int = 240) -> pd.DataFrame:
    """People of a clinic; both ends of the ages belong to several, so that nobody alone decides the domain."""
    rng = np.random.default_rng(5)
    ages = np.concatenate([[20, 20, 20, 79, 79, 79], rng.integers(20, 80, rows - 6)])
    return pd.DataFrame(
        {
            "age": ages,
            "postcode": rng.choice(["1010", "1011", "1020", "1100", "1101", "2010", "2011"], rows),
            "ward": rng.choice(["surgery", "internal", "neuro"], rows),
            "diagnosis": rng.choice(["flu", "stroke", "fracture", "hernia"], rows, p=[0.5, 0.3, 0.1, 0.1]),
        }
    )


def schema(**changes: object) -> dict[str, object]:
    attributes: dict[str, object] = {
        "age": {"kind": "numeric"},
        "postcode": {"kind": "categorical", "hierarchy": {"prefix": [3, 2]}},
        "ward": {"kind": "categorical"},
    }
    kept = {name: described for name, described in (attributes | changes).items() if described is not None}
    return {"quasi_identifiers": kept, "sensitive": "diagnosis"}


TESTS = [{"sanitizer": {"name": "mondrian", "k": 4}}]


def audit(frame: pd.DataFrame, **changes: object) -> dit.Result:
    return dit.audit(frame, schema=schema(**changes), tests=TESTS, controls=False)


@pytest.fixture(scope="module")
def worst() -> pd.DataFrame:
    return audit(patients()).worst(6)


def test_the_worked_example_is_explained_as_by_hand() -> None:
    tests = [{"sanitizer": {"name": "mondrian", "k": 2}, "adversary": "conditional-frequency"}]
    found = dit.audit(WORKED, schema=WORKED_SCHEMA, tests=tests, controls=False).worst(5)
    assert found["record"].tolist() == [0, 1, 2, 3, 4]
    assert found["distance"].tolist() == pytest.approx([1, 1, 2 / 3, 1 / 3, 1 / 3])
    first = found.iloc[0]  # with it {28, 36} is a class, without it {36, 47}, where its path ends
    assert (first["class_rows"], first["class_values"]) == (2, 1)
    assert (first["class_rows_without"], first["class_values_without"]) == (2, 2)
    assert (first["split_level"], first["split_attribute"], first["split_change"]) == (1, "age", "other cut")
    assert (first["belief"], first["belief_without"], first["gain"]) == (1.0, 0.5, 0.5)
    assert first["delta_without"] == 1.0  # of 36, 47, 53 and 72: without 47 all others have flu
    assert found.iloc[2]["gain"] == pytest.approx(1 / 3)  # the only case of cancer: one of three with it, none without


def test_the_worst_are_those_with_the_largest_distances() -> None:
    result = audit(patients())
    stored = result.distances().sort_values(["distance", "record"], ascending=[False, True])
    found = result.worst(12)
    assert found["record"].tolist() == stored["record"].head(12).tolist()
    assert np.allclose(found["distance"], stored["distance"].head(12), rtol=1e-12, atol=0)
    assert found["delta"].eq(stored["distance"].max()).all()


def test_leaving_a_person_out_gives_the_delta_of_the_table_without_them(worst: pd.DataFrame) -> None:
    for record, rest in zip(worst["record"], worst["delta_without"], strict=True):
        assert rest == audit(patients().drop(index=record)).tests[0]["delta"]


def _pairs(ages: pd.Series) -> pd.Series:
    """Put each two neighbouring distinct ages in place of their middle."""
    ordered = sorted(ages.unique())
    middles = {}
    for place in range(0, len(ordered), 2):
        both = ordered[place : place + 2]
        middles |= dict.fromkeys(both, sum(both) / len(both))
    return ages.map(middles)


def test_a_coarser_attribute_leaves_the_distance_that_a_coarser_table_has() -> None:
    frame = patients()
    result = audit(frame)
    found = result.worst(6)
    cut = frame.assign(postcode=frame["postcode"].str[:3])
    coarser = {
        "age": audit(frame.assign(age=_pairs(frame["age"]))),
        "postcode": audit(cut, postcode={"kind": "categorical", "hierarchy": {"prefix": [2]}}),
        "ward": audit(frame.drop(columns="ward"), ward=None),  # it has no level between a value and nothing
    }
    left = pd.DataFrame({name: one.distances()["distance"] for name, one in coarser.items()})
    for _, row in found.iterrows():
        distances = left.loc[row["record"]]
        assert row["distance_if_coarser"] == pytest.approx(distances.min(), rel=1e-12)
        assert distances[row["helps_most"]] == pytest.approx(distances.min(), rel=1e-12)


def test_persons_are_explained_with_all_their_rows() -> None:
    frame = patients(120)
    frame["patient"] = np.arange(120) // 2  # two rows each
    described = schema() | {"subject": "patient"}
    result = dit.audit(frame, schema=described, tests=TESTS, controls=False)
    distances = result.distances()["distance"]
    by_person = distances.groupby(frame["patient"]).max().sort_values(ascending=False)
    found = result.worst(5)
    assert np.allclose(found["distance"], by_person.head(5), rtol=1e-12, atol=0)
    assert found["rows"].eq(2).all()
    assert found["class_persons"].le(found["class_rows"]).all()
    assert frame["patient"].iloc[found["record"]].is_unique
    for record, rest in zip(found["record"].head(2), found["delta_without"], strict=False):
        others = frame[frame["patient"] != frame["patient"].iloc[record]]
        assert rest == dit.audit(others, schema=described, tests=TESTS, controls=False).tests[0]["delta"]


def test_noisy_counts_are_explained_by_the_rows_with_the_same_values() -> None:
    frame = patients()
    tests = [{"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": [20, 50, 79]}}}]
    found = dit.audit(frame, schema=schema(), tests=tests, controls=False).worst(3)
    old = frame["age"] > 50
    for _, row in found.iterrows():
        own = frame.loc[row["record"]]
        same = (old == (own["age"] > 50)) & (frame["postcode"] == own["postcode"]) & (frame["ward"] == own["ward"])
        assert row["class_rows"] == same.sum()
        assert row["class_rows_without"] == same.sum() - 1
        assert row["class_values"] == frame.loc[same, "diagnosis"].nunique()


def test_values_are_shown_only_if_asked_for() -> None:
    frame = patients()
    result = audit(frame)
    assert not [name for name in result.worst(2).columns if name.startswith("value.")]
    shown = result.worst(2, show_values=True)
    assert shown["value.age"].astype(int).tolist() == frame["age"].loc[shown["record"]].tolist()


def test_what_cannot_be_explained_is_refused() -> None:
    tests = [{"sanitizer": {"name": "geometric", "epsilon": 1}, "samples": 10}]
    result = dit.audit(patients(40), schema=schema(), tests=tests, controls=False)
    with pytest.raises(dit.InputError, match="draw nothing at random"):
        result.worst(1)
    with pytest.raises(dit.InputError, match="top must be an integer >= 1; got 0"):
        result.worst(0)


def test_of_several_classes_the_narrowest_is_the_persons_own() -> None:
    frame = pd.DataFrame({"town": ["a"] * 6 + ["b"] * 8 + ["c", "d", "e", "f"], "illness": ["x", "y", "z"] * 6})
    described: dict[str, object] = {"quasi_identifiers": {"town": {"kind": "categorical"}}, "sensitive": "illness"}
    tests = [{"sanitizer": {"name": "full-domain", "k": 4, "suppression": 0.5}, "adversary": "narrowest-class"}]
    found = dit.audit(frame, schema=described, tests=tests, controls=False).worst(18).set_index("record")
    assert found.sort_index()["class_rows"].tolist() == [6] * 6 + [8] * 8 + [4] * 4
    assert found["class_persons"].equals(found["class_rows"])
    assert found.sort_index()["class_covering"].tolist() == [2] * 14 + [1] * 4
    assert found["class_rows_without"][6] == 7
