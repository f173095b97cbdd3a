"""Persons with several rows: every figure of an audit against a plain loop that removes a person's rows and sanitises again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dit_dask as dit
from tests.oracles import reference
from tests.oracles.test_predicates import reference_keys
from tests.properties.strategies import People, people

ADVERSARIES: dict[str, Callable[..., list[float]]] = {
    "bernoulli-nb": reference.naive_bayes,
    "conditional-frequency": reference.conditional_frequency,
}


def loop(table: People, persons: Sequence[int], rule: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return (rows,) for each adversary: the distance about a row when all rows of its person are removed."""
    domain = sorted(set(table.secrets))
    full = reference.mondrian(table.records, table.secrets, table.attributes, persons=persons, **rule)
    found = {name: np.zeros(len(persons)) for name in ADVERSARIES}
    for person in set(persons):
        kept = [row for row, whose in enumerate(persons) if whose != person]
        records, secrets = [table.records[row] for row in kept], [table.secrets[row] for row in kept]
        rest = reference.mondrian(records, secrets, table.attributes, persons=[persons[row] for row in kept], **rule)
        for row, whose in enumerate(persons):
            for name, believe in ADVERSARIES.items() if whose == person else ():
                before = believe(full, table.secrets, table.attributes, table.records[row], domain)
                after = believe(rest, secrets, table.attributes, table.records[row], domain)
                found[name][row] = reference.emd(before, after)
    return found


PROPERTIES = st.sampled_from(
    (
        {"t": 0.3},
        {"t": 0.5, "k": 2},
        {"entropy_l": 1.5},
        {"entropy_l": 1.3, "k": 3, "l": 2},
        {"recursive_cl": [4, 2]},
        {"recursive_cl": [9, 2], "t": 0.6},
    )
)


@settings(deadline=None, derandomize=True, database=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(people(most_rows=30, least_rows=14), PROPERTIES, st.data())
def test_every_property_counts_persons(
    tmp_path_factory: pytest.TempPathFactory, table: People, asked: dict[str, Any], data: st.DataObject
) -> None:
    rows = len(table.frame)
    drawn = data.draw(st.lists(st.integers(0, data.draw(st.sampled_from((9, 20)))), min_size=rows, max_size=rows))
    persons = [5, 6, 7, 8, 5, *drawn[5:]]
    result = audit(table, persons, asked, tmp_path_factory.mktemp("persons"))
    keys = reference_keys(asked, tuple(sorted(set(table.secrets))))
    expected = loop(table, persons, {key: value for key, value in keys.items() if value is not None})
    np.testing.assert_allclose(
        result.distances(result.tests[0]["test"])["distance"], np.maximum(*expected.values()), atol=1e-12
    )


def largest(values: np.ndarray, persons: Sequence[int]) -> np.ndarray:
    """Return the largest value of each person."""
    return np.array(
        [max(values[row] for row, whose in enumerate(persons) if whose == person) for person in sorted(set(persons))]
    )


def audit(table: People, persons: Sequence[int], sanitizer: dict[str, Any], folder: Path) -> Any:
    """Audit a table whose rows belong to persons."""
    frame = table.frame.assign(whose=[f"id-{person}" for person in persons])
    described = table.schema_in(folder)["quasi_identifiers"]
    placed = {
        name: {key: str(folder / value) if key == "hierarchy" else value for key, value in one.items()}
        for name, one in described.items()
    }
    schema = {"subject": "whose", "quasi_identifiers": placed, "sensitive": "secret"}
    tests = [{"sanitizer": {"name": "mondrian"} | sanitizer}]
    return dit.audit(frame, schema=schema, tests=tests, output=str(folder / "runs"))


@settings(deadline=None, derandomize=True, database=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(
    people(most_rows=36, least_rows=14),
    st.one_of(st.fixed_dictionaries({"k": st.integers(2, 4)}), st.fixed_dictionaries({"l": st.integers(2, 3)})),
    st.data(),
)
def test_an_audit_is_a_plain_loop_over_persons(
    tmp_path_factory: pytest.TempPathFactory, table: People, rule: dict[str, int], data: st.DataObject
) -> None:
    rows = len(table.frame)
    drawn = data.draw(st.lists(st.integers(0, data.draw(st.sampled_from((9, 20)))), min_size=rows, max_size=rows))
    persons = [5, 6, 7, 8, 5, *drawn[5:]]
    result = audit(table, persons, rule, tmp_path_factory.mktemp("persons"))
    (test,) = result.tests
    expected = loop(table, persons, rule)
    panel = np.maximum(*expected.values())
    distances = result.distances(test["test"])
    np.testing.assert_allclose(distances["distance"], panel, atol=1e-12)
    for name, values in expected.items():
        np.testing.assert_allclose(distances[f"distance.{name}"], values, atol=1e-12)
        assert test["adversaries"][name]["delta"] == pytest.approx(values.max(), abs=1e-12)
        assert test["adversaries"][name]["mean"] == pytest.approx(largest(values, persons).mean(), abs=1e-12)
    over = largest(panel, persons)
    assert (test["records"], test["subjects"]) == (rows, len(set(persons)))
    assert test["mean"] == pytest.approx(over.mean(), abs=1e-12)
    assert test["quantiles"]["0.9"] == pytest.approx(np.quantile(over, 0.9), abs=1e-12)
    assert test["share_over"]["0.1"] == pytest.approx((over > 0.1).mean(), abs=1e-9) or np.abs(over - 0.1).min() < 1e-12
    full = reference.mondrian(table.records, table.secrets, table.attributes, persons=persons, **rule)
    merged: dict[str, set[int]] = {}
    for leaf in reference.leaves(full):
        merged.setdefault(str(leaf.generalised), set()).update(persons[row] for row in leaf.rows)
    assert test["smallest_class"] == min(map(len, merged.values()))
    key = pd.Series(list(zip(table.records, table.secrets, strict=True)))
    whose = pd.Series(persons).groupby(key).nunique()
    assert distances["multiplicity"].tolist() == [whose[one] for one in key]
    assert not any(f"id-{person}" in text for person in persons for text in _texts(Path(result.url)))


def _texts(folder: Path) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def visits() -> tuple[pd.DataFrame, dict[str, Any]]:
    rng = np.random.default_rng(3)
    people_count, rows = 60, 200
    whose = rng.integers(0, people_count, rows)
    age = rng.integers(20, 80, people_count)[whose]
    frame = pd.DataFrame(
        {"patient": whose, "age": age, "ward": rng.choice(list("abcd"), rows), "icd": rng.choice(list("xyz"), rows)}
    )
    schema = {
        "subject": "patient",
        "quasi_identifiers": {"age": {"kind": "numeric"}, "ward": {"kind": "categorical"}},
        "sensitive": "icd",
    }
    return frame, schema


def summary_without_time(result: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "seconds"} for one in result.tests]


def test_results_do_not_depend_on_workers_order_or_labels(visits: tuple[pd.DataFrame, dict[str, Any]], tmp_path: Path) -> None:
    frame, schema = visits
    tests = [{"sanitizer": {"name": "mondrian", "k": 4}}, {"sanitizer": {"name": "raw"}}]
    here = dit.audit(frame, schema=schema, tests=tests, output=str(tmp_path / "here"))
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as client:
        there = dit.audit(frame, schema=schema, tests=tests, output=str(tmp_path / "there"), client=client)
    assert summary_without_time(here) == summary_without_time(there)
    renamed = frame.assign(patient=frame["patient"].map(lambda number: f"P{(number * 37) % 61}"))
    other = dit.audit(renamed, schema=schema, tests=tests, output=str(tmp_path / "renamed"))
    assert summary_without_time(here) == summary_without_time(other)
    order = np.random.default_rng(0).permutation(len(frame))
    shuffled = dit.audit(frame.iloc[order].reset_index(drop=True), schema=schema, tests=tests, output=str(tmp_path / "order"))
    for before, after in zip(here.tests, shuffled.tests, strict=True):
        assert before["delta"] == pytest.approx(after["delta"], abs=1e-12)
        assert before["mean"] == pytest.approx(after["mean"], abs=1e-12)
        moved = shuffled.distances(after["test"])["distance"].to_numpy()
        np.testing.assert_allclose(here.distances(before["test"])["distance"].to_numpy()[order], moved, atol=1e-12)


def test_persons_of_one_row_are_rows_and_run_on_the_exact_engine(
    visits: tuple[pd.DataFrame, dict[str, Any]], tmp_path: Path
) -> None:
    frame, schema = visits
    single = frame.assign(patient=[f"p{row}" for row in range(len(frame))])
    tests = [{"sanitizer": {"name": "mondrian", "k": 4}}]
    with_subject = dit.audit(single, schema=schema, tests=tests, output=str(tmp_path / "a"))
    schema_without = {key: value for key, value in schema.items() if key != "subject"}
    without = dit.audit(single, schema=schema_without, tests=tests, output=str(tmp_path / "b"))
    assert with_subject.tests[0]["engine"] == "exact"
    (found,), (expected,) = summary_without_time(with_subject), summary_without_time(without)
    assert found == expected
