"""The three criteria of WP29: which figures answer them, and that nothing passes that could not have failed."""

from __future__ import annotations

from typing import Any

import pytest

from dit_dask.audit.gates import parse
from dit_dask.audit.verdict import Evidence, RunVerdict, Verdict, judge
from dit_dask.measures import MEASURES, kind_of
from dit_dask.measures.base import MeasureEntry
from dit_dask.reporting.criteria import FIGURES, QUESTIONS, TEST, describe_criteria
from tests.unit.summaries import summary

NAMES = sorted({row.measure for row in FIGURES} - {TEST})


def entry(measure: str, identity: str = "", sanitizer: dict[str, Any] | None = None, **more: Any) -> MeasureEntry:
    return MeasureEntry(measure, identity or measure, {}, sanitizer, more.get("risk"), [], 1000, more, [])


def judged(text: str, **more: Any) -> str:
    (verdict,) = judge([parse(text, "g", NAMES)], Evidence([], [entry("linkability", **more)]))
    return verdict.status


def statuses(verdicts: list[tuple[str, str]], *entries: MeasureEntry, tests: tuple[Any, ...] = ()) -> dict[str, str]:
    verdict = RunVerdict([Verdict(status, gate, "", None, None, "") for gate, status in verdicts])  # type: ignore[arg-type]
    return {one.name: one.status for one in describe_criteria(tests, entries, verdict)}


def test_both_ends_of_an_interval_must_agree() -> None:
    def of(low: float, high: float) -> str:
        return judged(
            "linkability.risk <= 0.05", risk=(low + high) / 2, intervals={"risk": [low, high]}, attainable={"risk": 1.0}
        )

    assert (of(0.0, 0.04), of(0.0, 0.06), of(0.06, 0.1)) == ("passed", "inconclusive", "failed")


def test_a_limit_that_a_copy_of_the_training_records_keeps_is_not_passed() -> None:
    figures = {"risk": 0.0, "intervals": {"risk": [0.0, 0.01]}}
    assert judged("linkability.risk <= 0.05", **figures, attainable={"risk": 0.03}) == "inconclusive"
    assert judged("linkability.risk <= 0.05", **figures, attainable={"risk": 0.3}) == "passed"


def test_doubts_forbid_a_pass_and_excuse_no_failure() -> None:
    doubts = ["the attack is no better than guessing"]
    assert judged("linkability.risk <= 0.05", risk=0.0, intervals={"risk": [0.0, 0.01]}, doubts=doubts) == "inconclusive"
    assert judged("linkability.risk <= 0.05", risk=0.5, intervals={"risk": [0.4, 0.6]}, doubts=doubts) == "failed"


def test_a_criterion_without_a_figure_is_not_measured_and_names_the_line_to_add() -> None:
    for one in describe_criteria([], [], RunVerdict()):
        assert one.status == "none"
        assert one.conclusion.startswith("not measured; to measure it: ")
        assert "name:" in one.conclusion


def test_a_figure_without_a_gate_decides_nothing() -> None:
    assert statuses([], entry("linkability", risk=0.0))["linkability"] == "none"


@pytest.mark.parametrize("status", ["passed", "failed", "inconclusive"])
def test_a_criterion_has_the_status_of_the_gates_on_its_figures(status: str) -> None:
    found = statuses([("linkability.risk <= 0.05", status), ("delta <= 0.1", "passed")], entry("linkability", risk=0.01))
    assert found == {"singling out": "none", "linkability": status, "inference": "none"}  # there is no delta here


def test_the_worst_of_several_gates_counts() -> None:
    gates = [("singling-out.risk <= 0.5", "passed"), ("reidentification.prosecutor <= 0.1", "failed")]
    assert (
        statuses(gates, entry("singling-out", risk=0.1), entry("reidentification", prosecutor=0.5))["singling out"] == "failed"
    )


def test_gates_that_could_not_have_failed_or_limit_the_wrong_side_answer_nothing() -> None:
    found = entry("reidentification", prosecutor=0.5)
    assert statuses([("reidentification.prosecutor <= 1", "passed")], found)["singling out"] == "inconclusive"
    assert statuses([("reidentification.prosecutor >= 0.1", "passed")], found)["singling out"] == "none"
    assert statuses([("reidentification.marketer <= 0.1", "passed")], found)["singling out"] == "none"


def test_the_worst_release_is_shown_and_the_original_is_not() -> None:
    original = entry("reidentification", "original", prosecutor=1.0)
    five = entry("reidentification", "five", {"name": "mondrian", "k": 5}, prosecutor=0.2)
    ten = entry("reidentification", "ten", {"name": "mondrian", "k": 10}, prosecutor=0.1)
    (singling, *_) = describe_criteria([], [original, ten, five], RunVerdict())
    assert [(one.value, one.source) for one in singling.figures] == [(0.2, "five")]


def test_figures_of_records_that_are_nobodys_answer_nothing_and_judge_nothing() -> None:
    synthetic = entry("reidentification", "drawn", {"name": "marginals"}, prosecutor=1.0, note="its values belong to no person")
    (singling, *_) = describe_criteria([], [synthetic], RunVerdict())
    assert not singling.figures
    for figures in ({"risk": 0.0}, {"risk": 1.0}):
        assert judged("linkability.risk <= 0.5", **figures, note="nobody's") == "inconclusive"


def test_tests_answer_with_their_smallest_class_and_their_delta() -> None:
    tests = (summary("a", smallest_class=5, delta=0.2), summary("b", smallest_class=3, delta=0.1))
    found = {one.name: one for one in describe_criteria(tests, [], RunVerdict())}
    assert [(one.label, one.value, one.source) for one in found["singling out"].figures] == [("smallest_class", 3.0, "b")]
    assert ("delta", 0.2, "a") in [(one.label, one.value, one.source) for one in found["inference"].figures]


def test_every_row_names_a_measure_that_exists_and_a_criterion() -> None:
    for row in FIGURES:
        assert row.criterion in QUESTIONS
        assert row.measure == TEST or (row.measure in MEASURES and kind_of(row.measure) is not None)
