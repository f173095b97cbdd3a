"""The task runner with real processes: workers killed or stopped under measures and the first calls of a sanitizer."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from dit_dask import cluster, run
from dit_dask.audit.grammar import read_config
from dit_dask.audit.measure_plan import Measurement, MeasurePlan
from dit_dask.config.cluster import DEFAULT
from dit_dask.execution.external import probe_on_cluster, probe_on_worker
from dit_dask.execution.measures import execute_measures
from dit_dask.execution.progress import Silent
from dit_dask.execution.runner import TaskRunner, TaskSession
from dit_dask.execution.stall import StalledError, Watchdog
from dit_dask.execution.workers import Workers
from tests.cluster.runs import dit
from tests.cluster.stopping import SignallingMeasure, StopsWhenSent

STALL_SECONDS = 6.0  # less could pass on a busy machine without any fault


class Notes(Silent):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def import_package() -> None:
    import_module("dit_dask.run")


@pytest.fixture
def client() -> Iterator[Client]:
    """Two workers for one test, for Dask may not start one again that is killed while it starts.

    They have imported what would take some of the stall limit, and go on after a test that stopped them.
    """
    with cluster.connect(replace(DEFAULT, workers=2)) as client:
        client.wait_for_workers(2, timeout=120)
        client.run(import_package)
        yield client
        for nanny in client.cluster.workers.values():
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGCONT)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """One line for each signal."""
    return tmp_path / "log"


@pytest.fixture
def prepared(config_file: Path) -> run.PreparedRun:
    """A run without tests and measures."""
    measures = json.dumps([{"name": "discrimination", "target": "illness", "keys": ["job"]}])
    output = config_file.parent / "out"
    return run.prepare(read_config(str(config_file), ["tests=[]", f"measures={measures}", f"output={output}"]))


def with_measure(prepared: run.PreparedRun, number: int, log: Path, times: int) -> run.PreparedRun:
    """The same run with one measurement, which sends its worker a signal some times."""
    assert prepared.measure_plan is not None
    measurement = Measurement("sum", "sum", {"name": "sum"}, SignallingMeasure(number, str(log), times), {}, None)
    return replace(prepared, measure_plan=MeasurePlan(prepared.measure_plan.shared_inputs, [measurement], ""))


def with_sanitizer(config_file: Path, number: int, log: Path, times: int) -> run.PreparedRun:
    """A run of one test of a sanitizer that sends its worker a signal some times, the first time when it is called first."""
    parameters = {"number": number, "log": str(log), "times": times}
    sanitizer = {"name": "python", "target": "tests.cluster.stopping:sanitize", "params": parameters, "cache": "none"}
    tests = json.dumps([{"sanitizer": sanitizer, "records": [0, 7]}])
    return run.prepare(read_config(str(config_file), [f"tests={tests}", f"output={log}-runs"]))


@pytest.mark.parametrize(("kills", "allowed_failures"), [(3, 3), (2, 1)], ids=["data lost", "given up by Dask"])
def test_a_measure_whose_worker_is_killed_several_times_gives_the_same_result(
    client: Client, prepared: run.PreparedRun, log: Path, monkeypatch: pytest.MonkeyPatch, kills: int, allowed_failures: int
) -> None:
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", allowed_failures)
    plan, notes = with_measure(prepared, signal.SIGKILL, log, kills).measure_plan, Notes()
    assert plan is not None
    (entry,) = execute_measures(TaskRunner(client, progress=notes), plan, prepared.folder)
    assert len(log.read_text().splitlines()) == kills
    assert any("lost its workers" in text for text in notes.texts)
    assert (entry.value, entry.records) == (sum(range(60)), 60)


def test_first_calls_whose_worker_is_killed_several_times_give_the_same_result(
    client: Client, config_file: Path, log: Path
) -> None:
    kills, notes = 2, Notes()
    (test,) = with_sanitizer(config_file, signal.SIGKILL, log, kills).tests
    undisturbed, expected_risk = probe_on_worker(with_sanitizer(config_file, signal.SIGKILL, log, 0).tests[0])
    probe, risk = probe_on_cluster(TaskRunner(client, progress=notes), test)
    assert len(log.read_text().splitlines()) == kills
    assert any("lost its workers" in text for text in notes.texts)
    assert replace(probe, seconds=0.0) == replace(undisturbed, seconds=0.0)
    np.testing.assert_array_equal(risk, expected_risk)


def assert_stalls(prepared: run.PreparedRun, client: Client, waiting_for: str) -> None:
    """A run on workers that are there already ends, with one line about what it waits for."""
    workers = Workers(lambda: nullcontext(client), 2, stall_seconds=STALL_SECONDS)
    with pytest.raises(StalledError) as caught:
        run.run(prepared, workers, Silent())
    assert str(caught.value).startswith(f"no progress for 0.1 minutes, waiting for {waiting_for}")
    assert "\n" not in str(caught.value)


def test_a_measure_on_a_stopped_worker_is_named_within_the_stall_limit(
    client: Client, prepared: run.PreparedRun, log: Path
) -> None:
    assert_stalls(with_measure(prepared, signal.SIGSTOP, log, 1), client, "measure-sum-")


def test_first_calls_on_a_stopped_worker_are_named_within_the_stall_limit(client: Client, config_file: Path, log: Path) -> None:
    assert_stalls(with_sanitizer(config_file, signal.SIGSTOP, log, 1), client, "first-calls-python-")


def test_data_for_a_stopped_worker_are_named_within_the_stall_limit(
    client: Client, prepared: run.PreparedRun, log: Path
) -> None:
    nanny = next(iter(client.cluster.workers.values()))
    os.kill(nanny.pid, signal.SIGSTOP)
    assert_stalls(with_measure(prepared, signal.SIGSTOP, log, 0), client, "workers to receive the data")


def test_a_result_on_a_stopped_worker_is_named_within_the_stall_limit(client: Client, log: Path) -> None:
    def work(session: TaskSession) -> None:
        arguments = (signal.SIGSTOP, str(log))
        session.submit(StopsWhenSent, *arguments, key="stops", description="stops")
        for future in session.completed():
            session.result(future)

    with pytest.raises(StalledError, match="waiting for the result of stops-"):
        TaskRunner(client, Watchdog(STALL_SECONDS)).run(work)


def test_no_warning_of_dask_reaches_the_terminal_however_large_a_task_is(config_file: Path, tmp_path: Path) -> None:
    tiny = {"DASK_DISTRIBUTED__ADMIN__LARGE_GRAPH_WARNING_THRESHOLD": "1kB"}  # so that every task counts as large
    done = dit("run", config_file, "--out", tmp_path / "out", "--workers", 1, **tiny)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("dit: ")] == []
