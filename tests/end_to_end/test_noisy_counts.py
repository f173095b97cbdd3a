"""The test on noisy counts, from a config to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import dit_dask as dit
from dit_dask.audit.build import build_tests
from dit_dask.audit.grammar import check_config
from dit_dask.engines.noisy_counts import binned, count, exact
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.load import load
from dit_dask.kernels.mechanisms import Laplace
from tests.audits import checked, loaded, points
from tests.cluster.runs import assert_same

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}
BINS = {"age": 4}
EXACT = {"sanitizer": {"name": "laplace", "epsilon": [0.1, "inf"], "bins": BINS}}
SAMPLED = {"sanitizer": {"name": "laplace", "epsilon": 1, "bins": BINS}, "method": "simulate", "samples": 400}


@pytest.fixture(scope="module")
def people():
    return datasets.census(400)


@pytest.fixture(scope="module")
def result(people) -> dit.Result:
    return dit.audit(people, schema=SCHEMA, tests=[EXACT, SAMPLED], seed=5)


def test_every_row_gets_the_exact_distance_of_its_pattern(people, result: dit.Result) -> None:
    rows = loaded(people, SCHEMA)
    table, index = binned(rows.table, BINS, "bins")
    found = count(table)
    for place, epsilon in enumerate((0.1, np.inf)):
        expected = exact(found.patterns, epsilon)[found.of][index[rows.index]]
        np.testing.assert_array_equal(result.distances(place)["distance"], expected)
    assert result.summary["distinct"].iloc[0] == table.distinct < rows.table.distinct


def test_multiplicity_counts_rows_of_the_same_bin(people) -> None:
    edges = [16, 30, 50, 90]
    test = {"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": edges}}}
    shown = dit.audit(people, schema=SCHEMA, tests=[test]).distances()
    cut = people.assign(age=pd.cut(people["age"], edges, include_lowest=True))
    groups = cut.groupby(["age", "education", "sex", "occupation"], observed=True)
    np.testing.assert_array_equal(shown["multiplicity"], groups["income"].transform("size"))


def test_a_simulation_adds_its_unbiased_estimate_and_standard_error(result: dit.Result) -> None:
    sampled = result.distances(2)
    assert sampled.columns.tolist()[-2:] == ["unbiased", "stderr"]
    assert (sampled["stderr"] > 0).all()
    entry = result.tests[2]
    assert entry["engine"] == "simulation"
    low, high = entry["delta_interval"]
    assert low <= entry["largest_unbiased"] <= high
    assert entry["effective_epsilon"]["at_least"] <= 1
    assert entry["claim_holds"] is True
    assert (entry["classes"], entry["smallest_class"]) == (None, None)


def test_the_report_says_what_sampling_does(result: dit.Result) -> None:
    page = (Path(result.url) / "report.html").read_text()
    assert "What sampling does" in page
    assert "mostly sampling noise" in page


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_no_bit(people, result: dit.Result, tmp_path: Path, workers: int) -> None:
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        other = dit.audit(people, schema=SCHEMA, tests=[EXACT, SAMPLED], seed=5, client=client, output=str(tmp_path))
    assert_same(Path(result.url), Path(other.url))


def test_distances_are_multiples_of_each_other(people) -> None:
    found = dit.audit(people, schema=SCHEMA, tests=[EXACT | {"distance": ["emd", "tv", "emd-v1"]}])
    emd, tv, quarter = (np.array(found.distances(place)["distance"]) for place in (0, 1, 2))
    epsilons = [entry["parameters"]["sanitizer"]["epsilon"] for entry in found.tests]
    assert epsilons == [0.1, 0.1, 0.1, np.inf, np.inf, np.inf]
    np.testing.assert_array_equal(tv, emd / 2)
    np.testing.assert_array_equal(quarter, emd / 4)


def test_internet_usage_has_the_papers_distinct_records(data_folder: Path) -> None:
    names = ("race", "education_attainment", "major_occupation", "marital_status")
    quasi = {"age": {"kind": "numeric"}} | {name: {"kind": "categorical"} for name in names}
    document = {
        "version": 1,
        "data": {"source": "internet_usage.csv", "missing": {"age": ["Not-Say"]}},
        "schema": {"quasi_identifiers": quasi, "sensitive": "household_income"},
        "tests": [{"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": [0, 20, 40, 60, 80]}}}],
    }
    settings = check_config(document, str(data_folder))
    (point,) = build_tests(settings, load(settings), lambda path, where: f"{path} {where}")
    assert point.rows.table.distinct == 2_926


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"sanitizer": "laplace"}, "tests[0].sanitizer.epsilon is missing"),
        ({"sanitizer": {"name": "laplace", "epsilon": 0}}, "tests[0].sanitizer.epsilon must be a number > 0; got 0"),
        ({"sanitizer": {"name": "laplace", "epsilon": float("nan")}}, "tests[0].sanitizer.epsilon must be a number > 0"),
        ({"sanitizer": {"name": "laplace", "epsilon": [1, -1]}}, "tests[0].sanitizer.epsilon must be a number > 0; got -1"),
        (
            {"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": 0}}},
            "tests[0].sanitizer.bins.age must be an integer >= 1",
        ),
        ({"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": [0, 20]}}}, "tests[0].sanitizer.bins.age"),
        ({"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"sex": 2}}}, "only numeric attributes have bins"),
        ({"sanitizer": {"name": "laplace", "epsilon": 1}, "samples": 1}, "tests[0].samples must be an integer >= 2; got 1"),
        (
            {"sanitizer": {"name": "laplace", "epsilon": 1}, "method": "simulate", "samples": 10**8},
            "tests[0].samples must be at most",
        ),
        ({"sanitizer": {"name": "laplace", "epsilon": 1}, "distance": "kl"}, "tests[0].distance: unknown 'kl'"),
        ({"sanitizer": {"name": "laplace", "epsilon": 1}, "adversary": "bernoulli-nb"}, "unknown 'adversary'"),
        ({"sanitizer": {"name": "geometric", "epsilon": 1}, "method": "exact"}, "only laplace has an exact value"),
        ({"sanitizer": {"name": "gaussian", "epsilon": 1}}, "gaussian needs sigma, or epsilon and delta_dp"),
        ({"sanitizer": {"name": "mondrian", "k": 2}, "samples": 5}, "unknown 'samples'"),
    ],
)
def test_a_wrong_test_is_one_clear_line(people, test: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        points(loaded(people, SCHEMA), SCHEMA, [test])
    assert message in str(caught.value)


def test_ids_tell_mechanisms_and_methods_apart() -> None:
    tests = [
        EXACT,
        SAMPLED,
        {"sanitizer": {"name": "gaussian", "sigma": 2.5}},
        {"sanitizer": {"name": "geometric", "epsilon": 0.5}},
    ]
    found = [point.id for point in points(loaded(datasets.census(50), SCHEMA), SCHEMA, tests)]
    assert found[0].startswith("laplace-epsilon0.1-bins-")
    assert found[1].startswith("laplace-epsiloninf-bins-")
    assert found[2].endswith(".simulate.samples400")
    assert found[3:] == ["gaussian-sigma2.5", "geometric-epsilon0.5"]
    assert len(checked(SCHEMA, tests).tests) == len(found)


def test_other_mechanisms_run_too(people) -> None:
    tests = [
        {"sanitizer": {"name": "geometric", "epsilon": 1, "bins": BINS}, "samples": 200},
        {"sanitizer": {"name": "gaussian", "epsilon": 1, "delta_dp": 1e-5, "bins": BINS}, "samples": 200, "coupling": "common"},
    ]
    found = dit.audit(people, schema=SCHEMA, tests=tests)
    assert found.summary["engine"].tolist() == ["simulation", "simulation"]
    json.dumps(found.tests, allow_nan=False)


def test_a_wrongly_scaled_mechanism_is_flagged_by_the_audit(people, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Laplace.noise
    monkeypatch.setattr(Laplace, "noise", lambda self, rng, size: right(self, rng, size) / 2)  # scale 1 / (2 epsilon)
    test = {
        "sanitizer": {"name": "laplace", "epsilon": 1, "bins": BINS},
        "method": "simulate",
        "samples": 20_000,
        "records": [0],
    }
    entry = dit.audit(people, schema=SCHEMA, tests=[test], seed=1).tests[0]
    assert entry["claim_holds"] is False
    assert 1 < entry["effective_epsilon"]["at_least"] <= 2
