"""Results do not depend on how the work is cut or who does it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import dit_dask as dit
from dit_dask import run
from dit_dask.audit import plan as planner
from dit_dask.audit.grammar import check_config
from dit_dask.execution import tests
from dit_dask.execution.progress import Silent
from dit_dask.execution.workers import Workers
from dit_dask.inputs import datasets
from dit_dask.storage import scratch
from tests.cluster.runs import assert_same, rows, summary
from tests.cluster.runs import dit as dit_command

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}
TESTS = [
    {"sanitizer": {"name": "mondrian", "k": [2, 6]}},
    {"sanitizer": {"name": "mondrian", "l": 2}, "adversary": "conditional-frequency", "records": {"sample": 90, "seed": 2}},
    {
        "sanitizer": "raw",
        "adversary": {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 2}},
        "records": [0, 7, 250],
    },
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audited(tmp_path_factory.mktemp("one"))


def audited(output: Path, client: Any = None) -> Path:
    result = dit.audit(datasets.census(300), schema=SCHEMA, tests=TESTS, output=str(output), client=client, seed=11)
    return Path(result.url)


@pytest.mark.parametrize("records_per_part", [1, 7, 1000])
def test_part_size_changes_no_row_and_no_figure(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records_per_part: int
) -> None:
    cut = planner.cut
    monkeypatch.setattr(planner, "cut", lambda first, _, rows: cut(first, records_per_part, rows))
    folder = audited(tmp_path)
    parts = list((folder / "records" / "mondrian-k2").iterdir())
    assert (len(parts) > 10) == (records_per_part < 10)
    assert_same(undisturbed, folder)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_worker_processes_changes_no_row_and_no_figure(undisturbed: Path, tmp_path: Path, workers: int) -> None:
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        assert_same(undisturbed, audited(tmp_path, client))


def test_parts_of_few_rows_change_no_row_and_no_figure(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "MOST_ROWS", 7)
    folder = audited(tmp_path)
    assert len(list((folder / "records" / "mondrian-k2").iterdir())) >= 300 / 7
    assert_same(undisturbed, folder)


def test_parts_have_the_same_bytes_whoever_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MOST_ROWS", 40)
    monkeypatch.setattr(tests, "SENT_RECORDS", 0)  # workers are sent once what they make the parts from
    monkeypatch.setattr(scratch, "IN_MEMORY_BYTES", 1)
    monkeypatch.setattr(scratch, "SHARED_BYTES", 1)
    config = check_config(
        {
            "version": 1,
            "name": "whoever",
            "data": {"source": "dit://census", "limit": 400},
            "schema": SCHEMA,
            "tests": [{"sanitizer": {"name": "mondrian", "k": [2, 6]}}],
            "output": str(tmp_path / "one"),
        },
        str(tmp_path),
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        everyone = [Workers(None, 1), Workers(None, 3), Workers(lambda: nullcontext(client), 2)]
        folders = []
        for number, workers in enumerate(everyone):
            place = replace(config, output=replace(config.output, url=str(tmp_path / str(number))))
            folders.append(Path(run.run(run.prepare(place), workers, Silent()).folder.url))
    for other in folders[1:]:
        assert_same(folders[0], other)
        files = sorted(path.relative_to(other) for path in other.glob("records/*/*.parquet"))
        assert len(files) >= 20
        assert files == sorted(path.relative_to(folders[0]) for path in folders[0].glob("records/*/*.parquet"))
        assert all((other / name).read_bytes() == (folders[0] / name).read_bytes() for name in files)


def test_one_plan_gives_the_same_bytes(undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = planner.cut
    monkeypatch.setattr(planner, "cut", lambda first, _, rows: cut(first, 40, rows))
    one, other = audited(tmp_path / "a"), audited(tmp_path / "b")
    files = sorted(path.relative_to(one) for path in one.glob("records/*/*.parquet"))
    assert len(files) > 10
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in files)


def test_each_audited_row_has_exactly_one_row_and_equal_rows_repeat_their_distance(undisturbed: Path) -> None:
    people = datasets.census(300)
    everyone = rows(undisturbed, "mondrian-k2")
    assert everyone["record"].tolist() == list(range(300))
    assert everyone["record"].dtype == np.int64
    columns = ["age", "education", "sex", "occupation"]
    assert everyone["multiplicity"].tolist() == people.groupby(columns)["age"].transform("size").tolist()
    assert (everyone.join(people).groupby(columns)["distance"].nunique() == 1).all()
    assert rows(undisturbed, [entry["test"] for entry in summary(undisturbed)][3])["record"].tolist() == [0, 7, 250]


def test_a_cluster_that_already_runs_can_be_used_by_its_address(config_file: Path, tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        there = dit_command("run", config_file, "--out", tmp_path / "there", "--cluster", cluster.scheduler_address)
    here = dit_command("run", config_file, "--out", tmp_path / "here")
    assert there.returncode == here.returncode == 0, there.stderr
    assert "not encrypted" not in there.stderr  # nobody else reaches loopback
    assert_same(Path(there.stdout.splitlines()[-1]), Path(here.stdout.splitlines()[-1]))
