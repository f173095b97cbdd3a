"""Two audits side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.audit.manifest import Manifest
from dit_dask.audit.statistics import Figure, plain
from dit_dask.audit.summary import TestSummary
from dit_dask.reporting.text import NOTHING, align, columns_in, number


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One of the two runs."""

    url: str
    manifest: Manifest
    summaries: Sequence[TestSummary]

    def find(self, test: str) -> TestSummary | None:
        """The summary of a test, if the run has it."""
        return next((one for one in self.summaries if one.test == test), None)


def differences(before: ComparedRun, after: ComparedRun) -> list[str]:
    """What makes the changes more than those of a sanitizer: another schema, or another table."""
    schemas = [run.manifest.config["schema"] for run in (before, after)]
    inputs = [run.manifest.input for run in (before, after)]
    found = ["the schemas of the two runs differ"] if schemas[0] != schemas[1] else []
    if inputs[0].digest != inputs[1].digest:
        found.append(f"the runs are of different tables, of {inputs[0].used:,} and {inputs[1].used:,} rows")
    return [f"{text}: changes may come from that alone" for text in found]


def document(before: ComparedRun, after: ComparedRun) -> dict[str, Any]:
    """Both runs and the changes, as --json prints them."""
    tests = []
    for test in _paired(before, after):
        old, new = before.find(test), after.find(test)
        change = _change(old, new)
        tests.append({"test": test, "run": _figures(old), "other": _figures(new), "delta_change": plain(change)})
    warnings = differences(before, after)
    head = {"run": before.url, "other": after.url, "status": "none", "tests": tests}
    return head | {"measures": [], "verdicts": [], "warnings": warnings}


def _figures(summary: TestSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {column.label: plain(summary.figure(column.statistic.name, column.key)) for column in columns_in("compare")}


def text(before: ComparedRun, after: ComparedRun) -> str:
    """Pair the tests of two runs by id; tests that only one of them has follow."""
    shown = columns_in("compare")
    rows = [["test", *(f"{column.title} {side}" for column in shown for side in ("1", "2")), "delta change"]]
    for test in _paired(before, after):
        pair = before.find(test), after.find(test)
        cells = [NOTHING if one is None else column.cell(one) for column in shown for one in pair]
        rows.append([test, *cells, number(_change(*pair))])
    return align(rows)


def _paired(before: ComparedRun, after: ComparedRun) -> list[str]:
    old, new = ({one.test: one for one in run.summaries} for run in (before, after))
    return sorted({**old, **new}, key=lambda one: (one not in old) + 2 * (one not in new))


def _change(old: TestSummary | None, new: TestSummary | None) -> Figure:
    if old is None or new is None or old.delta is None or new.delta is None:
        return None
    return 0.0 if old.delta == new.delta else new.delta - old.delta
