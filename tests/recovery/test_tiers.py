"""Attackers with parts of what an audit writes, for every kind of test: the levels of docs/privacy-of-audits.md."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dit_dask as dit
from dit_dask.audit.grammar import check_config
from dit_dask.cli import main
from dit_dask.run import prepare
from tests.audits import loaded
from tests.conftest import ROOT

ROWS = 120
SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}
TOWNS = [f"Town{letter}" for letter in "ABC"] + [f"Hamlet{number}" for number in range(6)]
ILLNESSES = ["Cold", "Flu", "Gout", "Kuru"]
KINDS: dict[str, Mapping[str, Any]] = {
    "mondrian": {"sanitizer": {"name": "mondrian", "k": 3}},
    "laplace": {"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": 3}}},
    "external": {"sanitizer": {"name": "python", "target": f"{__name__}:coarsen", "timeout": 60}, "records": [0, 1, ROWS - 1]},
}
ATTACKS = ["identity", "homogeneity", "background-knowledge", "skewness"]
MEASURES = [
    {"name": "discrimination", "target": "illness", "keys": ["age", "town"]},
    {"name": "discrimination", "keys": ["town"]},
    {"name": "discrimination", "attack": ATTACKS},
    {"name": "discrimination", "attack": "identity", "keys": ["age"]},
]


def coarsen(frame: pd.DataFrame) -> pd.DataFrame:
    """A black box that hides the town and groups ages."""
    return frame.assign(town="*", age=(frame["age"] // 50 * 50).map(lambda low: f"[{low}, {low + 49}]"))


def make_people() -> pd.DataFrame:
    """People with common and rare towns and illnesses, and one whose every value is their own."""
    rng = np.random.default_rng(5)
    age = np.append(rng.integers(41000, 41030, ROWS - 1), 98765)  # numbers that nothing else in a run folder has
    town = np.append(rng.choice(TOWNS, ROWS - 1, p=[0.3] * 3 + [0.1 / 6] * 6), "Solitude")
    illness = np.append(rng.choice(ILLNESSES, ROWS - 1, p=[0.5, 0.3, 0.17, 0.03]), "Porphyria")
    return pd.DataFrame({"age": age, "town": town, "illness": illness})


PEOPLE = make_people()


@dataclass(frozen=True)
class Audit:
    """A finished run: what may be shared, what may not, and what was printed."""

    shared: Path
    private: Path
    printed: str

    def texts(self) -> dict[str, str]:
        """All shared files as texts, tables as their cells."""
        found = {}
        for path in [*self.shared.rglob("*"), self.shared.parent / "index.json"]:
            if path.suffix == ".parquet":
                found[path.name] = pq.read_table(io.BytesIO(path.read_bytes())).to_pandas().to_csv()
            elif path.is_file():
                found[path.name] = path.read_text()
        return found


@pytest.fixture(scope="module", params=KINDS)
def audit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp(request.param)
    PEOPLE.to_csv(folder / "people.csv", index=False)
    document = {
        "version": 1,
        "data": {"source": "people.csv"},
        "schema": SCHEMA,
        "tests": [KINDS[request.param]],
        "measures": MEASURES,
        "output": {"url": str(folder / "shared"), "private": str(folder / "private")},
        "cluster": {"kind": "local", "workers": 1},
    }
    (folder / "audit.yaml").write_text(json.dumps(document))
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, io.StringIO() as log:
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", log)
        patch.setenv("PYTHONPATH", str(ROOT))
        code = main(["run", str(folder / "audit.yaml")])
        printed = out.getvalue() + log.getvalue()
    assert code == 0, printed
    (shared,) = (folder / "shared").glob("audit-*")
    return Audit(shared, folder / "private", printed)


def recognised(text: str) -> list[str]:
    """The values of the table that fewer than ten people share, as far as a text has them."""
    rare = []
    for name in PEOPLE.columns:
        counts = PEOPLE[name].value_counts()
        rare += [str(value) for value in counts[counts < 10].index]
    return [value for value in rare if re.search(rf"\b{value}\b", text)]


def test_the_attacker_with_the_shared_folder_finds_no_value_of_few_people(audit: Audit) -> None:
    assert {name: recognised(text) for name, text in audit.texts().items() if recognised(text)} == {}


def test_the_attacker_with_the_report_finds_no_more_than_the_folder_tells(audit: Audit) -> None:
    report = audit.texts()["report.html"]
    assert recognised(report) == []
    listed = json.dumps(json.loads(audit.texts()["measures.json"]))
    named = {value for name in PEOPLE for value in PEOPLE[name].astype(str).unique() if re.search(rf"\b{value}\b", report)}
    assert all(value in listed for value in named)


def test_the_attacker_with_logs_and_terminal_finds_no_value_of_anyone(audit: Audit) -> None:
    values = {str(value) for name in PEOPLE for value in PEOPLE[name].unique()}
    assert [value for value in values if re.search(rf"\b{value}\b", audit.printed)] == []


def test_the_attacker_with_the_shared_folder_finds_no_figure_by_record(audit: Audit) -> None:
    for path in audit.shared.rglob("*.parquet"):
        assert path.name == "distributions.parquet"
        assert pq.read_schema(path).names == ["test", "distance", "cumulative", "cumulative_distinct"]
    for entry in json.loads((audit.shared / "measures.json").read_text()):
        assert entry["columns"] == []
        assert all(line["count"] >= 10 for line in (*entry["by_value"], *entry.get("partitions", ())))
    assert list(audit.private.rglob("records/*/*.parquet"))


def test_the_attacker_with_folder_and_released_table_learns_nothing_of_classes_that_the_release_does_not_tell() -> None:
    result = dit.audit(PEOPLE, schema=SCHEMA, tests=[KINDS["mondrian"]], measures=[MEASURES[2] | {"attack": "homogeneity"}])
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "tests": [KINDS["mondrian"]]}
    prepared = prepare(check_config(document, "."), PEOPLE)
    counts = prepared.tests[0].procedure.publish(prepared.rows.table).counts
    secrets = counts.sum(axis=0) / counts.sum()
    entropy = -(secrets[secrets > 0] * np.log2(secrets[secrets > 0])).sum()
    from_release = set()
    for row in counts[counts.sum(axis=1) >= 10]:
        share = row[row > 0] / row.sum()
        from_release.add((int(row.sum() / 5 + 0.5) * 5, round(1 + float((share * np.log2(share)).sum() / entropy), 2) + 0.0))
    (entry,) = (one for one in result.measures if one["sanitizer"])
    assert {(line["count"], line["refinement"]) for line in entry["by_value"] if line["value"]} <= from_release


def test_the_attacker_with_shared_folder_and_quasi_identifiers_finds_no_secret_beside_a_known_value(audit: Audit) -> None:
    """Values that the attacker knows come without a secret, and secrets without such a value: the best guess is the mode."""
    for entry in json.loads((audit.shared / "measures.json").read_text()):
        known = json.dumps([line["value"] for line in entry["by_value"]])
        assert [illness for illness in PEOPLE["illness"].unique() if re.search(rf"\b{illness}\b", known)] == []
        secrets = json.dumps([entry.get("partitions", []), entry.get("worst", {})])
        assert [town for town in PEOPLE["town"].unique() if re.search(rf"\b{town}\b", secrets)] == []


def test_who_knows_all_other_cells_finds_the_last_one_by_the_digest(audit: Audit) -> None:
    """The documented level of the fingerprint: no help for whoever lacks more than a few cells."""
    digest = json.loads((audit.shared / "manifest.json").read_text())["input"]["digest"]
    matches = [
        illness
        for illness in ILLNESSES
        if loaded(PEOPLE.assign(illness=[illness, *PEOPLE["illness"][1:]]), SCHEMA).digest() == digest
    ]
    assert matches == [PEOPLE["illness"][0]]


def test_records_and_quasi_identifiers_tell_which_people_share_a_secret() -> None:
    """Why records/ is private: among people with equal quasi-identifiers, figures differ where secrets do."""
    known = PEOPLE.assign(age=40)
    tests = [{"sanitizer": {"name": "mondrian", "k": 3}}]
    schema = SCHEMA | {"quasi_identifiers": {"town": {"kind": "categorical"}}}
    parts = dit.audit(known, schema=schema, tests=tests).distances()
    groups = known.assign(multiplicity=parts["multiplicity"], distance=parts["distance"]).groupby("town")
    rebuilt = groups[["multiplicity", "distance"]].apply(lambda group: len(group.drop_duplicates()))
    true = groups["illness"].nunique()
    assert (rebuilt == true).mean() > 0.5
