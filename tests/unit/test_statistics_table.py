"""A statistic is one row of one table: everything that names statistics is made from it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dit_dask.api import Result
from dit_dask.audit import statistics
from dit_dask.audit.gates import parse
from dit_dask.audit.index import IndexEntry
from dit_dask.audit.index import TestFigures as Figures
from dit_dask.audit.statistics import Distribution, Statistic, describe
from dit_dask.audit.summary import TestSummary as Summary
from dit_dask.audit.verdict import Evidence, RunVerdict, already_failed, judge
from dit_dask.reporting import compare, history
from dit_dask.reporting.blocks import ReportedRun
from dit_dask.reporting.html import render
from dit_dask.reporting.text import text_table
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.manifests import new_manifest
from tests.unit.summaries import DOCUMENT

SCHEMA = {"sensitive": {"name": "disease"}, "quasi_identifiers": {"age": {"kind": "numeric"}}}
CONFIG = {"name": "people", "data": {"source": "people.csv"}, "schema": SCHEMA, "gates": []}

TODAY = [
    *(
        "records",
        "distinct",
        "subjects",
        "delta",
        "mean",
        "std",
        "quantiles",
        "share_over",
        "argmax_changed",
        "mean_gain",
        "largest_gain",
        "skipped",
    ),
    *("classes", "smallest_class"),
    *("certainty_penalty", "discernibility", "average_class", "average_class_over_k", "query_error", "tvd"),
    "seconds",
]


def median_nonzero(distribution: Distribution) -> float:
    above = distribution.distance > 0
    return float(np.median(np.repeat(distribution.distance[above], distribution.rows[above])))


ROW = Statistic(
    "median_nonzero",
    "median of nonzero",
    median_nonzero,
    grows=False,
    shown=dict.fromkeys(("terminal", "report", "compare", "history"), (None,)),
)
KEYED = Statistic(
    "share_under",
    "d<{key}",
    lambda distribution, limit: distribution.rows[distribution.distance < limit].sum() / distribution.total,
    {"0.25": 0.25, "1": 1.0},
    grows=True,
    format="share",
    shown={"terminal": ("0.25",)},
)


def audited() -> Summary:
    distances = np.array([0.0, 0.0, 0.125, 0.5, 0.375])
    found = describe(Distribution.of(distances, np.ones(5, np.int64), 1))
    return Summary.read(json.loads(json.dumps(DOCUMENT | found.document())))


def test_the_table_is_what_summaries_say_today() -> None:
    assert [one.name for one in statistics.STATISTICS] == TODAY
    assert list(audited().document()) == [
        *("test", "parameters", "engine", "engine_reason", *TODAY[:12]),
        *(*TODAY[12:-1], "claim_holds", "claim_broken"),
        *("worst_adversary", "adversaries", "attainable", "seconds"),
    ]


def test_another_statistic_is_one_more_row(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match="unknown 'median_nonzero'"):
        parse("median_nonzero <= 0.3", "gates[0]")
    monkeypatch.setattr(statistics, "STATISTICS", (*statistics.STATISTICS, ROW))
    summary = audited()
    assert summary.document()["median_nonzero"] == 0.375
    gates = [parse(f"median_nonzero <= {limit}", "gates[0]") for limit in (0.3, 0.4)]
    assert [verdict.passed for verdict in judge(gates, Evidence([summary]))] == [False, True]
    assert already_failed(gates, {"a": summary.statistics}) == []  # it may fall
    header, line = text_table([summary]).splitlines()
    assert "median of nonzero" in header
    assert " 0.375 " in line
    page = render(ReportedRun("people-1", new_manifest(config=CONFIG), [summary], [], RunVerdict(), {}))
    assert '<th scope="col">median of nonzero</th>' in page
    assert "<td>0.375</td>" in page
    one = compare.ComparedRun("here", new_manifest(), [summary])
    compared = compare.text(one, one).splitlines()
    assert "median of nonzero 1  median of nonzero 2" in compared[0]
    assert compared[1].split().count("0.375") == 2
    result = Result(Folder(Location("nowhere", {})), [summary], [], RunVerdict(), pytest.fail)
    assert result.summary["median_nonzero"].tolist() == [0.375]
    kept = Figures.of(summary)
    assert Figures.read(kept.document()).figures["median_nonzero"] == 0.375
    trend = history.text([IndexEntry("2026-11-01", "people", "a", "people-1", "f", 5, {"mondrian-k5": kept})])
    assert "median of nonzero" in trend
    assert " 0.375 " in trend


def test_another_statistic_may_have_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "STATISTICS", (KEYED, *statistics.STATISTICS))
    summary = audited()
    assert summary.document()["share_under"] == {"0.25": 0.6, "1": 1.0}
    gates = [parse("share_under[0.25] < 0.5", "gates[0]"), parse("share_under[1] <= 1", "gates[0]")]
    assert [verdict.passed for verdict in judge(gates, Evidence([summary]))] == [False, True]
    assert [verdict.gate for verdict in already_failed(gates, {"a": summary.statistics})] == ["share_under[0.25] < 0.5"]
    with pytest.raises(Exception, match=r"share_under needs a number between 0 and 1 in brackets, such as \[0.25\]"):
        parse("share_under[2] < 1", "gates[0]")
    header, line = text_table([summary]).splitlines()
    assert header.split()[:2] == ["test", "d<0.25"]
    assert line.split()[1] == "60%"
    result = Result(Folder(Location("nowhere", {})), [summary], [], RunVerdict(), pytest.fail)
    assert result.summary["share_under[0.25]"].tolist() == [0.6]


def test_runs_made_before_a_statistic_was_added_show_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = audited()
    monkeypatch.setattr(statistics, "STATISTICS", (ROW, *statistics.STATISTICS))
    assert text_table([before]).splitlines()[1].split()[1] == "–"
    (verdict,) = judge([parse("median_nonzero < 9", "gates[0]")], Evidence([before]))
    assert (verdict.status, verdict.reason) == ("failed", "median_nonzero does not apply here")
