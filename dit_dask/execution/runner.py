"""The task runner that tests, measures and first calls share: submit, retry, stall watch, cancel."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from dit_dask.errors import RunError
from dit_dask.execution.cluster_session import ClusterSession
from dit_dask.execution.local_session import LocalSession
from dit_dask.execution.progress import Progress, Silent
from dit_dask.execution.session import KilledTaskError, LostWorkError, TaskSession
from dit_dask.execution.stall import Watchdog

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar("Result")

MAX_FAILED_SESSIONS = 6  # in a row that finished nothing
MAX_PAUSE_SECONDS = 15


@dataclass(frozen=True, eq=False)
class TaskRunner:
    """A cluster or, without a client, this process with some threads; how long it may finish nothing, and its progress."""

    client: Client | None
    watchdog: Watchdog = field(default_factory=Watchdog)
    progress: Progress = field(default_factory=Silent)
    threads: int = 1

    def run(
        self, work: Callable[[TaskSession], Result], count_done: Callable[[], int] = lambda: 0, task_seconds: float = 0.0
    ) -> Result:
        """Do some work in a session; if its workers are lost, do it again in a new one, after growing pauses.

        `count_done` counts what outlives a session: as long as it grows, there is no limit to the sessions. `task_seconds`
        is the longest time that a task is expected to take, if known.
        """
        self.watchdog.expect(task_seconds)
        failed_sessions, last_step = 0, "the start"
        while failed_sessions < MAX_FAILED_SESSIONS:
            done_before = count_done()
            try:
                with self._open_session() as session:
                    return work(session)
            except (LostWorkError, CancelledError, TimeoutError, OSError) as error:  # OSError: a connection was cut
                last_step = str(error) if isinstance(error, LostWorkError) else last_step
                self.progress.note("the cluster lost its workers; sending them the data again")
            except KilledTaskError:  # if something else kills the workers, other tasks will be finished
                if failed_sessions:
                    raise
                self.progress.note("a task lost its workers several times; trying it again")
            failed_sessions = 0 if count_done() > done_before else failed_sessions + 1
            time.sleep(min(2**failed_sessions, MAX_PAUSE_SECONDS))  # new workers need some seconds
        raise RunError(
            f"the cluster lost its workers {MAX_FAILED_SESSIONS} times in a row, last during {last_step} (out of memory?); "
            "the same command resumes what is left"
        )

    def _open_session(self) -> LocalSession | ClusterSession:
        if self.client is None:
            return LocalSession(self.watchdog, self.threads)
        return ClusterSession(self.client, self.watchdog)
