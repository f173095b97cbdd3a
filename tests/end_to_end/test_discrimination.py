"""Discrimination rates in a run: what reaches measures.json, the report, the terminal and the result."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import homogeneity_score

import dit_dask as dit
from dit_dask import run
from dit_dask.audit.grammar import check_config
from dit_dask.inputs import datasets
from tests.cluster.runs import dit as command
from tests.conftest import ROOT

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
TESTS = [{"sanitizer": {"name": "mondrian", "k": [5, 20]}}, {"sanitizer": {"name": "mondrian", "k": 5}, "distance": "tv"}]
MEASURES = [
    {"name": "discrimination", "keys": ["age", "sex"]},
    {"name": "discrimination", "target": "occupation", "keys": ["age", "race"], "interval": 0.9, "replicates": 60},
    {"name": "discrimination", "attack": ["identity", "homogeneity", "background-knowledge", "skewness"]},
    {"name": "discrimination", "attack": "identity", "knowledge": "black-box", "keys": ["age"]},
]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return datasets.census(400)


@pytest.fixture(scope="module")
def result(people: pd.DataFrame) -> dit.Result:
    measures = [measure | {"records": True} for measure in MEASURES]
    return dit.audit(people, schema=SCHEMA, tests=[TESTS[0], {"sanitizer": "raw"}], measures=measures)


def entries(result: dit.Result, **wanted: object) -> dict[str, dict]:
    chosen = [one for one in result.measures if all(one["parameters"].get(key) == value for key, value in wanted.items())]
    return {"original" if one["sanitizer"] is None else f"k={one['sanitizer']['k']}": one for one in chosen}


def test_every_release_is_attacked_once_beside_the_original(result: dit.Result) -> None:
    assert len(result.measures) == 2 + 4 * 3 + 3
    for one in result.measures:
        assert one.keys() >= {"measure", "parameters", "value", "by_value", "records"}
        assert (one["measure"], one["records"]) == ("discrimination", 400)
        assert 0 <= one["value"] <= 1
    assert list(entries(result, attack="homogeneity")) == ["original", "k=5", "k=20"]


def test_values_of_the_original_are_scikit_learns(result: dit.Result, people: pd.DataFrame) -> None:
    both = people["age"].astype(str) + people["sex"].astype(str)
    found = entries(result, attack="homogeneity")["original"]["value"]
    assert found == pytest.approx(homogeneity_score(people["occupation"], both), abs=1e-12)
    assert entries(result, attack="identity")["original"]["value"] == 1.0
    over_people = next(
        one for one in result.measures if "target" not in one["parameters"] and "attack" not in one["parameters"]
    )
    assert over_people["value"] == pytest.approx(homogeneity_score(range(400), both), abs=1e-12)
    outside = next(one for one in result.measures if "target" in one["parameters"])
    race = people["age"].astype(str) + people["race"].astype(str)
    assert outside["value"] == pytest.approx(homogeneity_score(people["occupation"], race), abs=1e-12)
    assert 0 <= outside["interval"][0] <= outside["interval"][1] <= 1
    homogeneity, background = (entries(result, attack=name) for name in ("homogeneity", "background-knowledge"))
    assert all(background[name]["value"] == 1 - homogeneity[name]["value"] for name in homogeneity)


def test_records_can_be_joined_with_their_distances(result: dit.Result, people: pd.DataFrame) -> None:
    attack = entries(result, attack="homogeneity")["k=5"]
    joined = result.distances("mondrian-k5").merge(result.measured(attack["id"]), on="record", validate="one_to_one")
    assert len(joined) == 400
    assert joined[["distance", "refinement", "rate"]].notna().all().all()
    assert joined["refinement"].mean() == pytest.approx(attack["value"], abs=1e-12)  # rows weigh their own class
    both = people["age"].astype(str) + people["sex"].astype(str)
    mine = result.measured(next(one["id"] for one in result.measures if one["parameters"].get("keys") == ["age", "sex"]))
    expected = 1 - np.log2(both.map(both.value_counts())) / np.log2(400)
    assert mine["refinement"].tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    with pytest.raises(dit.InputError, match="measure: unknown"):
        result.measured("nothing")


def test_only_shared_values_are_named(result: dit.Result) -> None:
    named = [line for one in result.measures for line in one["by_value"] if "values" not in line]
    assert named
    assert all(line["count"] >= 10 for line in named)
    pooled = [line for one in result.measures for line in one["by_value"] if "values" in line]
    assert pooled
    assert all(line["value"] is None for line in pooled)
    for one in result.measures:
        rounding = 2.5 * len(one["by_value"])
        assert sum(line["count"] for line in one["by_value"]) == pytest.approx(400, abs=rounding)


def test_values_are_named_if_asked_for(people: pd.DataFrame) -> None:
    measure = {"name": "discrimination", "target": "occupation", "keys": ["age"], "show_values": True}
    (found,) = dit.audit(people, schema=SCHEMA, measures=[measure]).measures
    assert {line["value"] for line in found["by_value"]} == set(people["age"].astype(str))


def test_missing_cells_need_a_choice_and_dropped_rows_have_no_number(people: pd.DataFrame) -> None:
    holes = people.assign(race=people["race"].where(people["age"] > 30))
    measure = {"name": "discrimination", "target": "occupation", "keys": ["race"]}
    with pytest.raises(dit.InputError, match="rows miss a value of 'race'; choose missing"):
        dit.audit(holes, schema=SCHEMA, measures=[measure])
    result = dit.audit(holes, schema=SCHEMA, measures=[measure | {"missing": "drop", "records": True}])
    (found,) = result.measures
    assert found["records"] == (people["age"] > 30).sum()
    assert result.measured(found["id"])["refinement"].isna().equals(people["age"] <= 30)
    assert result.summary.empty


def test_grey_box_reads_another_table_and_its_content_is_part_of_the_run(people: pd.DataFrame, tmp_path: Path) -> None:
    known = tmp_path / "known.csv"
    measure = {"name": "discrimination", "attack": "identity", "knowledge": "grey-box", "keys": ["sex"], "external": str(known)}
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "tests": TESTS[:1], "measures": [measure]}
    folders = set()
    for rows in (1, 5):
        pd.DataFrame({"sex": ["Female"] * rows + ["Male", "Other"]}).to_csv(known, index=False)
        folders.add(run.prepare(check_config(document, "."), people).folder.url)
    assert len(folders) == 2
    found = entries(dit.audit(people, schema=SCHEMA, tests=TESTS[:1], measures=[measure]))
    assert found["original"]["value"] == 1.0
    known.write_text("age\n3\n")
    with pytest.raises(dit.InputError, match=r"measures\[0\].external: known.csv: no column 'sex' among 1"):
        run.prepare(check_config(document, "."), people)


def test_the_report_and_the_terminal_show_original_and_releases_side_by_side(tmp_path: Path) -> None:
    people = datasets.census(300)
    people["sex"] = people["sex"].map(lambda sex: f"<script>{sex}</script>")
    people.to_csv(tmp_path / "people.csv", index=False)
    document = {
        "version": 1,
        "name": "side-by-side",
        "data": {"source": "people.csv"},
        "schema": SCHEMA,
        "tests": TESTS[:1],
        "measures": [{"name": "discrimination", "attack": ["homogeneity", "skewness"], "keys": ["sex"]}],
        "cluster": {"workers": 1},
    }
    (tmp_path / "audit.yaml").write_text(json.dumps(document))
    done = command("run", tmp_path / "audit.yaml", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.split() == ["attack", "original", "mondrian", "k=5", "mondrian", "k=20"] for line in lines)
    assert any(line.split() == ["attack", "of", "rate", "by", "chance", "corrected", "about", "persons"] for line in lines)
    folder = Path(lines[-1])
    report = (folder / "report.html").read_text()
    assert "Attacks on the releases" in report
    assert "<script>" not in report
    assert "&lt;script&gt;" in report
    measures = json.loads((folder / "measures.json").read_text())
    assert {one["id"] for one in measures} == {path.stem for path in (folder / "measures").glob("*.json")}
    planned = command("plan", tmp_path / "audit.yaml")
    assert [line.split()[1] for line in planned.stdout.splitlines() if line.startswith("measure ")] == [
        one["id"] for one in measures
    ]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("measures/*")}
    (folder / "measures.json").unlink()
    again = command("run", tmp_path / "audit.yaml", "--out", tmp_path / "runs")
    assert again.returncode == 0
    assert "6 of 6 measures are there already" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.glob("measures/*")} == before
    assert json.loads((folder / "measures.json").read_text()) == measures


def test_risk_ranks_columns_and_draws_them(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "look.yaml").write_text("version: 1\ndata: {source: people.csv}\n")
    done = command("risk", tmp_path / "look.yaml", "--size", 2, "--top", 3, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert (folder / "risk.svg").read_text().startswith("<svg")
    kept = json.loads((folder / "risk.json").read_text())
    rates = {tuple(one["keys"]): one["rate"] for one in kept["columns"]}
    assert rates.keys() == {(name,) for name in people.columns}
    assert rates["age",] == pytest.approx(homogeneity_score(range(400), people["age"]), abs=1e-12)
    (pairs,) = kept["combinations"]
    assert (pairs["size"], pairs["searched"], len(pairs["best"])) == (2, "exhaustive", 3)
    printed = command("risk", tmp_path / "look.yaml", "--size", 2, "--top", 3, "--out", tmp_path / "out", "--json")
    shown = json.loads(printed.stdout)
    assert [shown.pop(key) for key in ("tests", "measures", "verdicts", "warnings")] == [[], [], [], []]
    assert shown == kept | {"run": str(folder), "status": "none"}
    people.assign(town=[None, *people.iloc[1:, 0]]).to_csv(tmp_path / "people.csv", index=False)
    untold = command("risk", tmp_path / "look.yaml", "--out", tmp_path / "out")
    assert "choose --missing category (its own value) or --missing drop" in untold.stderr
    assert command("risk", tmp_path / "look.yaml", "--out", tmp_path / "out", "--missing", "category").returncode == 0
    people.to_csv(tmp_path / "people.csv", index=False)
    wrong = command("risk", tmp_path / "look.yaml", "--target", "agee", "--out", tmp_path / "out")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean 'age'?" in wrong.stderr


def test_the_adult_config_of_the_deck_orders_its_releases_as_the_deck_does(data_folder: Path, tmp_path: Path) -> None:
    path = ROOT / "configs" / "adult-discrimination.yaml"
    done = command(
        "run", path, "--out", tmp_path, "--workers", 1, "--set", "tests.0.records=[0]", "--set", "tests.1.records=[0]"
    )
    assert done.returncode == 0, done.stderr
    measures = json.loads((Path(done.stdout.splitlines()[-1]) / "measures.json").read_text())
    found = {}
    for one in measures:
        given = one["parameters"]
        release = next((f"{key}{value}" for key, value in (one["sanitizer"] or {}).items() if key in "kl"), "original")
        found[given.get("attack"), given.get("knowledge"), tuple(given.get("keys", ())), release] = one["value"]
    for keys in ((), ("native-country",), ("race",), ("workclass",)):
        assert (
            found["identity", None if keys else "white-box", keys, "k15"]
            < found["identity", None if keys else "white-box", keys, "k10"]
            < 1
        )
    table = pd.read_csv(data_folder / "adult.csv", dtype=str)
    names = ["marital-status", "native-country", "race", "workclass"]
    table = table[(table[[*names, "occupation"]] != "?").all(axis=1)]
    both = table[names].agg("|".join, axis=1)
    original = found["homogeneity", None, (), "original"]
    assert original == pytest.approx(homogeneity_score(table["occupation"], both), abs=1e-10)
    assert found["homogeneity", None, (), "l3"] < found["homogeneity", None, (), "k10"] < original
