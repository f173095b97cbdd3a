"""Reading a source on workers, and sharing arrays with them: the same rows, also where something fails meanwhile."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

from dit_dask import cluster
from dit_dask.config.cluster import DEFAULT
from dit_dask.errors import InputError
from dit_dask.execution import cluster_session, hosts, reading
from dit_dask.execution.cluster_session import ClusterSession, call_on_all
from dit_dask.execution.reading import Gatherer
from dit_dask.execution.stall import Watchdog
from dit_dask.inputs import datasets
from dit_dask.inputs.collapsed import CollapsedRows
from dit_dask.inputs.load import load
from dit_dask.inputs.partitions import Partition, PartitionReader, gather_here
from dit_dask.storage import filesystem, scratch
from dit_dask.values.pieces import PieceColumn
from dit_dask.values.table import Rows
from tests.audits import checked
from tests.cluster.runs import dit
from tests.cluster.s3_server import S3Access, SeaweedServer
from tests.cluster.stopping import SignallingReader
from tests.cluster.test_faults import Tell

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}},
    "sensitive": "occupation",
}
FILES = 5
CONFIG = f"""\
version: 1
name: parts
data: {{source: "*.parquet"}}
schema: {SCHEMA}
tests: [{{sanitizer: {{name: mondrian, k: 5}}}}]
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster.connect(replace(DEFAULT, workers=2)) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The census in a few files."""
    folder = tmp_path_factory.mktemp("census")
    for number, people in enumerate(np.array_split(np.arange(3000), FILES)):
        datasets.census(3000).iloc[people].to_parquet(folder / f"{number}.parquet", row_group_size=200)
    return folder


@pytest.fixture
def tell(record_property: Tell) -> Tell:
    return record_property


def read(source: str, gather: Any = gather_here, **data: Any) -> Rows:
    return load(checked(SCHEMA, data={"source": source, **data}), gather=gather)


def assert_same_rows(one: Rows, other: Rows) -> None:
    assert (one.digest(), one.read, one.dropped, one.files) == (other.digest(), other.read, other.dropped, other.files)
    np.testing.assert_array_equal(np.asarray(one.source_row), np.asarray(other.source_row))


def signalling(client: Client, number: int, log: Path, times: int) -> Any:
    """Have parts read by workers that a signal meets."""

    def gather(reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        known = {name: getattr(reader, name) for name in ("location", "columns", "rules")}
        return Gatherer(client)(SignallingReader(**known, number=number, log=str(log), times=times), partitions)

    return gather


@pytest.fixture(params=["rows come here", "rows stay"])
def stays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the rows of small parts, too, stay with the workers that read them."""
    is_kept = request.param == "rows stay"
    if is_kept:
        monkeypatch.setattr(reading, "FEWEST_ROWS", 0)
    return is_kept


@pytest.mark.parametrize("options", [{}, {"limit": 700}, {"sample": {"rows": 900, "seed": 4}}, {"missing": {"age": [30]}}])
def test_workers_read_the_same_rows(census: Path, client: Client, stays: bool, options: dict[str, Any]) -> None:
    source = f"{census}/*.parquet"
    found = read(source, Gatherer(client), **options)
    assert isinstance(found.index, PieceColumn) == stays
    assert_same_rows(read(source, **options), found)


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
@pytest.mark.parametrize("on_workers", [True, False])
def test_how_text_is_read_is_said_once_and_only_to_who_listens(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture, level: int, on_workers: bool
) -> None:
    for number in range(4):
        datasets.census(100).to_csv(tmp_path / f"{number}.csv", sep=";", index=False)
    with caplog.at_level(level, "dit_dask.inputs"):
        caplog.handler.setLevel(logging.NOTSET)  # as that of the command, which leaves it to the logger
        read(f"{tmp_path}/*.csv", Gatherer(client if on_workers else None))
    said = [f"data.source: {number}.csv is read with separator ';'" for number in range(4) if level == logging.INFO]
    assert sorted(text.partition(",")[0] for text in caplog.messages) == said


@contextmanager
def workers_replaced(client: Client) -> Iterator[list[int]]:
    """Yield the processes of the workers; then wait until others are there, where need be with a call that replaces them."""
    before = list(client.run(os.getpid).values())
    yield before
    for _ in range(240):
        is_running = [nanny.status.name == "running" for nanny in client.cluster.workers.values()]
        present = call_on_all(client, os.getpid)
        if len(is_running) == len(present) == 2 and all(is_running) and not {*present} & {*before, None}:
            return
        client.cluster.scale(2)
        time.sleep(0.5)
    raise TimeoutError("workers were not replaced")


@pytest.mark.usefixtures("stays")
def test_the_rows_of_a_lost_worker_are_read_again(census: Path, client: Client, tell: Tell) -> None:
    expected, found = read(f"{census}/*.parquet"), read(f"{census}/*.parquet", Gatherer(client))
    with workers_replaced(client) as processes:
        for process in processes:
            os.kill(process, signal.SIGKILL)
        assert_same_rows(expected, found)
    tell("fault", "all workers killed after they have read the source")
    tell("seen", "the parts were read again by those that replaced them")


@dataclass(frozen=True, eq=False)
class KillingReader(PartitionReader):
    """Kills its worker where a file tells it to, once."""

    flag: str = ""

    def read(self, partition: Partition) -> CollapsedRows:
        with suppress(FileNotFoundError):
            os.remove(self.flag)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(partition)


def test_rows_that_killed_the_workers_that_read_them_again_are_tried_once_more(
    census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FEWEST_ROWS", 0)

    def gather(reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        own = KillingReader(reader.location, reader.columns, reader.rules, flag=f"{tmp_path}/flag")
        return Gatherer(client)(own, partitions)

    with cluster.connect(replace(DEFAULT, workers=2)) as client:
        client.wait_for_workers(2, timeout=120)
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        found = read(f"{census}/*.parquet", gather)
        (tmp_path / "flag").touch()
        for process in client.run(os.getpid).values():
            os.kill(process, signal.SIGKILL)
        assert_same_rows(read(f"{census}/*.parquet"), found)
        assert not (tmp_path / "flag").exists()


def test_a_file_that_changes_before_lost_rows_are_read_again_is_named(
    census: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FEWEST_ROWS", 0)
    for path in census.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    found = read(f"{tmp_path}/*.parquet", Gatherer(client))
    last = tmp_path / f"{FILES - 1}.parquet"
    last.write_bytes((tmp_path / "0.parquet").read_bytes())
    with workers_replaced(client) as processes:
        for process in processes:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(InputError) as caught:
            found.digest()
    assert str(caught.value) == f"data.source: {last.name} changed while it was read; run the audit again"


@pytest.mark.usefixtures("stays")
def test_a_worker_is_killed_while_it_reads(census: Path, client: Client, tmp_path: Path, tell: Tell) -> None:
    log = tmp_path / "log"
    with workers_replaced(client):
        found = read(f"{census}/*.parquet", signalling(client, signal.SIGKILL, log, times=2))
        assert len(log.read_text().splitlines()) == 2
        assert_same_rows(read(f"{census}/*.parquet"), found)
    tell("fault", "workers killed while they read the source")
    tell("seen", "2 workers killed; their parts were read again by others")


def test_a_bucket_is_away_while_it_is_read(
    census: Path, seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    s3: S3Access = seaweed.access
    fs = s3.client()
    for path in sorted(census.iterdir()):
        fs.put_file(str(path), f"incoming/read/{path.name}")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(filesystem, "FIRST_PATIENCE_SECONDS", 300.0)  # the server may start slowly on a busy machine
    seconds: list[float] = []

    def gather(reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        seaweed.kill()
        restart = threading.Timer(2.0, seaweed.start)
        restart.start()
        start = time.monotonic()
        try:
            return Gatherer()(reader, partitions)
        finally:
            seconds.append(time.monotonic() - start)
            restart.join()

    found = read("s3://incoming/read/*.parquet", gather, storage_options=s3.options)
    assert seconds[0] > 2
    assert_same_rows(replace(read(f"{census}/*.parquet"), files=found.files), found)
    tell("fault", "the storage server (S3) killed while the source is read, and started again")
    tell("seen", f"reading waited, and went on after {seconds[0]:.0f} s")


def write_large(folder: Path) -> list[Path]:
    """Write files of more than 64 MB together, most of it in a column that is not used."""
    paths = []
    for number in range(4):
        people = pa.Table.from_pandas(datasets.census(1000).iloc[number * 250 :][:250], preserve_index=False)
        noise = pa.array([os.urandom(70_000) for _ in range(250)])
        paths.append(folder / f"{number}.parquet")
        pq.write_table(people.append_column("noise", noise), paths[-1], use_dictionary=["education", "occupation"])
    return paths


def test_a_part_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    paths = write_large(tmp_path)
    (tmp_path / "audit.yaml").write_text(CONFIG)
    column = next(
        chunk
        for place in range(pq.read_metadata(paths[2]).num_columns)
        if (chunk := pq.read_metadata(paths[2]).row_group(0).column(place)).path_in_schema == "education"
    )
    content = bytearray(paths[2].read_bytes())
    start = column.dictionary_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    paths[2].write_bytes(bytes(content))
    failed = dit("run", tmp_path / "audit.yaml", "--out", tmp_path / "out", "--workers", 2, "--quiet")
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert "data.source: cannot read 2.parquet: " in failed.stderr
    assert not (tmp_path / "out").exists()


def test_workers_that_do_not_see_the_files_are_not_asked_to_read_them(
    census: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("dit_dask.execution.reading.call_on_all", lambda _, sizes: asked.append(sizes()) or [None])
    monkeypatch.setattr(client, "submit", None)
    assert_same_rows(read(f"{census}/*.parquet"), read(f"{census}/*.parquet", Gatherer(client)))
    assert len(asked[0]) == FILES


def memory_of(values: dict[str, Any]) -> tuple[int, int, int]:
    """On a worker: its process, the sum of the values, and the bytes that it has for itself."""
    total = int(values["numbers"].sum())
    return os.getpid(), total, psutil.Process().memory_full_info().uss


def test_all_workers_map_one_array_and_have_no_copy(client: Client) -> None:
    size = 12_000_000
    numbers = scratch.empty(size, np.int64)
    numbers[:] = 1
    before = max(client.run(lambda: psutil.Process().memory_full_info().uss).values())
    with ClusterSession(client, Watchdog()) as session:
        shared = session.scatter({"numbers": numbers})
        tasks = [session.submit(memory_of, shared, key=f"memory-{number}", description="memory") for number in range(30)]
        assert len(tasks) == 30
        found = [session.result(future) for future in session.completed()]
    assert len({process for process, _, _ in found}) == 2
    assert {total for _, total, _ in found} == {size}
    assert max(own for _, _, own in found) < before + numbers.nbytes // 2


def test_a_value_is_sent_as_a_copy_where_scratch_is_not_seen(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_session, "call_on_all", lambda *_: [False, None])
    monkeypatch.setattr(hosts, "call_on_workers", lambda *_, **__: {})
    numbers = np.arange(400_000)
    with ClusterSession(client, Watchdog()) as session:
        shared = session.scatter({"numbers": numbers})
        assert not shared.key.startswith("SharedValue")
        session.submit(memory_of, shared, key="memory", description="memory")
        (future,) = session.completed()
        assert session.result(future)[1] == numbers.sum()


def test_a_frozen_worker_is_not_waited_for_long(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "ANSWER_SECONDS", 1)
    process = next(iter(client.run(os.getpid).values()))
    os.kill(process, signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert None in call_on_all(client, os.getpid)
        assert time.monotonic() - start < 10
    finally:
        os.kill(process, signal.SIGCONT)
    assert len(call_on_all(client, os.getpid)) == 2


def test_workers_killed_while_they_start_are_replaced_in_the_middle_of_a_session(client: Client) -> None:
    def started() -> list[psutil.Process]:
        found = psutil.Process().children(recursive=True)
        return [process for process in found if "spawn_main" in " ".join(process.cmdline())]

    with workers_replaced(client), ClusterSession(client, Watchdog()) as session:
        last = time.monotonic()
        while time.monotonic() - last < 4:  # until none is started any more: Dask has given up
            with suppress(psutil.Error):
                for process in started():
                    process.kill()
                    last = time.monotonic()
            time.sleep(0.05)
        session.submit(abs, -1, key="abs", description="abs")
        (task,) = session.completed()
        assert session.result(task) == 1
