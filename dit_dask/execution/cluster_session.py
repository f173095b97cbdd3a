"""Tasks on a Dask cluster: submitted, watched for a stall, and cancelled at the end."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, suppress
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from numpy.typing import NDArray

from dit_dask.errors import DitError, describe
from dit_dask.execution import hosts
from dit_dask.execution.session import RETRIES, TICK_SECONDS, KilledTaskError, LostWorkError, task_error
from dit_dask.execution.stall import Watchdog
from dit_dask.storage import scratch

if TYPE_CHECKING:
    from distributed import Client, Future

WORKER_SECONDS, SCALE_SECONDS = 60, 10


class ClusterSession:
    """Tasks with one copy of their shared data on the cluster; those that are not finished at its end are cancelled."""

    def __init__(self, client: Client, watchdog: Watchdog) -> None:
        from distributed import as_completed

        self._client, self._watchdog = client, watchdog
        self._suffix = uuid4().hex[:8]
        self._completion = as_completed(loop=client.loop, raise_errors=False)
        self._unfinished: dict[Future, bool] = {}  # whether the result is wanted; held, or they could not be cancelled
        self._descriptions: dict[str, str] = {}
        self._shared: dict[str, tuple[scratch.SharedValue, Sequence[Future]]] = {}

    def __enter__(self) -> ClusterSession:
        wait_for_workers(self._client)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):  # a scheduler that is gone has cancelled everything
            self._client.cancel(list(self._unfinished))
        self._shared.clear()

    def scatter(self, value: Any) -> Future:
        """Send a value to every worker; its large arrays are mapped by the workers of one machine instead of copied.

        If all workers see the files of this process, these are mapped; else the arrays are sent once to each machine.
        """
        content, arrays = scratch.split(value)
        shared, kept = self._share(content, arrays) if arrays else (None, ())
        future = self._send(value if shared is None else shared)
        if shared is not None:
            self._shared[future.key] = (shared, kept)  # its files are there as long as the session
        return future

    def _share(self, content: bytes, arrays: Sequence[NDArray[Any]]) -> tuple[scratch.SharedValue | None, Sequence[Future]]:
        """Return a value as workers open it, and what they need for that; None if they are sent copies."""
        place = scratch.own_place()
        if place is not None and all(call_on_all(self._client, place.is_seen)):
            return scratch.SharedValue.of(content, arrays), ()
        sent = hosts.share(self._client, arrays, self._send)
        return (None, ()) if sent is None else (scratch.SharedValue(content, sent[0]), sent[1])

    def _send(self, value: Any, workers: Collection[str] | None = None) -> Future:
        """Send a value to these workers, all unless named."""
        addresses = None if workers is None else list(workers)
        sending = self._client.scatter([value], workers=addresses, broadcast=True, hash=False, asynchronous=True)
        sent = asyncio.run_coroutine_threadsafe(sending, self._client.loop.asyncio_loop)
        self._watchdog.reset()
        while not wait([sent], TICK_SECONDS).done:
            if self._watchdog.expired:
                sent.cancel()
                raise self._watchdog.stalled(["workers to receive the data"])
        try:
            futures: list[Future] = sent.result()
        except Exception as error:  # where a worker dies meanwhile, the scheduler fails in any of several ways
            raise LostWorkError(f"sending the data: {describe(error)[0]}") from error
        return futures[0]

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,
        description: str,
        retries: int = RETRIES,
        priority: int = 0,
        wanted: bool = True,
    ) -> Future:
        """Submit a task; a result that is not wanted here stays on the cluster for other tasks."""
        if any(getattr(argument, "key", None) in self._shared for argument in arguments):
            function, arguments = call_with_opened, (function, *arguments)
        failed = [one for one in arguments if getattr(one, "status", None) == "error"]
        if failed:  # in an earlier session, whose workers died: what this one depends on is tried again, too
            with suppress(KeyError):  # Dask retries them, then looks for those that the client has let go
                self._client.retry(failed)
        with allow_large_graphs():
            future = self._client.submit(
                function, *arguments, key=f"{key}-{self._suffix}", retries=retries, priority=priority, pure=False
            )
        self._unfinished[future] = wanted
        self._descriptions[future.key] = description
        self._completion.add(future)
        return future

    def completed(self) -> Iterator[Future]:
        """Yield the tasks whose results are wanted, and any that failed, as they complete, until none is left."""
        self._watchdog.reset()
        while not self._completion.is_empty():
            looked = time.monotonic()
            while not self._completion.has_ready():
                with self._completion.thread_condition:
                    self._completion.thread_condition.wait(TICK_SECONDS)
                if time.monotonic() - looked > SCALE_SECONDS:
                    replace_workers(self._client)
                    looked = time.monotonic()
                if self._watchdog.expired:
                    raise self._watchdog.stalled(self._describe_unfinished())
            future = next(self._completion)
            wanted = self._unfinished.pop(future)
            if wanted or future.status != "finished":
                yield future
            self._watchdog.reset()

    def result(self, future: Future) -> Any:
        """Return the result of a completed task, or raise one clear line about why there is none."""
        from distributed import KilledWorker

        description = self._descriptions[future.key]
        if future.status == "finished":
            try:
                limit = self._watchdog.limit
                return future.result(timeout=limit if math.isfinite(limit) else None)  # its worker may have stopped since
            except TimeoutError as timeout:
                raise self._watchdog.stalled([f"the result of {future.key}"]) from timeout
        if future.status != "error":
            raise LostWorkError(description)
        error = future.exception()
        if isinstance(error, KilledWorker):
            raise KilledTaskError(f"{description}: its worker died again and again (out of memory?)") from error
        if isinstance(error, LostWorkError):
            raise LostWorkError(f"{description}: {error}") from error
        # the client keeps its own, with what its traceback holds
        raise task_error(description, copy(error) if isinstance(error, DitError) else error)

    def _describe_unfinished(self) -> list[str]:
        """The tasks that are not done, those at work first, and where they are."""
        keys: Sequence[str] = sorted(future.key for future in self._unfinished)
        with suppress(Exception):  # a scheduler that does not answer cannot tell
            worker_of = {key: worker for worker, running in self._client.processing().items() for key in running}
            started = [f"{key} on {worker_of[key]}" for key in keys if key in worker_of]
            return started + [f"{key} (not started)" for key in keys if key not in worker_of]
        return list(keys)


def call_with_opened(function: Callable[..., Any], *arguments: Any) -> Any:
    """On a worker: call a function with the values that shared ones stand for."""
    return function(*(open_shared(one) if isinstance(one, scratch.SharedValue) else one for one in arguments))


def open_shared(value: scratch.SharedValue) -> Any:
    """On a worker: open a value; if its files are not seen, as by a worker that joined from elsewhere, it is sent again."""
    try:
        return value.open()
    except OSError as error:
        raise LostWorkError(f"opening the data on a worker: {describe(error)[0]}") from error


def call_on_all(client: Client, function: Callable[[], Any]) -> list[Any]:
    """Call a short function in every worker; None stands for those that fail, or do not answer soon."""
    try:
        return list(client.sync(client._run, function, callback_timeout=hosts.ANSWER_SECONDS).values())
    except Exception:  # a worker died or is frozen: its loss is noticed when it has work
        return [None]


def wait_for_workers(client: Client) -> None:
    """Wait for a worker."""
    for _ in range(WORKER_SECONDS // SCALE_SECONDS):
        replace_workers(client)
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=SCALE_SECONDS)
            return
    raise LostWorkError("waiting for workers")


def replace_workers(client: Client) -> None:
    """Have a local cluster replace workers that were killed while they started: it does so only when it is scaled again."""
    from distributed import LocalCluster

    if isinstance(client.cluster, LocalCluster):
        client.cluster.scale(len(client.cluster.worker_spec))


def allow_large_graphs() -> AbstractContextManager[Any]:
    """Keep Dask from warning about large arguments: inside a task they survive their worker, scattered they do not."""
    import dask

    context: AbstractContextManager[Any] = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"})
    return context
