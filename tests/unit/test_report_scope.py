"""What a report says that a verdict covers: no more was tested, decided or limited than really was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.manifest import InputFingerprint
from dit_dask.audit.statistics import Statistics
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict, Status, Verdict
from dit_dask.measures.base import MeasureEntry
from dit_dask.reporting.blocks import ReportedRun
from dit_dask.reporting.html import render
from dit_dask.reporting.markdown import markdown
from dit_dask.reporting.notebook import result_html
from dit_dask.reporting.scope import describe_checks, describe_reservations, describe_rows, limits_influence
from dit_dask.reporting.statement import statement
from dit_dask.reporting.text import next_command
from tests.manifests import CONFIG, new_manifest
from tests.unit.summaries import summary

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": {"name": "illness"}}
SAMPLING = {"rows": 700, "confidence": 0.95, "share_over": {}, "above_delta_at_most": 0.1}
RELEASE = {"own_row": {"largest": 0.1}}


def verdicts(*found: tuple[str, Status], warnings: Sequence[str] = ()) -> RunVerdict:
    return RunVerdict([Verdict(status, gate, "test", 0.0, 0.1, "") for gate, status in found], warnings=warnings)


def sampled(**more: Any) -> TestSummary:
    counted = {"records": 30, "subjects": 30, "delta": 0.05, "mean": 0.01}
    parameters = {"sanitizer": {"name": "mondrian", "k": 5}, "records": {"sample": 30, "seed": 1}}
    return summary("test", **{**counted, "parameters": parameters, "sampling": SAMPLING, **more})


def released() -> TestSummary:
    parameters = {"sanitizer": {"name": "precomputed", "full": "release.csv"}, "records": "all"}
    return summary("test", records=700, subjects=700, delta=None, parameters=parameters, release_only=RELEASE)


def measured(name: str) -> MeasureEntry:
    return MeasureEntry(name, name, {"name": name}, None, None, [], 10, {"reason": "too few rows"}, [])


def report(summaries: Sequence[TestSummary], verdict: RunVerdict, *measures: str) -> ReportedRun:
    manifest = new_manifest(config=CONFIG | {"schema": SCHEMA, "data": {"source": "people.csv"}})
    return ReportedRun("people-1", manifest, summaries, [measured(name) for name in measures], verdict, {})


def words_of(run: ReportedRun) -> str:
    blocks = [block for section in statement(run) for block in section.blocks if block.kind == "paragraph"]
    return " ".join("".join(getattr(span, "text", span) for span in block.spans) for block in blocks)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (["passed"], "The only check passed."),
        (["passed", "passed"], "All 2 checks passed."),
        (["failed", "passed"], "1 of 2 checks failed."),
        (["failed", "inconclusive", "passed"], "1 of 3 checks failed, 1 could not be decided."),
        (["inconclusive"], "1 of 1 check could not be decided. That is not a pass."),
        ([], "No gate was set"),
    ],
)
def test_undecided_checks_are_counted_beside_failed_ones(found: list[Status], words: str) -> None:
    verdict = verdicts(*(("delta <= 0.1", status) for status in found))
    assert describe_checks(verdict).startswith(words)
    assert describe_checks(verdict) in markdown("people", [], [], verdict)


def test_a_sample_is_not_told_as_everybody() -> None:
    run = report([sampled()], verdicts(("delta <= 0.1", "passed"), warnings=["the sample is small"]))
    page = render(run)
    limit = "test: only a sample of 30 of 700 rows was tested"
    assert f"{limit}. Read the warning below before you rely on it." in page
    assert "On average over the tested persons" in page
    assert "rows audited" not in page
    assert limit in words_of(run)
    assert limit in markdown("people", run.summaries, [], run.verdict)


def test_a_release_alone_is_not_said_to_be_sanitised_again() -> None:
    run = report([released()], verdicts(("smallest_class >= 2", "passed")))
    page = render(run)
    assert "nobody could be left out and delta is not known" in page
    assert "rest was sanitised again" not in page
    assert "sanitised again" not in words_of(run)
    assert "publish exactly the release" not in page


def test_a_run_of_measures_alone_claims_no_leave_one_out() -> None:
    run = report([], verdicts(("closeness passed", "passed")), "closeness")
    assert "sanitised again" not in words_of(run)
    assert "Measures: closeness." in words_of(run)
    assert "publish exactly the release" not in render(run)
    failed = report([], verdicts(("closeness passed", "failed")), "closeness")
    assert "dit explain" not in render(failed)
    assert "dit explain" not in next_command("failed", "runs/people-1", [])
    assert "dit explain" in next_command("failed", "runs/people-1", [summary(delta=0.1)])


@pytest.mark.parametrize(
    ("gate", "limits"),
    [
        ("delta <= 0.1", True),
        ("share_over[0.1] <= 0.1", True),
        ("mean_gain <= 0.05", True),
        ("composition.delta <= 0.1", True),
        ("attribute-inference.risk <= 0.1", True),
        ("composition.smallest_intersection >= 5", False),
        ("smallest_class >= 5", False),
        ("claims hold", False),
        ("closeness passed", False),
        ("utility.tvd <= 0.1", False),
    ],
)
def test_a_pass_says_whether_any_gate_limits_what_a_record_reveals(gate: str, limits: bool) -> None:
    verdict = verdicts((gate, "passed"))
    assert limits_influence(verdict) == limits
    found = list(describe_reservations([summary("test", delta=1.5)], verdict))
    assert found == ([] if limits else ["No gate limits what a person's own record reveals."])
    page = render(report([summary("test", delta=1.5)], verdict))
    assert ("publish exactly the release" in page) == limits


def test_a_delta_above_that_of_the_raw_table_is_explained() -> None:
    raw = ControlSummary("raw", ["test"], Statistics({"delta": 1.5}), {})
    verdict = replace(verdicts(), controls=[raw])
    words = "That is more than the raw table gives"
    assert words in render(report([summary("test", delta=1.6)], verdict))
    assert words not in render(report([summary("test", delta=1.4)], verdict))
    assert words not in render(report([summary("test", delta=1.6, classes=None)], verdict))


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ("linkability.risk <= 0.05", "why this threshold is acceptable"),
        ("delta <= 0.1", "why this threshold is acceptable"),
        ("closeness passed", "this run has no gate on a figure"),
        ("claims hold", "this run has no gate on a figure"),
    ],
)
def test_the_statement_knows_thresholds_of_tests_and_of_measures(gate: str, words: str) -> None:
    run = report([summary("test", delta=0.05)], verdicts((gate, "passed")), "linkability", "closeness")
    assert words in words_of(run)


def test_a_notebook_shows_first_what_failed_and_what_a_pass_does_not_say() -> None:
    many = [("delta <= 0.1", "passed")] * 20
    page = result_html([sampled()], verdicts(*many, ("mean <= 0.1", "failed")), "runs/people-1")
    assert "1 of 21 checks failed." in page
    assert "FAIL  mean &lt;= 0.1" in page
    passed = result_html([sampled()], verdicts(*many, warnings=["the sample is small"]), "runs/people-1")
    assert "only a sample of 30 of 700 rows was tested" in passed
    assert "warning: the sample is small" in passed


def test_rows_that_were_not_used_are_explained() -> None:
    fingerprint = InputFingerprint(700, 3, 200, "digest")
    assert describe_rows(fingerprint) == (
        "200 rows used of 700 read (3 dropped as incomplete, 497 outside data.limit or data.sample)"
    )
    run = report([sampled()], verdicts())
    run = replace(run, manifest=replace(run.manifest, input=fingerprint))
    assert describe_rows(fingerprint) in render(run)
    assert describe_rows(fingerprint) in words_of(run)


def test_linking_is_not_said_to_be_untested_where_it_was() -> None:
    tests = [summary("test", delta=0.1)]
    assert "Linking with other tables is not tested here." in render(report(tests, verdicts()))
    assert "except with the release of the measure composition" in render(report(tests, verdicts(), "composition"))


@pytest.mark.parametrize(
    ("sanitizer", "name", "deltas", "explained"),
    [
        ("mondrian", "k", {2: 0.3, 5: 0.4}, True),
        ("mondrian", "k", {2: 0.4, 5: 0.3}, False),
        ("mondrian", "t", {0.1: 0.3, 0.5: 0.4}, False),
        ("mondrian", "t", {0.1: 0.4, 0.5: 0.3}, True),
        ("laplace", "epsilon", {0.1: 0.3, 1.0: 0.4}, False),
    ],
)
def test_a_rise_is_explained_only_where_the_release_protects_more(
    sanitizer: str, name: str, deltas: dict[float, float], explained: bool
) -> None:
    tests = [
        summary(f"{name}{value}", delta=delta, parameters={"sanitizer": {"name": sanitizer, name: value}, "records": "all"})
        for value, delta in deltas.items()
    ]
    assert ("Delta need not fall" in render(report(tests, verdicts()))) == explained
