"""Runs whose rows stay with the workers that read them have the same files as runs that have all rows in one process."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
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
from dit_dask.audit.part_source import AuditedRows
from dit_dask.errors import InputError
from dit_dask.execution import reading, tests, workers
from dit_dask.execution.cluster_session import ClusterSession
from dit_dask.execution.progress import Silent
from dit_dask.execution.reading import Gatherer, WorkerPieces
from dit_dask.execution.workers import Workers
from dit_dask.inputs import datasets, partitions
from dit_dask.inputs.load import load
from dit_dask.inputs.local_pieces import LocalPieces
from dit_dask.storage.folder import Folder
from dit_dask.values.pieces import PieceColumn, RowPiece
from tests.cluster.runs import assert_same

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}, "sex": {"kind": "categorical"}},
    "sensitive": "occupation",
}
MONDRIAN = {"sanitizer": {"name": "mondrian", "k": 5}}
SAMPLED = MONDRIAN | {"records": {"sample": 60, "seed": 2}}
TRAINED = {"sanitizer": {"name": "mondrian", "k": 20}, "adversary": "bernoulli-nb", "engine": "brute-force"}
BINNED = {"sanitizer": {"name": "laplace", "epsilon": 1.0, "bins": {"age": 4}}}
QUANTILES = MONDRIAN | {"encoder": {"continuous": "quantiles-before", "categorical": "hot"}, "records": [3, 700, 1100]}
REPEATED = {"sanitizer": {"name": "laplace", "epsilon": 1.0, "bins": {"age": 3}}, "method": "simulate", "samples": 500}
CASES: dict[str, dict[str, Any]] = {
    "all rows": {"tests": [MONDRIAN, SAMPLED, TRAINED]},
    "recoded": {"tests": [BINNED, QUANTILES, REPEATED]},
    "some rows dropped": {"tests": [MONDRIAN, BINNED], "data": {"missing": {"age": [30, 31]}}},
    "the first rows": {"tests": [MONDRIAN], "data": {"limit": 777}},
    "a sample of rows": {"tests": [MONDRIAN, SAMPLED], "data": {"sample": {"rows": 800, "seed": 4}, "missing": {"age": [30]}}},
    "persons": {"tests": [MONDRIAN, SAMPLED], "schema": SCHEMA | {"subject": "person"}},
    "several secrets": {
        "tests": [MONDRIAN],
        "schema": SCHEMA | {"sensitive": ["occupation", {"joint": ["occupation", "race"]}]},
    },
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The census in a few files, with a person for every two rows."""
    folder = tmp_path_factory.mktemp("census")
    frame = datasets.census(1200)
    frame["person"] = [f"p{number // 2 * 7 % 600}" for number in range(len(frame))]
    for number, people in enumerate(np.array_split(np.arange(len(frame)), 5)):
        frame.iloc[people].to_parquet(folder / f"{number}.parquet", row_group_size=100)
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of small parts stay with the workers, too; parts of the source and of results are many."""
    monkeypatch.setattr(reading, "FEWEST_ROWS", 0)
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 130)
    monkeypatch.setattr(planner, "MOST_ROWS", 90)


def audit(census: Path, output: Path, client: Client | None, case: dict[str, Any], disturb: Callable[[], None] = int) -> Path:
    """Run an audit; `disturb` is called when the rows have been read."""
    data = {"source": f"{census}/*.parquet", **case.get("data", {})}
    document = {"name": "rows", "data": data, "schema": case.get("schema", SCHEMA), "tests": case["tests"]}
    checked = check_config(document | {"version": 1, "output": str(output), "seed": 5}, ".")
    connect = None if client is None else (lambda: nullcontext(client))
    prepared = run.prepare(checked, gather=Gatherer(client))
    assert isinstance(prepared.rows.index, PieceColumn) == (client is not None)
    disturb()
    return Path(run.run(prepared, Workers(connect, 2), Silent()).folder.url)


@pytest.mark.parametrize("name", CASES)
def test_rows_on_workers_change_no_file(census: Path, client: Client, tmp_path: Path, name: str) -> None:
    here = audit(census, tmp_path / "here", None, CASES[name])
    there = audit(census, tmp_path / "there", client, CASES[name])
    assert here.name == there.name
    assert_same(here, there)


def kill_all(client: Client) -> None:
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)


def test_workers_that_die_after_they_have_read_the_rows_change_no_file(census: Path, client: Client, tmp_path: Path) -> None:
    case = CASES["some rows dropped"]
    there = audit(census, tmp_path / "there", client, case, lambda: kill_all(client))
    assert_same(audit(census, tmp_path / "here", None, case), there)


def rows_kept(client: Client) -> set[str]:
    """The pieces of rows that workers keep for the client."""
    return {key for key in client.futures if key.startswith(("rows-", "keep-"))}


def are_let_go(client: Client, before: set[str]) -> bool:
    """Whether the client lets go of all but some pieces soon: its loop, another thread, does it."""
    gc.collect()
    for _ in range(100):
        if rows_kept(client) <= before:
            return True
        time.sleep(0.1)
    return False


def test_a_source_that_changes_before_lost_rows_are_written_is_named(census: Path, client: Client, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(census, source)

    def change() -> None:
        (source / "4.parquet").write_bytes((source / "0.parquet").read_bytes())
        kill_all(client)

    with pytest.raises(InputError, match=r"^data.source: 4.parquet changed while it was read; run the audit again$"):
        audit(source, tmp_path / "out", client, CASES["all rows"], change)


def test_measures_that_need_no_other_columns_have_the_rows_here(census: Path, client: Client, tmp_path: Path) -> None:
    document = {"version": 1, "name": "rows", "data": {"source": f"{census}/*.parquet"}, "schema": SCHEMA, "tests": [MONDRIAN]}
    checked = check_config(document | {"output": str(tmp_path), "measures": [{"name": "utility"}]}, ".")
    here, there = (run.prepare(checked, gather=Gatherer(own)) for own in (None, client))
    assert here.folder == there.folder
    assert not isinstance(there.rows.index, PieceColumn)


def test_a_run_goes_on_with_rows_on_workers_where_an_earlier_one_stopped(
    census: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES["all rows"]
    here = audit(census, tmp_path / "here", None, case)
    with monkeypatch.context() as patch:
        patch.setattr(tests.TestTasks, "reduce", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            audit(census, tmp_path / "there", None, case)
    (folder,) = (tmp_path / "there").glob("rows-*")
    kept = sorted((folder / "records" / "mondrian-k5").iterdir())
    for part in kept[::2]:
        part.unlink()
    times = {part: part.stat().st_mtime_ns for part in kept[1::2]}
    assert_same(here, audit(census, tmp_path / "there", client, case))
    assert {part: part.stat().st_mtime_ns for part in times} == times


def test_another_run_that_wrote_something_else_is_taken_over_as_without_workers(
    census: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are there when this run comes to write them, though they were not when it began."""
    case = {"tests": [MONDRIAN]}
    here = audit(census, tmp_path / "here", None, case)
    there = audit(census, tmp_path / "there", None, case)
    for part in (there / "manifest.json", there / "summary.json"):
        part.unlink()
    monkeypatch.setattr(Folder, "names", lambda *_: set())
    assert_same(here, audit(census, tmp_path / "there", client, case))


def test_the_command_has_no_array_as_long_as_the_table(census: Path, client: Client) -> None:
    document = {"version": 1, "name": "rows", "data": {"source": f"{census}/*.parquet"}, "schema": SCHEMA, "tests": [MONDRIAN]}
    checked = check_config(document, ".")
    prepared = run.prepare(checked, gather=Gatherer(client))
    index = prepared.rows.index
    assert isinstance(index, PieceColumn)
    assert isinstance(index.pieces, WorkerPieces)
    assert not isinstance(index.pieces, LocalPieces)
    assert sum(index.pieces.sizes) == len(index) == prepared.rows.used
    arrays = [value for value in vars(prepared.rows).values() if isinstance(value, np.ndarray)]
    assert all(len(array) <= prepared.rows.table.distinct for array in arrays)
    assert replace(prepared.rows, index=np.asarray(index)).digest() == prepared.rows.digest()


def test_no_task_is_sent_an_array_as_long_as_the_records(
    census: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tests, "SENT_RECORDS", 0)  # all that parts are made of but their rows is sent to workers once
    sent: list[AuditedRows] = []
    submit = ClusterSession.submit

    def spy(session: ClusterSession, *arguments: Any, **options: Any) -> Any:
        sent.extend(one for one in arguments if isinstance(one, AuditedRows))
        return submit(session, *arguments, **options)

    monkeypatch.setattr(ClusterSession, "submit", spy)
    case = CASES["recoded"] | {"tests": [BINNED, QUANTILES | {"records": "all"}]}
    there = audit(census, tmp_path / "there", client, case)
    assert len(sent) > 1
    assert not [value for one in sent for value in vars(one).values() if isinstance(value, np.ndarray)]
    assert_same(audit(census, tmp_path / "here", None, case), there)


def refuse(piece: RowPiece) -> int:
    raise InputError("no")


def test_a_task_that_failed_keeps_no_rows_on_workers(census: Path, client: Client) -> None:
    checked = check_config(
        {"version": 1, "data": {"source": f"{census}/*.parquet"}, "schema": SCHEMA, "tests": [MONDRIAN]}, "."
    )
    before = rows_kept(client)
    rows = load(checked, gather=Gatherer(client))
    assert isinstance(rows.index, PieceColumn)
    with suppress(InputError):
        rows.index.pieces.collect(refuse, [()] * len(rows.index.pieces.sizes))
    assert rows_kept(client) > before
    del rows
    assert are_let_go(client, before)


def test_a_result_keeps_no_rows_on_workers_and_names_a_source_that_changed(
    census: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LARGE_BYTES", 0)
    source = tmp_path / "source"
    shutil.copytree(census, source)
    ways = {"schema": SCHEMA, "tests": [MONDRIAN], "client": client, "quiet": True}
    before = rows_kept(client)
    results = [dit.audit(f"{source}/*.parquet", output=tmp_path / "out", **ways) for _ in range(2)]
    assert are_let_go(client, before)
    assert len(results[0].worst(2)) == 2
    (source / "4.parquet").write_bytes((source / "0.parquet").read_bytes())
    with pytest.raises(InputError, match=r"^data: the source has changed since it was audited; run the audit again$"):
        results[1].release()
