"""Large values on several machines: each is sent them once, its workers map one file, and no kill changes a result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from distributed import Client

import dit_dask as dit
from dit_dask.execution import hosts
from dit_dask.execution.cluster_session import ClusterSession
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import TaskSession
from dit_dask.execution.stall import Watchdog
from dit_dask.inputs import datasets
from dit_dask.storage import scratch
from tests.cluster.dask_processes import QUIET, cluster
from tests.cluster.separate_hosts import ALONE, WORKER, killed_at_end, skip_without_rights, workers_on_hosts
from tests.cluster.shared_values import (
    BYTES,
    LENGTH,
    SECONDS,
    TOTAL,
    Seen,
    client_of,
    kill,
    look,
    look_on,
    nameless_files,
    private_bytes,
    shared_owner,
    until,
    value,
    workers_of,
)
from tests.cluster.test_faults import Tell


@pytest.fixture
def tell(record_property: Tell) -> Tell:
    return record_property


def test_each_machine_is_sent_the_arrays_once_and_its_workers_map_one_file(tell: Tell) -> None:
    with client_of([2, 2]) as (client, machines):
        workers = workers_of(client)
        before = client.run(private_bytes)
        received = [machine.received() for machine in machines]
        with ClusterSession(client, Watchdog()) as session:
            shared = session.scatter(value())
            found = look_on(client, shared, workers)
            time.sleep(5)  # Dask removes copies that no task waits for
            later = look_on(client, shared, workers)
            found += later
            received = [machine.received() - start for machine, start in zip(machines, received, strict=True)]
            del shared
        until(lambda: nameless_files(client) == [1] * 4)  # their tokens
    assert {one.total for one in found} == {TOTAL}
    assert all(BYTES + LENGTH < size < 1.2 * (BYTES + LENGTH) for size in received)
    files = {machine: {one.file for one in found if one.machine == machine} for machine in {one.machine for one in found}}
    assert len(files) == 2
    assert all(len(some) == 1 and "" not in some for some in files.values())
    grown = {one.worker: one.private - before[one.worker] for one in later}
    assert max(grown.values()) < BYTES // 4, grown
    tell("fault", "none: two machines (network and process namespaces) of two workers each")
    tell("seen", f"of {BYTES + LENGTH:,} bytes each machine received {received[0]:,} and {received[1]:,}")


def test_one_worker_on_each_machine_has_its_copy_as_before() -> None:
    with client_of([1, 1]) as (client, machines):
        received = [machine.received() for machine in machines]
        with ClusterSession(client, Watchdog()) as session:
            shared = session.scatter(value())
            received = [machine.received() - start for machine, start in zip(machines, received, strict=True)]
            assert not shared.key.startswith("SharedValue")
            found = look_on(client, shared, workers_of(client))
    assert [(one.total, one.file) for one in found] == [(TOTAL, "")] * 2
    assert all(size < 1.2 * (BYTES + LENGTH) for size in received), received


def test_a_worker_alone_on_its_machine_has_no_second_copy() -> None:
    with client_of([2, 1]) as (client, _):
        before = max(client.run(private_bytes).values())
        with ClusterSession(client, Watchdog()) as session:
            found = look_on(client, session.scatter(value()), workers_of(client))
    assert {one.total for one in found} == {TOTAL}
    (alone,) = (one for one in found if [other.machine for other in found].count(one.machine) == 1)
    assert alone.file == ""
    assert BYTES < alone.private - before < 1.3 * (BYTES + LENGTH)
    assert all(one.private < before + BYTES // 4 for one in found if one is not alone)


def test_what_a_small_value_is_sent_as_does_not_depend_on_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "share", None)
    with client_of([2]) as (client, _), ClusterSession(client, Watchdog()) as session:
        small = {"numbers": np.arange(3), "ones": np.ones(3, np.int8)}
        assert {one.total for one in look_on(client, session.scatter(small), workers_of(client))} == {6}


@pytest.mark.parametrize("is_mapped", [False, True])
def test_the_owner_is_killed_and_its_machine_still_has_the_file(is_mapped: bool, tell: Tell) -> None:
    with client_of([3, 1], nanny=True) as (client, machines), ClusterSession(client, Watchdog()) as session:
        shared = session.scatter(value())
        all_workers = workers_of(client)
        owner = shared_owner(client)
        if is_mapped:
            look_on(client, shared, all_workers)
        received = [machine.received() for machine in machines]
        kill(client, [owner])
        until(lambda: len(workers_of(client)) == 4)  # its nanny starts another one
        found = look_on(client, shared, workers_of(client))
        received = [machine.received() - start for machine, start in zip(machines, received, strict=True)]
    assert len(found) == 4
    assert owner not in {one.worker for one in found}
    assert {one.total for one in found} == {TOTAL}
    assert len({one.file for one in found if one.file}) == 1  # the new worker maps the file through another one
    assert sum(one.file == "" for one in found) == 1
    assert max(received) < BYTES // 4
    moment = "after" if is_mapped else "before"
    tell("fault", f"the worker that had the arrays for its machine is killed, {moment} others mapped them")
    tell("seen", "its machine went on with the same file; nothing was sent again")


@pytest.mark.slow
def test_workers_that_join_later_map_the_file_of_their_machine_or_are_sent_a_copy() -> None:
    with workers_on_hosts([2, 0]) as (address, machines), Client(address) as client:
        client.wait_for_workers(2, timeout=SECONDS)
        with ClusterSession(client, Watchdog()) as session:
            shared = session.scatter(value())
            first = workers_of(client)
            token = client.run(scratch.own_place)[first[0]]
            with killed_at_end(machines[1].start_workers(address, 1, nanny=False)):
                client.wait_for_workers(3, timeout=SECONDS)
                found = look_on(client, shared, workers_of(client))
                assert sum(client.run(token.is_seen).values()) == 2
                found += look_on(client, shared, workers_of(client))
    assert {one.total for one in found} == {TOTAL}
    assert len({one.file for one in found if one.worker in first}) == 1
    assert [one.file for one in found if one.worker not in first] == ["", ""]


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_leaves_no_second_copy_with_others() -> None:
    with client_of([2, 2]) as (client, _), ClusterSession(client, Watchdog()) as session:
        before = max(client.run(private_bytes).values())
        shared = session.scatter(value())
        first = look_on(client, shared, workers_of(client))
        client.retire_workers(workers_of(client)[:1], remove=True)
        until(lambda: len(workers_of(client)) == 3)
        found = look_on(client, shared, workers_of(client))
    assert {one.total for one in found} == {TOTAL}
    assert {one.file for one in found} == {one.file for one in first}
    assert max(one.private for one in found) < before + BYTES // 4


@pytest.mark.slow
def test_all_workers_of_a_machine_are_killed() -> None:
    def work(client: Client, session: TaskSession) -> list[Seen]:
        shared = session.scatter(value())
        for number in range(12):
            session.submit(look, shared, 0.2, key=f"look-{number}", description="look")
        found: list[Seen] = []
        for task in session.completed():
            found.append(session.result(task))
            if not killed and len({one.worker for one in found}) == 3:
                machine_of = {one.worker: one.machine for one in found}
                machines = list(machine_of.values())
                killed.extend(worker for worker, machine in machine_of.items() if machines.count(machine) == 2)
                kill(client, killed)
        return found

    killed: list[str] = []
    with client_of([2, 1], nanny=True) as (client, _):
        found = TaskRunner(client).run(partial(work, client))
    assert [one.total for one in found] == [TOTAL] * 12
    assert len(killed) == 2


@pytest.mark.slow
def test_all_that_had_the_arrays_are_killed_and_they_are_sent_again() -> None:
    sessions: list[Any] = []

    def work(client: Client, session: TaskSession) -> list[int]:
        shared = session.scatter(value())
        sessions.append(shared)
        if len(sessions) == 1:
            kill(client, workers_of(client))
            until(lambda: len(workers_of(client)) == 2)
        for number in range(4):
            session.submit(look, shared, key=f"look-{number}", description="look")
        return [session.result(task).total for task in session.completed()]

    with client_of([2], nanny=True) as (client, _):
        assert TaskRunner(client).run(partial(work, client)) == [TOTAL] * 4
    assert len(sessions) == 2


@pytest.mark.slow
def test_workers_are_killed_while_tasks_run(tell: Tell) -> None:
    with client_of([2, 2], nanny=True) as (client, _):
        killed = []

        def work(session: TaskSession) -> list[Seen]:
            shared = session.scatter(value())
            for number in range(40):
                session.submit(look, shared, 0.3, key=f"look-{number}", description="look")
            found = []
            for task in session.completed():
                found.append(session.result(task))
                if len(found) in {4, 12, 20}:
                    killed.append(found[-1].worker)
                    client.run(lambda: os.kill(os.getpid(), signal.SIGKILL), workers=killed[-1:], on_error="ignore")
            return found

        found = TaskRunner(client).run(work)
    assert [one.total for one in found] == [TOTAL] * 40
    assert len(killed) >= 3
    tell("fault", "three workers of two machines killed while tasks use arrays that are mapped")
    tell("seen", "all 40 results are right")


@pytest.mark.slow
def test_an_owner_whose_arrays_dask_removed_is_sent_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    call = hosts.call_on_workers

    def call_late(client: Client, function: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        if function is hosts.keep:
            until(
                lambda: (
                    sum(arguments[0] in keys for keys in client.run(lambda dask_worker: list(dask_worker.data)).values()) == 1
                )
            )
        return call(client, function, *arguments, **options)

    monkeypatch.setattr(hosts, "call_on_workers", call_late)
    with client_of([2, 2]) as (client, _), ClusterSession(client, Watchdog()) as session:
        found = look_on(client, session.scatter(value()), workers_of(client))
    assert {one.total for one in found} == {TOTAL}
    assert len({one.file for one in found}) == 2


@pytest.mark.slow
@pytest.mark.parametrize("round_of_calls", [1, 2])
@pytest.mark.parametrize("victim", ["owner", "other"])
def test_a_worker_is_killed_while_the_arrays_are_shared(
    round_of_calls: int, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = hosts.call_on_workers
    rounds: list[int] = []

    def call_after_kill(client: Client, function: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        if function is hosts.keep:
            rounds.append(len(rounds) + 1)
            if rounds[-1] == round_of_calls:
                owner = shared_owner(client)
                kill(client, [owner] if victim == "owner" else sorted({*workers_of(client)} - {owner})[:1])
        return call(client, function, *arguments, **options)

    def work(session: TaskSession) -> list[int]:
        shared = session.scatter(value())
        for number in range(8):
            session.submit(look, shared, key=f"look-{number}", description="look")
        return [session.result(task).total for task in session.completed()]

    with client_of([3], nanny=True) as (client, _):
        monkeypatch.setattr(hosts, "call_on_workers", call_after_kill)
        assert TaskRunner(client).run(work) == [TOTAL] * 8
    assert round_of_calls in rounds


COMMAND = """
import os, signal, sys
import numpy as np
from distributed import Client
from dit_dask.execution.cluster_session import ClusterSession
from dit_dask.execution.stall import Watchdog
client = Client(sys.argv[1])
with ClusterSession(client, Watchdog()) as session:
    shared = session.scatter({"numbers": np.arange(1_000_000)})
    assert shared.key.startswith("SharedValue")
    print("shared", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_command_that_is_killed_leaves_no_file() -> None:
    with client_of([2]) as (client, _):
        address = client.scheduler.address
        with subprocess.Popen([sys.executable, "-c", COMMAND, address], stdin=-1, stdout=-1, text=True) as command:
            assert command.stdout is not None
            assert command.stdout.readline() == "shared\n"
            assert nameless_files(client) == [2, 2]
            command.kill()
        until(lambda: nameless_files(client) == [1, 1])  # their tokens


@pytest.mark.slow
def test_workers_that_do_not_answer_get_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    call = hosts.call_on_workers

    def call_in_vain(client: Client, function: Callable[..., Any], *arguments: Any, **options: Any) -> dict[str, Any]:
        return {} if function is hosts.keep else call(client, function, *arguments, **options)

    monkeypatch.setattr(hosts, "call_on_workers", call_in_vain)
    with client_of([2]) as (client, _), ClusterSession(client, Watchdog()) as session:
        shared = session.scatter(value())
        found = look_on(client, shared, workers_of(client))
    assert {(one.total, one.file) for one in found} == {(TOTAL, "")}


def test_a_worker_that_joins_without_seeing_the_files_of_the_command_has_the_data_sent_again() -> None:
    skip_without_rights()
    with cluster(1) as (address, _), Client(address) as client:
        client.wait_for_workers(1, timeout=SECONDS)
        keys = []
        joined: list[Any] = []

        def work(session: TaskSession) -> list[Seen]:
            shared = session.scatter(value())
            keys.append(shared.key)
            if not joined:
                joined.append(join_alone(address))
                client.wait_for_workers(2, timeout=SECONDS)
            for number in range(20):
                session.submit(look, shared, 0.1, key=f"look-{number}", description="look")
            return [session.result(task) for task in session.completed()]

        try:
            found = TaskRunner(client).run(work)
        finally:
            for process in joined:
                with killed_at_end(process):
                    pass
    assert [one.total for one in found] == [TOTAL] * 20
    assert len({one.worker for one in found}) == 2
    assert keys[0].startswith("SharedValue")


def join_alone(address: str) -> subprocess.Popen[bytes]:
    """Start a worker that sees no process but its own."""
    command = [*ALONE, sys.executable, "-m", "dask", "worker", address, *WORKER, "--host", "127.0.0.1", "--no-nanny"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, start_new_session=True, env=os.environ | QUIET, stdout=quiet, stderr=quiet)


def test_an_audit_on_two_machines_is_that_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = datasets.census(600)[["age", "education", "occupation"]]
    schema = {
        "quasi_identifiers": {"age": {"kind": "numeric"}, "education": {"kind": "categorical"}},
        "sensitive": "occupation",
    }
    tests = [{"sanitizer": {"name": "mondrian", "k": [3, 9]}, "adversary": "bernoulli-nb"}]
    expected = dit.audit(frame, schema=schema, tests=tests)
    monkeypatch.setattr(scratch, "SHARED_BYTES", 100)
    shared = []
    share = hosts.share
    monkeypatch.setattr(hosts, "share", lambda *arguments: shared.append(share(*arguments)) or shared[-1])
    with client_of([2, 2]) as (client, _):
        found = dit.audit(frame, schema=schema, tests=tests, client=client)
    assert shared
    assert all(shared)
    for test in expected.summary.index:
        np.testing.assert_array_equal(expected.distances(test).to_numpy(), found.distances(test).to_numpy())
