"""Tasks in this process, in one thread or a few: for work that worker processes would only delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from queue import Empty, PriorityQueue, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from dit_dask.execution.session import RETRIES, TICK_SECONDS, task_error
from dit_dask.execution.stall import Watchdog

CLOSE_SECONDS = 5.0


class LocalTask:
    """A function with its arguments, then its result or what it raised."""

    def __init__(self, key: str, description: str, retries: int, call: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.key, self.description, self.retries = key, description, retries
        self._call: Callable[..., Any] | None = call
        self._arguments = arguments
        self.value: Any = None
        self.error: BaseException | None = None
        self._lock = Lock()  # a task that needs this one waits for the thread that runs it

    def run(self) -> None:
        """Call the function, again if it raises; a task that needs the result of a failed one fails like it."""
        with self._lock:
            if self._call is not None:
                self._run(self._call)

    def _run(self, call: Callable[..., Any]) -> None:
        try:
            arguments = [_resolve(argument) for argument in self._arguments]
        except BaseException as error:
            self.error = error
        else:
            self.error = self._attempt(call, arguments)
        self._call, self._arguments = None, ()  # a result that no other task needs is freed

    def _attempt(self, call: Callable[..., Any], arguments: list[Any]) -> BaseException | None:
        for attempt in range(self.retries + 1):
            try:
                self.value = call(*arguments)
            except BaseException as error:
                if attempt == self.retries:
                    return error
            else:
                return None
        return None


def _resolve(argument: Any) -> Any:
    """Return the result that an argument stands for, also inside a list."""
    if isinstance(argument, list):
        return [_resolve(item) for item in argument]
    if not isinstance(argument, LocalTask):
        return argument
    argument.run()  # unless it was done before, as any task of the same priority was
    if argument.error is not None:
        raise argument.error
    return argument.value


class LocalSession:
    """The tasks of this process; the thread that calls waits for them, so that it can be interrupted and see a stall.

    Several threads are of use only for tasks that leave Python's lock to each other.
    """

    def __init__(self, watchdog: Watchdog, threads: int = 1) -> None:
        self._watchdog = watchdog
        self._numbers = count()
        self._waiting: PriorityQueue[tuple[float, int, LocalTask | None]] = PriorityQueue()
        self._done: SimpleQueue[LocalTask] = SimpleQueue()
        self._unfinished: dict[LocalTask, bool] = {}  # whether the result is wanted
        self._threads = [Thread(target=self._work, name=f"dit-tasks-{number}", daemon=True) for number in range(threads)]

    def __enter__(self) -> LocalSession:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number in range(len(self._threads)):
            self._waiting.put((-math.inf, -1 - number, None))
        for thread in self._threads:  # a task cannot be stopped; it ends with the process
            thread.join(CLOSE_SECONDS if error is None else TICK_SECONDS)

    def _work(self) -> None:
        while (task := self._waiting.get()[2]) is not None:
            task.run()
            self._done.put(task)

    def scatter(self, value: Any) -> Any:
        """Return the value itself: tasks see it as it is."""
        return value

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,
        description: str,
        retries: int = RETRIES,
        priority: int = 0,
        wanted: bool = True,
    ) -> LocalTask:
        """Submit a task; those of the highest priority go first, and of these the first submitted."""
        task = LocalTask(key, description, retries, function, arguments)
        self._unfinished[task] = wanted
        self._waiting.put((-priority, next(self._numbers), task))
        return task

    def completed(self) -> Iterator[LocalTask]:
        """Yield the tasks whose results are wanted, and any that failed, as they complete, until none is left."""
        self._watchdog.reset()
        while self._unfinished:
            task = self._wait()
            if self._unfinished.pop(task) or task.error is not None:
                yield task
            self._watchdog.reset()

    def _wait(self) -> LocalTask:
        while True:
            try:
                return self._done.get(timeout=TICK_SECONDS)
            except Empty:
                if self._watchdog.expired:
                    raise self._watchdog.stalled(task.key for task in self._unfinished) from None

    def result(self, task: LocalTask) -> Any:
        """Return the result of a completed task, or raise one clear line about why there is none."""
        if task.error is not None:
            raise task_error(task.description, task.error)
        return task.value
