"""The watchdog: ends work in which nothing is finished any more, and says what it waits for."""

from __future__ import annotations

import time
from collections.abc import Iterable

from dit_dask.errors import RunError

STALL_SECONDS = 1800.0
SLACK = 20  # unless a limit is set, a task may take that many times its estimate
SHOWN = 5


class StalledError(RunError):
    """Nothing was finished for too long."""


class Watchdog:
    """Counts the seconds since something was last finished; they are the machine's own, whatever its clock shows."""

    def __init__(self, stall_seconds: float | None = None) -> None:
        self._is_set = stall_seconds is not None
        self._limit = STALL_SECONDS if stall_seconds is None else stall_seconds
        self._last = time.monotonic()

    @property
    def limit(self) -> float:
        """The seconds in which something must be finished."""
        return self._limit

    def expect(self, task_seconds: float) -> None:
        """Allow for tasks of the coming work that are known to take long, unless the limit was set."""
        if not self._is_set:
            self._limit = max(STALL_SECONDS, SLACK * task_seconds)

    def reset(self) -> None:
        """Something was finished."""
        self._last = time.monotonic()

    @property
    def expired(self) -> bool:
        """Whether nothing was finished for longer than the limit."""
        return time.monotonic() - self._last > self._limit

    def stalled(self, waiting: Iterable[str]) -> StalledError:
        """The error that names what is waited for."""
        names = list(waiting)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return StalledError(
            f"no progress for {self._limit / 60:.3g} minutes, waiting for {', '.join(names[:SHOWN])}{more}; "
            "the same command resumes what is left (cluster.stall_minutes sets the limit)"
        )
