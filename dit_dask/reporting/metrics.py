"""A run as OpenMetrics text, for schedulers and their alarms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

from dit_dask.audit.manifest import Manifest
from dit_dask.audit.statistics import by_name
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict
from dit_dask.measures.base import Entries

STATUSES = ("passed", "failed", "inconclusive", "none")


def open_metrics(
    name: str, manifest: Manifest | None, summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict
) -> str:
    """Write every statistic of every test, the verdict and the values of measures, each as a gauge."""
    lines = [*_family("dit_status", "verdict of the run, 1 for the one that holds")]
    lines += [_sample("dit_status", {"audit": name, "status": one}, float(verdict.status == one)) for one in STATUSES]
    lines += _family("dit_checks", "checks of gates by their result")
    for status in STATUSES[:3]:
        count = sum(one.status == status for one in verdict.verdicts)
        lines.append(_sample("dit_checks", {"audit": name, "status": status}, count))
    lines += _family("dit_warnings", "warnings of the run")
    lines.append(_sample("dit_warnings", {"audit": name}, len(verdict.warnings)))
    lines += _statistics(name, summaries)
    values = [(entry.id, entry.value) for entry in measures if entry.value is not None]
    if values:
        lines += _family("dit_measure", "values of measures")
        lines += [_sample("dit_measure", {"audit": name, "measure": identity}, value) for identity, value in values]
    if manifest is not None:
        lines += _family("dit_rows", "rows that were audited")
        lines.append(_sample("dit_rows", {"audit": name}, manifest.input.used))
        finished = manifest.timings.finished or manifest.timings.started
        lines += _family("dit_finished_timestamp_seconds", "when the run was finished")
        lines.append(_sample("dit_finished_timestamp_seconds", {"audit": name}, datetime.fromisoformat(finished).timestamp()))
    return "\n".join([*lines, "# EOF"]) + "\n"


def _statistics(name: str, summaries: Sequence[TestSummary]) -> Iterator[str]:
    for statistic in by_name().values():
        samples = []
        for one in summaries:
            for key in statistic.keys or (None,):
                figure = one.figure(statistic.name, key)
                labels = {"audit": name, "test": one.test} | ({} if key is None else {"key": key})
                samples += [] if figure is None else [_sample(f"dit_{statistic.name}", labels, float(figure))]
        if samples:
            yield from _family(f"dit_{statistic.name}", f"{statistic.title.format(key='key')} of each test")
            yield from samples


def _family(name: str, description: str) -> list[str]:
    return [f"# TYPE {name} gauge", f"# HELP {name} {description}"]


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    number = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf" if math.isinf(value) else f"{value:.17g}"
    return f"{name}{{{shown}}} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
