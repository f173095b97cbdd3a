"""Figures that the papers print, and those of an independent replication."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dit_dask as dit
from dit_dask.audit.build import build_tests
from dit_dask.audit.grammar import check_config
from dit_dask.config import document as config
from dit_dask.engines.brute_force import influence
from dit_dask.inputs.load import load
from dit_dask.sanitizers.claims import recheck
from dit_dask.seeds import stream
from tests.audits import WORKED, WORKED_SCHEMA


@pytest.mark.parametrize("engine", ["exact", "brute-force"])
def test_the_worked_example_of_the_second_paper(engine: str) -> None:
    test = {"sanitizer": {"name": "mondrian", "k": 2}, "adversary": "conditional-frequency", "engine": engine}
    result = dit.audit(WORKED, schema=WORKED_SCHEMA, tests=[test])
    np.testing.assert_allclose(result.distances()["distance"], [1, 1, 2 / 3, 1 / 3, 1 / 3], rtol=1e-15)
    assert result.summary["delta"].item() == 1.0


def internet(folder: Path, columns: list[str], tests: list[dict]) -> config.Config:
    trees = {name: f"hierarchies/kassem_internet_{name}.csv" for name in columns}
    quasi = {"age": {"kind": "numeric"}} | {name: {"kind": "categorical", "hierarchy": path} for name, path in trees.items()}
    document = {
        "version": 1,
        "data": {"source": "internet_usage.csv", "missing": {"age": ["Not-Say"]}},
        "schema": {"quasi_identifiers": quasi, "sensitive": "household_income"},
        "tests": tests,
    }
    return check_config(document, str(folder))


def no_files(path: str, where: str) -> str:
    raise AssertionError(f"{where} names no file, so {path} is not read")


FIVE = ["race", "education_attainment", "major_occupation", "marital_status"]


def test_internet_usage_has_the_papers_rows_and_distinct_records(data_folder: Path) -> None:
    rows = load(internet(data_folder, FIVE, [{"sanitizer": "raw"}]))
    assert (rows.used, rows.dropped, rows.table.distinct) == (9_799, 309, 7_049)


def test_a_third_of_internet_users_stand_out_under_5_anonymity_and_none_under_5_diversity(data_folder: Path) -> None:
    tests = [
        {"sanitizer": {"name": "mondrian", "k": 5, "variant": "basic"}, "adversary": "bernoulli-nb", "distance": "tv"},
        {"sanitizer": {"name": "mondrian", "l": 5}, "adversary": "bernoulli-nb", "distance": "tv"},
    ]
    settings = internet(data_folder, ["country", *FIVE], tests)
    rows = load(settings)
    anonymous, diverse = build_tests(settings, rows, no_files)
    # every 5th row keeps this under half a minute; the whole table gives 35.4%
    chosen = np.arange(0, rows.used, 5)
    records, inverse = np.unique(rows.index[chosen], return_inverse=True)
    share = (influence(rows.table, records, anonymous.procedure).distance[inverse] > 10**-2.5).mean()
    assert share == pytest.approx(0.354, abs=0.03)
    assert influence(rows.table, records, diverse.procedure).distance.max() < 10**-2.5


def test_basic_anonymity_publishes_classes_smaller_than_k_on_adult(data_folder: Path) -> None:
    names = {"education": None, "marital-status": None, "native-country": None}
    quasi = {"age": {"kind": "numeric"}, "hours-per-week": {"kind": "numeric"}} | {
        name: {"kind": "categorical", "hierarchy": f"hierarchies/kassem_adult_{name}.csv"} for name in names
    }
    document = {
        "version": 1,
        "data": {"source": "adult.csv", "missing": ["?"], "sample": {"rows": 10_000, "seed": 7}},
        "schema": {"quasi_identifiers": quasi, "sensitive": "occupation"},
        "tests": [{"sanitizer": {"name": "mondrian", "k": 5, "variant": ["basic", "strict"]}}],
    }
    settings = check_config(document, str(data_folder))
    rows = load(settings)
    found = []
    for point in build_tests(settings, rows, no_files):
        release = point.procedure.sanitizer.release(rows.table, stream(0))
        found.append(recheck(release, point.procedure.sanitizer.claim))
    basic, strict = found
    assert not basic.holds
    assert basic.classes == pytest.approx(1_159, rel=0.1)
    assert basic.broken_classes == pytest.approx(100, rel=0.3)
    assert strict.holds
    assert (strict.smallest_class, strict.broken_records) == (5, 0)
