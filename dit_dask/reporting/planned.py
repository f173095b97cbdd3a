"""What a run would do, before it does anything: tests, tasks, time and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dit_dask.errors import escape_text
from dit_dask.reporting.text import align


@dataclass(frozen=True)
class PlannedTest:
    """One test; `seconds` is the engine's time in all, an upper limit where a sanitizer is external and was not called."""

    test: str
    engine: str | None = None
    rows: int | None = None
    distinct: int | None = None
    tasks: int | None = None
    seconds: float | None = None
    is_upper_limit: bool = False


@dataclass(frozen=True)
class PlannedRun:
    """A whole run on so many workers; without the data (`reason` says why) only the names of its tests are known."""

    tests: Sequence[PlannedTest]
    url: str | None = None
    measures: Sequence[str] = ()
    rows: str = ""
    workers: int | None = None
    memory: int | None = None
    warnings: Sequence[str] = ()
    reason: str = ""
    source_bytes: int = 0
    scratch: str = ""
    scratch_bytes: int = 0

    @property
    def seconds(self) -> float:
        """The time of all tests, divided by the workers."""
        return sum(one.seconds or 0.0 for one in self.tests) / (self.workers or 1)

    def document(self) -> dict[str, Any]:
        """As --json prints it."""
        warnings = [*self.warnings, *([self.reason] if self.reason else [])]
        return {
            "run": self.url,
            "status": "none",
            "tests": [asdict(one) for one in self.tests],
            "measures": [{"id": name} for name in self.measures],
            "verdicts": [],
            "warnings": warnings,
            "workers": self.workers,
            "seconds": None if self.reason else self.seconds,
            "memory_bytes": self.memory,
            "source_bytes": self.source_bytes,
            "scratch": self.scratch,
            "scratch_bytes": self.scratch_bytes,
        }

    def text(self) -> str:
        """As a terminal shows it."""
        return "\n".join([*self._table(), *map(escape_text, self._lines())])

    def _table(self) -> list[str]:
        if self.reason or not self.tests:
            return []
        header = ["test", "engine", "rows", "distinct", "tasks", "engine s"]
        return [align([header, *map(_cells, self.tests)])]

    def _lines(self) -> list[str]:
        if self.reason:
            return [*(one.test for one in self.tests), self.reason]
        lines = []
        if any(one.is_upper_limit for one in self.tests):
            lines.append(
                "external sanitizers are not called by a plan: their time is that of calls that all take their whole time limit"
            )
        lines += [f"measure  {name}" for name in self.measures]
        needed = f"about {(self.memory or 0) / 1e6:,.0f} MB a worker"
        lines += [self.rows, f"about {self.seconds:.0f} s on {self.workers} workers, after start-up; {needed}"]
        read = f"reads {self.source_bytes / 1e6:,.1f} MB, once; " if self.source_bytes else ""
        kept = f"keeps {self.scratch_bytes / 1e6:,.1f} MB in {self.scratch}" if self.scratch_bytes else "keeps all in memory"
        return [*lines, f"{read}{kept}", f"would write {self.url}"]


def _cells(one: PlannedTest) -> list[str]:
    counts = [f"{count or 0:,}" for count in (one.rows, one.distinct, one.tasks)]
    return [one.test, one.engine or "", *counts, f"{'at most ' if one.is_upper_limit else ''}{one.seconds or 0.0:.1f}"]
