"""Warnings: each of them where it belongs, nowhere else, and without values of the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.audit.disclosure import shareable_run_verdict
from dit_dask.audit.gates import parse
from dit_dask.audit.verdict import RunVerdict
from dit_dask.audit.warnings import data_warnings, gate_warnings
from dit_dask.inputs.person_ids import looks_like_person_id, repeated_person_ids
from tests.audits import checked, loaded
from tests.unit.summaries import summary

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}


def people(rows: int = 400, **columns: Any) -> pd.DataFrame:
    place = np.arange(rows)
    usual = {"age": place % 50, "town": [f"town{number % 7}" for number in place], "illness": [f"ill{n % 3}" for n in place]}
    return pd.DataFrame(usual | columns)


def warned(frame: pd.DataFrame) -> list[str]:
    return data_warnings(loaded(frame, SCHEMA))


def test_an_ordinary_table_gives_no_warning() -> None:
    assert warned(people()) == []


@pytest.mark.parametrize(
    ("values", "rows", "is_warned"), [(50, 1000, False), (51, 2000, True), (20, 400, False), (21, 400, True)]
)
def test_a_sensitive_attribute_of_many_values_is_named_with_a_way_out(values: int, rows: int, is_warned: bool) -> None:
    found = warned(people(rows, illness=[f"secret-{place % values}" for place in range(rows)]))
    assert [f"'illness' has {values} values in {rows:,} rows" in text for text in found] == [True] * is_warned
    assert all("group it, such as sensitive: {name: group, from: illness, map: FILE}" in text for text in found)
    assert not any("secret-" in text for text in found)


def test_a_sensitive_number_is_to_be_binned() -> None:
    (text,) = warned(people(illness=np.arange(400) % 100 + 20_000))
    assert "bin it, such as sensitive: {name: illness, bins: 5}" in text
    assert "20000" not in text


@pytest.mark.parametrize(("unique", "is_warned"), [(200, False), (201, True)])
def test_a_quasi_identifier_that_is_unique_for_most_rows_is_an_identifier(unique: int, is_warned: bool) -> None:
    found = warned(people(age=[*range(1000, 1000 + unique), *([7] * (400 - unique))]))
    assert [f"'age' is unique in {unique / 4:.1f}% of the rows: it is an identifier" in text for text in found] == (
        [True] * is_warned
    )


def test_free_text_is_named_but_not_quoted() -> None:
    notes = [f"came in with a cough number{place % 60}" for place in range(400)]
    (text,) = warned(people(town=notes))
    assert text.startswith("the column 'town' looks like free text")
    assert "cough" not in text


def test_fewer_than_a_hundred_rows_say_little() -> None:
    assert "only 99 rows are used" in warned(people(99))[0]
    assert not any("rows are used" in text for text in warned(people(100)))


@pytest.mark.parametrize("mark", ["NA", "N/A", "null", "-", " na "])
def test_marks_of_missing_cells_are_no_ordinary_labels_unless_they_are_declared(mark: str) -> None:
    frame = people(town=[mark if place % 50 == 0 else f"t{place % 7}" for place in range(400)])
    (text,) = warned(frame)
    assert f"the column 'town' has {mark.strip().casefold()!r} as a value like any other" in text
    assert data_warnings(loaded(frame, SCHEMA, missing=[mark])) == []


def test_gates_on_a_sample_are_gates_on_a_sample() -> None:
    rows, gate = loaded(people(), SCHEMA), parse("delta <= 1", "g")
    sampling = {"rows": 400, "confidence": 0.95, "share_over": {}, "above_delta_at_most": 0.1}
    sampled = summary("a", delta=0.5, records=30, subjects=30, sampling=sampling)
    all_rows = summary("b", delta=0.5, records=400)
    expected = ["a: gates judge a sample of 30 of 400 rows; a person outside the sample may lie above"]
    assert gate_warnings([gate], {}, [sampled, all_rows], rows) == expected
    assert gate_warnings([], {"a": [gate]}, [sampled], rows) == expected
    assert gate_warnings([], {}, [sampled], rows) == []
    listed = summary("a", delta=0.5, records=3, parameters={"sanitizer": {"name": "mondrian", "k": 5}, "records": [1, 2, 3]})
    assert gate_warnings([gate], {}, [listed], rows) == [
        "a: gates judge the 3 rows that the config lists; any other person may lie above"
    ]


def test_gates_on_a_part_of_the_table_are_said_to_be() -> None:
    rows = loaded(people(), SCHEMA, limit=150)
    found = gate_warnings([parse("delta <= 1", "g")], {}, [summary("a", delta=0.5, records=150)], rows)
    assert len(found) == 1
    assert "gates judge a table of 150 of 400 complete rows" in found[0]
    assert gate_warnings([], {}, [summary("a", delta=0.5, records=150)], rows) == []


@pytest.mark.parametrize(
    "name",
    ["patient_id", "PatientID", "patientid", "Customer No", "user-uuid", "hospital_patient_number", "id", "ssn", "e-mail"],
)
def test_names_of_persons_ids_are_known(name: str) -> None:
    assert looks_like_person_id(name)


@pytest.mark.parametrize("name", ["age", "postcode", "idle", "country_code", "personality", "number", "patient_age", "subject"])
def test_names_of_other_columns_are_not_taken_for_them(name: str) -> None:
    assert not looks_like_person_id(name)


IDS = [f"p{place // 2}" for place in range(400)]


def write(frame: pd.DataFrame, folder: Path, name: str) -> None:
    if name.endswith(".parquet"):
        frame.to_parquet(folder / name)
    else:
        frame.to_csv(folder / name, index=False, sep="\t" if name.endswith(".tsv") else ",")


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.tsv", "people.parquet"])
def test_ids_that_repeat_are_found_in_a_file_though_no_test_uses_them(name: str, tmp_path: Path) -> None:
    write(people(patient_id=IDS, visit_id=IDS), tmp_path, name)
    config = checked(SCHEMA, folder=str(tmp_path), data={"source": name})
    assert repeated_person_ids(config) == ["patient_id"]
    (text,) = data_warnings(loaded(people(), SCHEMA), ["patient_id"])
    assert "'patient_id' looks like a person's id, and ids repeat" in text


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("ids", "repeat"),
    [
        ([*range(399), 3], True),  # in the first file and in the last
        (list(range(400)), False),
        ([None] * 100 + list(range(300)), False),
        (["?"] * 100 + [f"p{place}" for place in range(300)], False),
    ],
)
def test_ids_that_repeat_are_found_over_several_files(ending: str, ids: list[object], repeat: bool, tmp_path: Path) -> None:
    everyone = people(patient_id=pd.Series(ids, dtype=object if "?" in ids else None))
    for number, some in enumerate(np.array_split(np.arange(400), 4)):
        write(everyone.iloc[some], tmp_path, f"{number}.{ending}")
    config = checked(SCHEMA, folder=str(tmp_path), data={"source": f"*.{ending}", "missing": ["?"]})
    assert repeated_person_ids(config) == (["patient_id"] if repeat else [])


def test_ids_that_every_part_lists_as_categories_do_not_repeat(tmp_path: Path) -> None:
    ids = pd.Series(pd.Categorical([f"p{place}" for place in range(400)]))
    for number, some in enumerate(np.array_split(np.arange(400), 4)):
        write(people(patient_id=ids).iloc[some], tmp_path, f"{number}.parquet")
    assert repeated_person_ids(checked(SCHEMA, folder=str(tmp_path), data={"source": "*.parquet"})) == []


def test_ids_that_repeat_are_found_in_a_frame() -> None:
    config = checked(SCHEMA)
    assert repeated_person_ids(config, people(patient_id=IDS)) == ["patient_id"]
    assert repeated_person_ids(config, people(patient_id=np.arange(400))) == []
    assert repeated_person_ids(config, people(patient_id=[None] * 399 + [1])) == []
    assert repeated_person_ids(replace(config, data=replace(config.data, missing=["?"])), people(patient_id=["?"] * 400)) == []
    assert repeated_person_ids(config, people()) == []


def test_warnings_of_tests_of_few_rows_are_not_shared() -> None:
    warnings = ["only 60 rows are used", "a: the raw table meets the gate delta <= 1, too (delta is 0.25)", "ab: no gate"]
    shared = shareable_run_verdict(RunVerdict(warnings=warnings), ["a"])
    assert shared.warnings == ["only 60 rows are used", "ab: no gate"]
