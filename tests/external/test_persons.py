"""External sanitizers where persons have several rows: one call for each person, by function and by releases made elsewhere."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.cli import main
from dit_dask.errors import RunError
from tests.external import sample_sanitizers
from tests.external.people_audit import HERE, SCHEMA, people, python_sanitizer

PERSONS = 20
WHOSE = np.arange(60) % PERSONS * 7 % PERSONS


def table() -> pd.DataFrame:
    return people().drop(columns="name").assign(whose=[f"secret-id-{person}" for person in WHOSE])


def audit(sanitizer: dict[str, Any], frame: pd.DataFrame | None = None, **more: Any) -> Any:
    schema = dict(SCHEMA) | {"subject": "whose"}
    test = {"sanitizer": sanitizer, "adversary": "conditional-frequency"}
    with chdir(HERE):
        return dit.audit(table() if frame is None else frame, schema=schema, tests=[test], **more)


def frequencies(released: pd.DataFrame, target: pd.Series, domain: list[str]) -> np.ndarray:
    """The shares of illnesses among the published rows that cover a target, or among all if none does."""
    covering = released[
        (released["age"] == target["age"]) & (released["town"] == target["town"]) & (released["job"] == target["job"])
    ]
    chosen = covering if len(covering) else released
    return np.array([(chosen["illness"] == value).mean() for value in domain])


def test_all_rows_of_a_person_leave_the_table_in_one_call(tmp_path: Path) -> None:
    log = tmp_path / "calls"
    result = audit(python_sanitizer("logs_calls", params={"log": str(log)}))
    frame = table().drop(columns="whose")
    domain, released = sorted(set(frame["illness"])), sample_sanitizers.decades(frame)
    expected = []
    for row in range(len(frame)):
        rest = sample_sanitizers.decades(frame[WHOSE[row] != WHOSE])
        sides = [frequencies(published, released.iloc[row], domain) for published in (released, rest)]
        expected.append(np.abs(sides[0] - sides[1]).sum())
    np.testing.assert_allclose(result.distances()["distance"], expected, atol=1e-12)
    sizes = log.read_text().split()
    assert sizes.count("57") == PERSONS
    assert set(sizes) == {"57", "60"}
    assert result.tests[0]["subjects"] == PERSONS


def test_releases_made_elsewhere_are_named_by_the_first_row_of_a_person(tmp_path: Path) -> None:
    inputs, releases = tmp_path / "inputs", tmp_path / "releases"
    table().to_csv(tmp_path / "people.csv", index=False)
    sanitizer = {"name": "precomputed", "full": f"{releases}/full.csv", "without": f"{releases}/{{record}}.csv"}
    document = {
        "version": 1,
        "data": {"source": "people.csv"},
        "schema": dict(SCHEMA) | {"subject": "whose"},
        "tests": [{"sanitizer": sanitizer, "adversary": "conditional-frequency"}],
    }
    config = tmp_path / "audit.yaml"
    config.write_text(repr(document).replace("'", '"'))
    assert main(["leave-out", str(config), "--to", str(inputs), "--format", "csv"]) == 0
    first = [int(np.flatnonzero(person == WHOSE)[0]) for person in range(PERSONS)]
    assert sorted(file.stem for file in inputs.glob("*.csv")) == sorted(["full", *map(str, first)])
    for file in inputs.glob("*.csv"):
        written = pd.read_csv(file)
        assert "whose" not in written.columns
        assert len(written) == (60 if file.stem == "full" else 57)
        releases.mkdir(exist_ok=True)
        sample_sanitizers.decades(written).to_csv(releases / file.name, index=False)
    elsewhere, here = audit(sanitizer), audit(python_sanitizer("decades"))
    pd.testing.assert_frame_equal(elsewhere.distances(), here.distances(), check_exact=True)


def test_claims_are_checked_in_persons() -> None:
    frame = pd.concat([table(), table().iloc[[41, 41]]], ignore_index=True)  # three rows of one person, alone in their class
    result = audit(python_sanitizer("decades", claim={"k": 3}), frame, gates=["claims hold"])
    released = sample_sanitizers.decades(frame)
    persons = released.groupby(["age", "town", "job"])["whose"].nunique()
    rows = released.groupby(["age", "town", "job"]).size()
    assert (persons.min(), rows.min()) == (1, 3)
    (test,) = result.tests
    assert test["smallest_class"] == 1
    assert test["claim_holds"] is False
    assert result.verdict.status == "failed"


def test_a_claim_that_cannot_be_counted_in_persons_is_undecided() -> None:
    result = audit(python_sanitizer("overlapping_bands", claim={"k": 2}), gates=["claims hold"])
    (test,) = result.tests
    assert test["claim_holds"] is None
    assert test["smallest_class"] is None
    assert result.verdict.status == "inconclusive"


def test_a_person_that_the_sanitizer_fails_on_is_skipped_with_all_rows() -> None:
    oldest = WHOSE[table()["age"].argmax()]
    result = audit(python_sanitizer("fails_without_the_oldest", on_error="skip", allow_skipped=60, retries=0))
    skipped = result.distances()["distance"].isna().to_numpy()
    assert skipped.tolist() == (oldest == WHOSE).tolist()
    assert (result.tests[0]["skipped"], result.tests[0]["subjects"]) == (3, PERSONS - 1)


@pytest.mark.parametrize("columns", [[], ["whose"]])
def test_a_sanitizer_sees_the_subject_only_if_it_is_named(columns: list[str], tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    audit(python_sanitizer("logs_columns", params={"log": str(seen)}, columns=columns))
    assert ("whose" in seen.read_text()) is bool(columns)


def test_releases_made_without_a_subject_are_refused(tmp_path: Path) -> None:
    """Each lacks one row; with a subject it would have to lack all rows of the person, and would show too little."""
    frame = table().drop(columns="whose")
    sample_sanitizers.decades(frame).to_csv(tmp_path / "full.csv", index=False)
    for row in range(len(frame)):
        sample_sanitizers.decades(frame.drop(index=row)).to_csv(tmp_path / f"{row}.csv", index=False)
    sanitizer = {"name": "precomputed", "full": f"{tmp_path}/full.csv", "without": f"{tmp_path}/{{record}}.csv"}
    with pytest.raises(RunError, match=r"has 59 rows, more than the 57 of the table it is a release of"):
        audit(sanitizer)


def test_persons_are_counted_in_many_classes_of_a_foreign_release() -> None:
    rng = np.random.default_rng(0)
    whose = rng.integers(0, 1000, 4000)
    frame = pd.DataFrame({"age": rng.integers(0, 400, 4000), "town": rng.choice(list("abcd"), 4000)})
    frame = frame.assign(job=rng.choice(list("xyz"), 4000), illness=rng.choice(list("pq"), 4000), whose=whose)
    test = {"sanitizer": python_sanitizer("tens", claim={"k": 2}), "adversary": "conditional-frequency", "records": [0]}
    with chdir(HERE):
        result = dit.audit(frame, schema=dict(SCHEMA) | {"subject": "whose"}, tests=[test], claims="report")
    persons = frame.assign(age=frame["age"] // 10).groupby(["age", "town", "job"])["whose"].nunique()
    assert (result.tests[0]["smallest_class"], result.tests[0]["classes"]) == (persons.min(), len(persons))
    assert result.tests[0]["claim_holds"] is bool(persons.min() >= 2)
