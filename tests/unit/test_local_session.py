"""Tasks in this process: what tests and measures rely on, as on a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dit_dask.errors import InputError, RunError
from dit_dask.execution import local_session
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import TaskSession
from dit_dask.execution.stall import StalledError, Watchdog


def in_session(work: Callable[[TaskSession], Any], stall_seconds: float | None = None, threads: int = 1) -> Any:
    return TaskRunner(None, Watchdog(stall_seconds), threads=threads).run(work)


def submit(session: TaskSession, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    return session.submit(function, *arguments, key="task", description="the task", **options)


def test_results_are_arguments_of_other_tasks_also_in_lists() -> None:
    def work(session: TaskSession) -> Any:
        numbers = [submit(session, abs, -number, wanted=False) for number in range(4)]
        total = submit(session, sum, numbers)
        doubled = submit(session, int.__mul__, total, 2)
        done = list(session.completed())
        assert done == [total, doubled]  # those that nobody wants are not shown
        return [session.result(task) for task in done]

    assert in_session(work) == [6, 12]


def test_a_task_of_a_higher_priority_goes_first_and_finds_what_it_needs() -> None:
    order: list[str] = []
    gate = threading.Event()

    def work(session: TaskSession) -> None:
        submit(session, gate.wait)
        submit(session, order.append, "low")
        needed = submit(session, order.append, "needed")
        submit(session, lambda _: order.append("high"), needed, priority=10)
        gate.set()
        assert len(list(session.completed())) == 4

    in_session(work)
    assert order == ["needed", "high", "low"]


@pytest.mark.parametrize(("failures", "retries"), [(2, 2), (1, 0), (3, 2)])
def test_a_task_that_raises_is_called_again_as_often_as_it_may(failures: int, retries: int) -> None:
    calls: list[int] = []

    def fails() -> str:
        calls.append(1)
        if len(calls) <= failures:
            raise ValueError("a value of the data")
        return "done"

    def work(session: TaskSession) -> Any:
        submit(session, fails, retries=retries)
        return [session.result(task) for task in session.completed()]

    if failures <= retries:
        assert in_session(work) == ["done"]
    else:
        with pytest.raises(RunError, match=r"^the task: ValueError") as caught:
            in_session(work)
        assert "a value of the data" not in str(caught.value)
    assert len(calls) == min(failures, retries) + 1


def test_our_own_errors_stay_as_they_are_and_reach_the_tasks_that_need_the_result() -> None:
    def refuse() -> None:
        raise InputError("tests[0]: refused")

    def work(session: TaskSession) -> None:
        refused = submit(session, refuse, retries=0, wanted=False)
        submit(session, lambda _: pytest.fail("it has no argument"), refused, retries=0)
        failed = list(session.completed())
        assert len(failed) == 2
        for task in reversed(failed):
            session.result(task)

    with pytest.raises(InputError, match=r"^tests\[0\]: refused$"):
        in_session(work)


@pytest.fixture
def hanging() -> Iterator[Callable[[], None]]:
    released = threading.Event()
    yield lambda: released.wait() and None
    released.set()


def test_a_task_that_hangs_is_named_and_not_waited_for(hanging: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_session, "CLOSE_SECONDS", 120.0)

    def work(session: TaskSession) -> None:
        submit(session, hanging)
        list(session.completed())

    start = time.monotonic()
    with pytest.raises(StalledError, match="waiting for task"):
        in_session(work, stall_seconds=0.2)
    assert time.monotonic() - start < 60  # far from both, also on a busy machine


def test_tasks_that_wait_at_the_end_of_a_session_are_not_run() -> None:
    calls: list[int] = []
    ended = threading.Event()

    def work(session: TaskSession) -> None:
        submit(session, ended.wait)
        submit(session, calls.append, 1)
        raise InputError("the run has ended")

    with pytest.raises(InputError):
        in_session(work)
    ended.set()
    for thread in threading.enumerate():
        if thread.name.startswith("dit-tasks"):
            thread.join()
    assert not calls


def test_threads_run_tasks_at_the_same_time_and_wait_for_those_they_need() -> None:
    together = threading.Barrier(2, timeout=60)
    calls: list[str] = []

    def meet(name: str) -> str:
        together.wait()
        calls.append(name)
        return name

    def work(session: TaskSession) -> Any:
        pair = [submit(session, meet, name, wanted=False) for name in "ab"]
        joined = [submit(session, "".join, pair) for _ in range(4)]
        done = list(session.completed())
        assert set(done) == set(joined)
        return [session.result(task) for task in done]

    assert in_session(work, threads=2) == ["ab"] * 4
    assert sorted(calls) == ["a", "b"]  # nothing was called twice


def test_results_are_freed_when_nobody_needs_them() -> None:
    import gc
    import weakref

    class Large:
        pass

    kept: list[weakref.ref[Any]] = []

    def make() -> Large:
        value = Large()
        kept.append(weakref.ref(value))
        return value

    def work(session: TaskSession) -> None:
        large = submit(session, make, wanted=False)
        submit(session, lambda value: isinstance(value, Large), large)
        del large
        assert [session.result(task) for task in session.completed()] == [True]
        gc.collect()
        assert kept[0]() is None

    in_session(work)
