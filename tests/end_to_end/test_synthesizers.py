"""An overfitted synthesizer is caught twice, by closeness and by the inference test; an honest one by neither."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}, "size": {"kind": "numeric"}},
    "sensitive": "illness",
}


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(18, 90, rows), "town": rng.choice(list("abcde"), rows), "size": rng.integers(150, 200, rows)}
    return pd.DataFrame(columns | {"illness": rng.choice(["flu", "cold", "gout"], rows)})


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dit.Result:
    """Two synthesizers of one table, and a holdout that they have not seen."""
    folder: Path = tmp_path_factory.mktemp("synthesizers")
    people(150, 2).to_csv(folder / "holdout.csv", index=False)
    common = {"adversary": "conditional-frequency", "repeats": 20, "records": {"sample": 25, "seed": 1}}
    return dit.audit(
        people(150, 1),
        schema=SCHEMA,
        tests=[common | {"sanitizer": "resample"}, common | {"sanitizer": {"name": "marginals", "structure": "independent"}}],
        measures=[{"name": "closeness", "holdout": str(folder / "holdout.csv"), "distance": "gower"}],
        output=str(folder / "runs"),
        seed=4,
    )


def test_the_inference_test_tells_copies_from_samples(result: dit.Result) -> None:
    copying, honest = (result.distances(test) for test in (0, 1))
    assert copying["distance"].mean() > 3 * copying["noise"].mean()
    assert honest["distance"].mean() < 1.5 * honest["noise"].mean()  # what is left is sampling
    assert copying["distance"].min() > honest["distance"].max()


def test_closeness_tells_copies_from_samples(result: dit.Result) -> None:
    found = {(entry["sanitizer"] or {"name": "raw"})["name"]: entry for entry in result.measures}
    assert {name: entry["passed"] for name, entry in found.items()} == {"raw": False, "resample": False, "marginals": True}
    assert found["resample"]["identical"] == 1
    assert found["marginals"]["identical"] < 0.05
    assert found["resample"]["share_nearer_training"] > 0.95


def test_only_copies_are_above_the_noise(result: dit.Result) -> None:
    copying, honest = (entry["repeats"] for entry in result.tests)
    assert copying["excess"]["delta"]["interval"][0] > 0.2
    assert honest["excess"]["delta"]["interval"][0] == honest["excess"]["mean"]["interval"][0] == 0
    assert copying["significant"] > 20
    assert honest["significant"] == 0
    bound = 3 * 0.5 / 20**0.5  # three standard deviations of a share of 20 draws, which all rows have in common
    for limit, found in honest["over"].items():
        assert abs(found["mean"] - found["noise_mean"]) < bound, limit
    assert copying["over"]["0.1"]["mean"] > copying["over"]["0.1"]["noise_mean"]


def test_the_curve_of_epsilon_and_delta_is_in_api_summary_and_report(result: dit.Result) -> None:
    curve = result.epsilon_delta(0)
    assert list(curve.columns) == ["mean", "worst", "at_least", "at_most", "noise_worst"]
    assert curve.index.is_monotonic_increasing
    assert (curve["worst"].diff().dropna() <= 0).all()
    assert ((curve["at_least"] <= curve["worst"]) & (curve["worst"] <= curve["at_most"])).all()
    assert curve.loc[0.5, "at_least"] > 0.2  # copies are certain to move beliefs
    shares = result.distances(0)[["over_0.5", "noise_over_0.5"]]
    assert tuple(shares.max()) == tuple(curve.loc[0.5, ["worst", "noise_worst"]])
    assert shares["over_0.5"].mean() == pytest.approx(curve.loc[0.5, "mean"])
    stored = result.tests[0]["repeats"]
    assert [point["epsilon"] for point in stored["curve"]] == curve.index.tolist()
    assert stored["bias"]["mean"] == pytest.approx(result.distances(0)["bias"].mean())
    report = (Path(result.url) / "report.html").read_text("utf-8")
    assert report.count("at most, for all persons and ε at once</th>") == 2  # the tables of the two charts
    assert f"<td>{curve.loc[0.5, 'at_most']:.4g}</td>" in report
    with pytest.raises(dit.DitError, match="test must be an id or a position"):
        result.epsilon_delta(7)


def test_a_test_without_repeats_has_no_curve() -> None:
    plain = dit.audit(people(30, 1), schema=SCHEMA, tests=[{"sanitizer": {"name": "mondrian", "k": 3}}])
    with pytest.raises(dit.DitError, match="has no repeats"):
        plain.epsilon_delta()


@pytest.mark.parametrize("repeats", [1, 0, -2, 2.5, "many"])
def test_fewer_than_two_repeats_are_one_clear_line(repeats: object) -> None:
    with pytest.raises(dit.DitError, match=r"^tests\[0\]\.repeats must be an integer >= 2; got [^\n]+$"):
        dit.audit(people(30, 1), schema=SCHEMA, tests=[{"sanitizer": "resample", "repeats": repeats}])
