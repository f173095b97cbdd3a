"""`schema.subject` as users meet it: wrong input, resumed runs, samples of persons, a person who fills a class alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.audit import plan
from dit_dask.errors import InputError

SCHEMA: dict[str, Any] = {
    "subject": "patient",
    "quasi_identifiers": {"age": {"kind": "numeric"}, "ward": {"kind": "categorical"}},
    "sensitive": "icd",
}
TESTS = [{"sanitizer": {"name": "mondrian", "k": 4}}]


def visits(rows: int = 240, persons: int = 80) -> pd.DataFrame:
    """Rows whose persons are spread over the whole table."""
    rng = np.random.default_rng(5)
    whose = np.concatenate([np.arange(persons), rng.integers(0, persons, rows - persons)])
    frame = pd.DataFrame({"patient": whose, "age": rng.integers(20, 80, persons)[whose]})
    return frame.assign(ward=rng.choice(list("abcd"), rows), icd=rng.choice(list("xyz"), rows))


@pytest.mark.parametrize(
    ("schema", "change", "message"),
    [
        ({"subject": "age"}, {}, "schema.subject 'age' is also among the quasi_identifiers"),
        ({"subject": "icd"}, {}, "schema.subject 'icd' is also the sensitive attribute"),
        ({"subject": "patients"}, {}, "'patients'"),
        ({"subject": 3}, {}, "schema.subject must be"),
        (
            {},
            {"patient": lambda column: column.astype(float).where(column != 7)},
            r"it is missing in \d+ rows, first in used row 7",
        ),
        ({}, {"patient": lambda column: column * 0}, "at least 2 persons are needed to remove one; all rows have the same"),
        ({}, {"patient": lambda column: column % 3}, r"sanitizer.k must be at most the table's 3 persons; got 4"),
    ],
)
def test_a_subject_that_cannot_be_is_refused_in_one_line(schema: dict[str, Any], change: dict[str, Any], message: str) -> None:
    frame = visits()
    for name, changed in change.items():
        frame[name] = changed(frame[name])
    with pytest.raises(InputError, match=message) as caught:
        dit.audit(frame, schema=SCHEMA | schema, tests=TESTS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"sanitizer": {"name": "mondrian", "k": 4, "variant": "basic"}}, "variant: only strict counts persons"),
        ({"sanitizer": {"name": "mondrian", "l": 2, "tighten": False}}, "tighten must be true where schema.subject"),
        ({"sanitizer": {"name": "laplace", "epsilon": 1}}, "the noise of laplace is for one row a person"),
        ({"sanitizer": {"name": "mondrian", "k": 4}, "engine": "exact"}, "the exact engine removes one row from the tree"),
        ({"sanitizer": {"name": "mondrian", "k": 4}, "records": {"sample": 81}}, "at most the 80 used persons; got 81"),
    ],
)
def test_what_knows_no_persons_is_refused(test: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dit.audit(visits(), schema=SCHEMA, tests=[test])


def test_a_person_who_fills_a_class_is_not_five_people() -> None:
    """Five visits of one old patient: five rows, and nobody to hide among."""
    frame = visits()
    old = pd.DataFrame({"patient": [999] * 5, "age": [95] * 5, "ward": ["a"] * 5, "icd": ["kuru"] * 5})
    frame = pd.concat([frame, old], ignore_index=True)
    gates = ["claims hold", "largest_gain <= 0.5"]
    tests = [{"sanitizer": {"name": "mondrian", "k": 5}}]
    rows_only = {key: value for key, value in SCHEMA.items() if key != "subject"}
    naive = dit.audit(frame, schema=rows_only, tests=tests, gates=gates)
    seen = dit.audit(frame, schema=SCHEMA, tests=tests, gates=gates)
    assert naive.distances()["distance"].tail(5).max() < 0.2  # one of five rows changes little
    assert seen.distances()["distance"].tail(5).max() > 0.5  # all of them, much
    assert seen.tests[0]["smallest_class"] >= 5
    assert any(
        "set schema.subject: patient_id" in text
        for text in dit.audit(frame.rename(columns={"patient": "patient_id"}), schema=rows_only, tests=tests).verdict.warnings
    )


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts, so that the rows of a person are in several; some are lost, and the same bytes come back."""
    monkeypatch.setattr(plan, "SHORTEST", 0.01)
    monkeypatch.setattr(plan, "LONGEST", 0.01)
    frame, output = visits(), str(tmp_path / "runs")
    first = dit.audit(frame, schema=SCHEMA, tests=TESTS, output=output)
    folder = Path(first.url)
    parts = sorted(folder.glob("records/*/*.parquet"))
    assert len(parts) > 2
    before = {path.name: path.read_bytes() for path in parts}
    summary = json.loads((folder / "summary.json").read_text())
    for lost in (parts[0], parts[-1]):
        lost.unlink()
        again = dit.audit(frame, schema=SCHEMA, tests=TESTS, output=output)
        assert again.url == first.url
        assert {path.name: path.read_bytes() for path in parts} == before
        assert [one | {"seconds": 0} for one in again.tests] == [one | {"seconds": 0} for one in summary]


def test_a_sample_has_all_rows_of_its_persons(tmp_path: Path) -> None:
    frame = visits()
    everyone = dit.audit(frame, schema=SCHEMA, tests=TESTS, output=str(tmp_path))
    some = dit.audit(frame, schema=SCHEMA, tests=[TESTS[0] | {"records": {"sample": 12, "seed": 3}}], output=str(tmp_path))
    rows = some.distances()
    assert some.tests[0]["subjects"] == 12
    assert some.tests[0]["sampling"]["rows"] == 80
    chosen = set(frame["patient"].iloc[rows["row"]])
    assert len(chosen) == 12
    assert set(rows["row"]) == set(np.flatnonzero(frame["patient"].isin(chosen)))
    expected = everyone.distances().set_index("row")["distance"].loc[rows["row"]]
    np.testing.assert_array_equal(rows["distance"], expected)


def test_repeated_releases_count_persons(tmp_path: Path) -> None:
    synthetic = {"sanitizer": {"name": "marginals", "epsilon": 1}, "repeats": 5, "adversary": "bernoulli-nb"}
    result = dit.audit(visits(60, 20), schema=SCHEMA, tests=[synthetic], output=str(tmp_path))
    assert (result.tests[0]["records"], result.tests[0]["subjects"]) == (60, 20)
    low, high = result.tests[0]["repeats"]["excess"]["mean"]["interval"]
    assert 0 <= low <= high
    worst = result.distances().assign(patient=visits(60, 20)["patient"]).groupby("patient")["distance"].max()
    assert result.tests[0]["mean"] == pytest.approx(worst.mean())


def test_few_persons_are_not_shown_to_everyone(tmp_path: Path) -> None:
    frame = visits(120, 8)
    output = {"url": str(tmp_path / "shared"), "private": {"url": str(tmp_path / "private")}}
    result = dit.audit(frame, schema=SCHEMA, tests=[{"sanitizer": {"name": "mondrian", "k": 2}}], output=output)
    assert result.tests[0]["delta"] is not None
    shared = json.loads((Path(result.url) / "summary.json").read_text())
    assert (shared[0]["delta"], shared[0]["withheld"]) == (None, True)


def without_time(result: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "seconds"} for one in result.tests]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_figure_depends_on_the_order_of_rows(seed: int) -> None:
    """Visits with the same q and other diagnoses have the same d, and other gains."""
    frame = visits().assign(ward="a")
    tests = [*TESTS, {"sanitizer": "raw"}]
    plain = dit.audit(frame, schema=SCHEMA, tests=tests)
    order = np.random.default_rng(seed).permutation(len(frame))
    moved = dit.audit(frame.iloc[order].reset_index(drop=True), schema=SCHEMA, tests=tests)
    assert without_time(plain) == without_time(moved)
    raw, control = plain.tests[1], plain.verdict.controls[0]
    assert raw["mean_gain"] == pytest.approx(control.statistics.figure("mean_gain"), abs=1e-15)
    assert raw["mean"] == control.statistics.figure("mean")


def test_a_list_of_rows_tests_their_persons_whole() -> None:
    frame = visits()
    whole = dit.audit(frame, schema=SCHEMA, tests=TESTS).distances()
    listed = dit.audit(frame, schema=SCHEMA, tests=[TESTS[0] | {"records": [3, 77]}]).distances()
    chosen = set(frame["patient"].iloc[[3, 77]])
    assert listed["record"].tolist() == np.flatnonzero(frame["patient"].isin(chosen)).tolist()
    np.testing.assert_array_equal(listed["distance"], whole["distance"].iloc[listed["record"]])


def test_measures_list_no_value_that_ten_rows_of_one_person_have(tmp_path: Path) -> None:
    rare = pd.DataFrame({"patient": [999] * 12, "age": [95] * 12, "ward": ["kuru-ward"] * 12, "icd": ["kuru"] * 12})
    frame = pd.concat([visits(), rare], ignore_index=True)
    measures = [{"name": "discrimination", "target": "icd", "keys": ["ward"]}, {"name": "discrimination", "attack": "skewness"}]
    result = dit.audit(frame, schema=SCHEMA, tests=TESTS, measures=measures, output=str(tmp_path))
    texts = (
        "".join(path.read_text() for path in Path(result.url).glob("*.json")) + (Path(result.url) / "report.html").read_text()
    )
    assert "kuru" not in texts
    assert {entry["persons"] for entry in result.measures} == {81}
    with pytest.raises(InputError, match=r"measures\[0\] names 'patient', which is schema.subject"):
        dit.audit(frame, schema=SCHEMA, measures=[{"name": "discrimination", "target": "icd", "keys": ["patient"]}])


def test_files_of_few_persons_are_closed(tmp_path: Path) -> None:
    tests = [{"sanitizer": {"name": "mondrian", "k": 2}}]
    result = dit.audit(visits(120, 9), schema=SCHEMA, tests=tests, output=str(tmp_path))
    closed = ("summary.json", "verdict.json", "report.html", "distributions.parquet")
    assert {oct((Path(result.url) / name).stat().st_mode & 0o777) for name in closed} == {"0o600"}


def test_ids_that_look_wrong_are_named_in_warnings() -> None:
    frame = visits()
    spelled = frame.assign(patient=[f" P{one}" if row % 2 else f"p{one}" for row, one in enumerate(frame["patient"])])
    missing = frame.assign(patient=["NA" if one < 5 else f"p{one}" for one in frame["patient"]])
    single = frame.rename(columns={"patient": "patient_id"}).assign(visit=[f"v{row}" for row in range(len(frame))])
    assert any("differ from others only in spaces, case" in text for text in _warnings(spelled, "patient"))
    assert any("a value such as NA" in text for text in _warnings(missing, "patient"))
    warned = _warnings(single, "visit")
    assert any("every value of schema.subject 'visit' has one row" in text for text in warned)
    assert any("set schema.subject: patient_id" in text for text in warned)
    assert not any("subject" in text for text in _warnings(frame, "patient"))


def _warnings(frame: pd.DataFrame, subject: str) -> list[str]:
    return list(dit.audit(frame, schema=SCHEMA | {"subject": subject}, tests=TESTS).verdict.warnings)
