"""What tasks need of the place where they run, whether that is a cluster or this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from dit_dask.errors import DitError, RunError, describe

RETRIES = 2  # of one task that raised an error
TICK_SECONDS = 0.1


class LostWorkError(Exception):
    """Tasks were cancelled because workers died with data that only they had."""


class KilledTaskError(RunError):
    """Every worker that took a task died: it kills them, or something else does."""


class Task(Protocol):
    """A task that was submitted; as an argument of another task it stands for its result."""

    @property
    def key(self) -> str:
        """Its name, of which a session has one."""
        ...


class TaskSession(Protocol):
    """Tasks with one copy of their shared data; those that are not finished at its end are cancelled."""

    def scatter(self, value: Any) -> Any:
        """Send a value to wherever tasks run; as an argument of a task it stands for the value."""
        ...

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,
        description: str,
        retries: int = RETRIES,
        priority: int = 0,
        wanted: bool = True,
    ) -> Task:
        """Submit a task; a result that is not wanted here is for other tasks."""
        ...

    def completed(self) -> Iterator[Any]:
        """Yield the tasks whose results are wanted, and any that failed, as they complete, until none is left."""
        ...

    def result(self, task: Any) -> Any:
        """Return the result of a completed task, or raise one clear line about why there is none."""
        ...


def task_error(description: str, error: BaseException) -> DitError:
    """Return what a task raised: as it is if it is one of ours, else as one line that shows no value of the data."""
    if isinstance(error, DitError):
        return error
    shown, hidden = describe(error)
    failure = RunError(f"{description}: {shown}", hidden=hidden)
    failure.__cause__ = error
    return failure
