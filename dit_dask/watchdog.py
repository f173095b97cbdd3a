"""The watchdog: ends a run in which nothing is finished any more, and says what it waits for."""

import time
from collections.abc import Iterable

from dit_dask.errors import RunError

SLACK = 20  # a task may take that many times its estimate
SHOWN = 5


class StalledError(RunError):
    """Nothing was finished for too long."""


class Watchdog:
    """Counts the seconds since something was last finished; they are the machine's own, whatever its clock shows."""

    def __init__(self, stall_seconds: float) -> None:
        self._limit = stall_seconds
        self._last = time.monotonic()

    def expect(self, task_seconds: float) -> None:
        """Bear with tasks that are known to take long."""
        self._limit = max(self._limit, SLACK * task_seconds)

    def feed(self) -> None:
        """Something was finished."""
        self._last = time.monotonic()

    @property
    def is_hungry(self) -> bool:
        """Whether nothing was finished for longer than it may take."""
        return time.monotonic() - self._last > self._limit

    def stalled(self, waiting: Iterable[str]) -> StalledError:
        """Say what is waited for."""
        names = list(waiting)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return StalledError(
            f"no progress for {self._limit / 60:.3g} minutes, waiting for {', '.join(names[:SHOWN])}{more}; "
            "the same command resumes what is left (cluster.stall_minutes sets the limit)"
        )
