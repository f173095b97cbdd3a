"""An attacker with the run folder joins the figures of records with those of values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.cli import main
from dit_dask.inputs import datasets
from tests.conftest import ROOT
from tests.recovery.attackers import recover_cells

ROWS = 400
SCHEMA = {
    "quasi_identifiers": {name: {"kind": "categorical"} for name in ("education", "sex", "race")},
    "sensitive": "occupation",
}
KEYS = ["education", "sex", "race"]
ATTACKS = ["identity", "homogeneity", "background-knowledge", "skewness"]
MEASURES = [
    *({"name": "discrimination", "target": "occupation", "keys": [key]} for key in KEYS),
    {"name": "discrimination", "target": "occupation", "keys": KEYS},
    {"name": "discrimination", "keys": ["occupation"]},
    *({"name": "discrimination", "attack": "identity", "keys": [key]} for key in KEYS),
    {"name": "discrimination", "attack": ATTACKS},
]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return datasets.census(ROWS)


@pytest.fixture(scope="module")
def folder(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The measures of configs/adult-discrimination.yaml, on few rows."""
    return Path(dit.audit(people, schema=SCHEMA, measures=MEASURES, output=str(tmp_path_factory.mktemp("runs"))).url)


def entries(folder: Path) -> list[dict]:
    return json.loads((folder / "measures.json").read_text())


def test_joining_measures_with_by_value_gives_back_no_cell(folder: Path, people: pd.DataFrame) -> None:
    assert any(line["value"] for entry in entries(folder) for line in entry["by_value"])  # there is something to join with
    assert recover_cells(folder, people) == recover_cells(folder, people, 0.01) == 0
    assert list(folder.glob("measures/*.parquet")) == []
    assert all(entry["columns"] == [] for entry in entries(folder))


def test_the_shipped_adult_config_gives_back_no_cell(data_folder: Path, tmp_path: Path) -> None:
    path = ROOT / "configs" / "adult-discrimination.yaml"
    sets = ["data.limit=600", "tests.0.records=[0]", "tests.1.records=[0]", 'cluster={"workers": 1}']
    options = [word for text in sets for word in ("--set", text)]
    assert main(["run", str(path), "--out", str(tmp_path), "--quiet", *options]) == 0
    (folder,) = tmp_path.glob("adult-discrimination-*")
    table = pd.read_csv(data_folder / "adult.csv", dtype=str)
    names = ["marital-status", "native-country", "race", "workclass"]
    table = table[(table[[*names, "occupation"]] != "?").all(axis=1)].head(600)
    assert recover_cells(folder, table, 0.01) == 0  # 11,875 of 12,000 cells, when figures of records were written


def test_the_key_illness_gives_back_no_secret(people: pd.DataFrame) -> None:
    measure = {"name": "discrimination", "keys": ["occupation"]}
    kept = dit.audit(people, schema=SCHEMA, measures=[measure | {"records": True}])  # its folder goes with it
    asked = Path(kept.url)
    assert recover_cells(asked, people) == 0  # no figure of a record equals a published one
    assert (asked / "measures" / f"{entries(asked)[0]['id']}.parquet").exists()  # asked for, and personal data
    result = dit.audit(people, schema=SCHEMA, measures=[measure])
    assert recover_cells(Path(result.url), people, 0.01) == 0
    with pytest.raises(dit.InputError, match="measure: unknown"):
        result.measured(result.measures[0]["id"])


def test_partitions_of_skewness_are_not_in_the_order_of_predicted(folder: Path, people: pd.DataFrame) -> None:
    counts = people["occupation"].value_counts()
    skewed = [entry for entry in entries(folder) if "partitions" in entry]
    assert skewed
    for entry in skewed:
        names = [line["value"] for line in entry["partitions"] if line["value"] is not None]
        assert names != sorted(names)  # the order of codes
        assert [line["rate"] for line in entry["partitions"] if line["value"]] == sorted(
            (line["rate"] for line in entry["partitions"] if line["value"]), reverse=True
        )
        assert all(counts[name] >= 10 for name in names)
        assert entry["worst"]["value"] is None or counts[entry["worst"]["value"]] >= 10


def test_the_sum_of_a_list_does_not_give_away_a_group_of_few(folder: Path) -> None:
    for entry in entries(folder):
        for line in (*entry["by_value"], *entry.get("partitions", ())):
            assert line["count"] >= 10
            assert line["count"] % 5 == 0  # no exact numbers, whose differences would be single rows


def test_the_rest_of_one_row_is_pooled_with_a_listed_group() -> None:
    frame = pd.DataFrame({"q": ["a"] * 30 + ["b"] * 20 + ["c"], "s": list("xyz") * 17})
    schema = {"quasi_identifiers": {"q": {"kind": "categorical"}}, "sensitive": "s"}
    (entry,) = dit.audit(frame, schema=schema, measures=[{"name": "discrimination", "target": "s", "keys": ["q"]}]).measures
    assert [(line["value"], line["count"]) for line in entry["by_value"]] == [("a", 30), (None, 20)]


def test_the_one_person_with_a_rare_secret_is_not_shown_by_their_class() -> None:
    frame = pd.DataFrame({"q": ["a"] * 20 + ["b"] * 20, "s": ["x"] * 39 + ["rare"]})
    schema = {"quasi_identifiers": {"q": {"kind": "categorical"}}, "sensitive": "s"}
    (entry,) = dit.audit(frame, schema=schema, measures=[{"name": "discrimination", "attack": "skewness"}]).measures
    assert [(line["value"], line.get("values")) for line in entry["by_value"]] == [(None, 2)]
    assert "rare" not in json.dumps(entry)


def test_figures_of_groups_have_limited_precision(folder: Path) -> None:
    figures = [line[name] for entry in entries(folder) for line in entry["by_value"] for name in ("rate", "refinement")]
    assert all(figure == float(f"{figure:.2f}") for figure in figures)
    assert len(np.unique(figures)) > 10


def test_the_attack_works_on_figures_that_are_not_rounded(people: pd.DataFrame) -> None:
    measures = [measure | {"records": True, "show_values": True} for measure in MEASURES[:3]]
    kept = dit.audit(people, schema=SCHEMA, measures=measures)  # its folder goes with it
    shown = Path(kept.url)
    assert recover_cells(shown, people) > ROWS  # the attacker of this module is no weak one
