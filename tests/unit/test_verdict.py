"""Verdicts: what passes could have failed, what fails says why, and one word for all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dit_dask.audit.gates import parse
from dit_dask.audit.statistics import Distribution, from_points, points, quantile, share_over
from dit_dask.audit.verdict import Evidence, RunVerdict, Verdict, claim_verdict, judge, read_verdict, write_verdict
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.unit.summaries import summary
from tests.unit.test_gates import REACHED

SMALL = {"delta": 0.01, "mean": 0.001, "argmax_changed": 0.0, "mean_gain": 0.001, "largest_gain": 0.004}
SMALL |= {"share_over": {"0.001": 0.5}}


def status(text: str, **more: object) -> str:
    (verdict,) = judge([parse(text, "gates[0]")], Evidence([summary("a", **SMALL | {"attainable": REACHED} | more)]))
    return verdict.status


@pytest.mark.parametrize(
    ("text", "reached", "expected"),
    [
        ("delta <= 0.2", {"distance": 0.21}, "passed"),
        ("delta <= 0.2", {"distance": 0.2}, "inconclusive"),  # equal is not above
        ("delta < 0.2", {"distance": 0.1}, "inconclusive"),
        ("delta <= 0.005", {"distance": 0.001}, "failed"),  # what fails fails, whatever could be reached
        ("mean <= 0.2", {"distance": 0.1}, "inconclusive"),
        ("share_over[0.001] <= 0.9", {"distance": 0.002}, "passed"),
        ("share_over[0.001] <= 0.9", {"distance": 0.001}, "inconclusive"),  # its key counts, not its limit
        ("mean_gain <= 0.1", {"gain": 0.2}, "passed"),
        ("mean_gain <= 0.1", {"gain": 0.1}, "inconclusive"),
        ("argmax_changed <= 0.1", {"changes_prediction": True}, "passed"),
        ("argmax_changed <= 0.1", {"changes_prediction": False}, "inconclusive"),
        ("classes >= 3", {"distance": 0.0}, "passed"),  # no statistic of inference
    ],
)
def test_a_gate_that_the_planted_person_cannot_break_is_inconclusive(text: str, reached: dict, expected: str) -> None:
    assert status(text, attainable=REACHED | reached) == expected


def repeated(excess: dict[str, list[float]], estimate: float = 0.01, count: int = 20) -> dict[str, object]:
    found = {name: {"estimate": estimate, "interval": interval} for name, interval in excess.items()}
    more = {"count": count, "noise": 0.5, "over": {}, "expected_noise": 0.2, "p_value": 0.2, "significant": 0}
    return {"repeats": more | {"excess": found}}


@pytest.mark.parametrize(
    ("text", "interval", "expected"),
    [
        ("delta <= 0.2", [0.0, 0.19], "passed"),
        ("delta <= 0.2", [0.0, 0.21], "inconclusive"),
        ("delta <= 0.2", [0.21, 0.9], "failed"),
        ("delta <= 0.2", [0.2, 0.9], "inconclusive"),
        ("delta < 0.2", [0.2, 0.9], "failed"),
        ("delta >= 0.2", [0.0, 0.19], "failed"),
        ("delta >= 0.2", [0.1, 0.3], "inconclusive"),
        ("delta == 0.2", [0.1, 0.3], "inconclusive"),
        ("delta != 0.2", [0.1, 0.3], "inconclusive"),
        ("delta == 0.2", [0.3, 0.4], "failed"),
        ("delta <= 2", [0.0, 0.5], "inconclusive"),  # more than the planted person reaches
    ],
)
@pytest.mark.parametrize("delta", [0.05, 0.6])
def test_both_ends_of_what_is_above_the_noise_decide(text: str, interval: list[float], expected: str, delta: float) -> None:
    assert status(text, delta=delta, attainable=REACHED | {"distance": 1.0}, **repeated({"delta": interval})) == expected


def test_a_test_on_draws_that_cannot_be_decided_says_how_many_repeats_might() -> None:
    def reason(interval: list[float], estimate: float) -> str:
        found = summary("a", **SMALL, attainable=REACHED, **repeated({"delta": interval}, estimate))
        (verdict,) = judge([parse("delta <= 0.2", "g")], Evidence([found]))
        assert verdict.status == "inconclusive"
        return verdict.reason

    assert "above the noise of 20 repeats it is 0 to 0.5 with 95% confidence" in reason([0.0, 0.5], 0.1)
    assert "about 400 repeats might decide" in reason(
        [0.0, 0.5], 0.1
    )  # an error of 0.4 must become 0.1: 16 times 20, rounded up
    assert "no number of repeats is likely to decide" in reason([0.0, 0.5], 0.2)


@pytest.mark.parametrize("name", ["mean_gain", "largest_gain", "argmax_changed", "std"])
@pytest.mark.parametrize("value", [0.0, 0.9])
def test_statistics_of_draws_whose_noise_is_not_known_are_not_judged(name: str, value: float) -> None:
    assert status(f"{name} <= 0.5", **{name: value}, **repeated({"delta": [0.0, 0.1]})) == "inconclusive"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("share_over[0.05] <= 0.3", "failed"),  # at least the share above 0.1
        ("share_over[0.05] <= 0.7", "inconclusive"),
        ("share_over[0.05] <= 0.9", "passed"),  # at most the share above 0.01
        ("share_over[0.5] <= 0.6", "passed"),
        ("share_over[0.0001] <= 0.95", "inconclusive"),
        ("quantiles[0.95] <= 0.2", "failed"),  # at least the quantile at 0.9
        ("quantiles[0.95] <= 0.6", "inconclusive"),
        ("quantiles[0.95] <= 0.7", "passed"),  # at most the quantile at 0.99
        ("quantiles[0.1] <= 0.2", "passed"),
        ("quantiles[1] <= 0.9", "passed"),
        ("quantiles[1] <= 0.5", "inconclusive"),
    ],
)
def test_keys_between_those_of_the_summary_are_bounded_by_their_neighbours(text: str, expected: str) -> None:
    excess = {"delta": [0.5, 0.9], "quantiles[0.5]": [0.0, 0.1], "quantiles[0.9]": [0.3, 0.6]}
    excess |= {"quantiles[0.99]": [0.4, 0.7], "quantiles[0.999]": [0.45, 0.8]}
    excess |= {"share_over[0.001]": [0.8, 1.0], "share_over[0.00316]": [0.8, 0.95], "share_over[0.01]": [0.6, 0.9]}
    excess |= {"share_over[0.1]": [0.4, 0.6]}
    found = summary("a", **SMALL, attainable=REACHED | {"distance": 2.0}, **repeated(excess))
    stored = Distribution.of(np.array([0.1, 0.6]), np.ones(2, np.int64), 0)
    (verdict,) = judge([parse(text, "g")], Evidence([found], (), {"a": stored}))
    assert verdict.status == expected


def test_an_inconclusive_verdict_says_why_and_what_would_help() -> None:
    (verdict,) = judge([parse("delta <= 0.2", "g")], Evidence([summary("a", **SMALL, attainable=REACHED | {"distance": 0.1})]))
    assert "published raw, reaches only 0.1 (bernoulli-nb)" in verdict.reason
    assert "another adversary" in verdict.reason


def test_a_release_that_exceeds_the_planted_person_is_not_said_to_be_unable_to() -> None:
    found = summary("a", **SMALL | {"delta": 0.15}, attainable=REACHED | {"distance": 0.1})
    (verdict,) = judge([parse("delta <= 0.2", "g")], Evidence([found]))
    assert verdict.status == "inconclusive"
    assert "published raw, reaches 0.1 (bernoulli-nb); a sanitised release can exceed that, and this one does" in verdict.reason
    assert "nothing shows that it could have exceeded 0.2" in verdict.reason
    assert "only" not in verdict.reason


def test_a_test_that_nothing_influences_does_not_pass() -> None:
    assert status("delta <= 0.2", delta=0.0) == "inconclusive"


def test_a_test_whose_power_is_unknown_does_not_pass() -> None:
    assert status("delta <= 0.2", attainable=None) == "inconclusive"
    unplanted = summary("a", **SMALL, attainable=None, planting_error="ValueError")
    (verdict,) = judge([parse("delta <= 0.2", "g")], Evidence([unplanted]))
    assert verdict.status == "inconclusive"
    assert "an adversary failed on the raw table (ValueError)" in verdict.reason


def test_the_raw_table_is_not_judged() -> None:
    raw = summary("raw", **SMALL, attainable=REACHED, parameters={"sanitizer": {"name": "raw"}})
    both = Evidence([raw, summary("a", **SMALL, attainable=REACHED)])
    assert [verdict.test for verdict in judge([parse("delta <= 0.2", "g")], both)] == ["a"]
    (alone,) = judge([parse("delta <= 0.2", "g")], Evidence([raw]))
    assert alone.status == "inconclusive"


def test_tests_have_gates_of_their_own() -> None:
    evidence = Evidence([summary(name, **SMALL, attainable=REACHED) for name in ("a", "b")])
    verdicts = judge([], evidence, {"b": [parse("delta <= 0.2", "tests[1].gates[0]")]})
    assert [(verdict.test, verdict.status) for verdict in verdicts] == [("b", "passed")]


def test_any_key_is_judged_by_the_stored_distribution() -> None:
    distance = np.repeat([0.1, 0.2, 0.3], [5, 3, 2])
    stored = Distribution.of(distance, np.ones(10, np.int64), 0)
    evidence = Evidence([summary("a", **SMALL, attainable=REACHED)], (), {"a": stored})
    (over,) = judge([parse("share_over[0.15] <= 0.4", "g")], evidence)
    assert (over.status, over.value) == ("failed", 0.5)
    (median,) = judge([parse("quantiles[0.75] <= 0.25", "g")], evidence)
    assert (median.status, median.value) == ("passed", pytest.approx(np.quantile(distance, 0.75)))


def test_thinned_distributions_err_on_the_side_of_the_larger_distance() -> None:
    distance = np.sort(np.random.default_rng(3).random(40_000))
    whole = Distribution.of(distance, np.ones(len(distance), np.int64), 0)
    drawn = points(whole)
    stored = from_points(drawn["distance"], drawn["cumulative"], len(distance))
    assert stored.total == len(distance)
    for limit in (0.05, 0.33333, 0.9):
        assert share_over(whole, limit) <= share_over(stored, limit) <= share_over(whole, limit) + 2e-4
        assert quantile(whole, limit) <= quantile(stored, limit) <= quantile(whole, limit) + 2e-4


def entry(passed: object = True, **more: object) -> MeasureEntry:
    return MeasureEntry("closeness", "closeness.raw", {"distance": "gower"}, None, 0.5, [], 10, {"passed": passed, **more}, [])


@pytest.mark.parametrize(
    ("gate", "status", "reason"),
    [
        ("closeness.auc <= 0.8", "passed", "closeness.auc is 0.7"),
        ("closeness.auc <= 0.72", "inconclusive", "(0.65 to 0.75 with 95% confidence), on both sides of the limit"),
        ("closeness.auc <= 0.68", "inconclusive", "on both sides of the limit"),
        ("closeness.auc <= 0.6", "failed", "closeness.auc is 0.7"),
        ("closeness.bound <= 0.5", "passed", "closeness.bound is 0.2"),
        (
            "closeness.bound <= 1",
            "inconclusive",
            "a leak of everything would show only 0.9, so this gate could not have failed",
        ),
        ("closeness.bound <= 0.1", "failed", "closeness.bound is 0.2"),
    ],
)
def test_estimates_are_judged_by_their_intervals_and_by_what_they_could_have_been(gate: str, status: str, reason: str) -> None:
    known = entry(auc=0.7, bound=0.2, intervals={"auc": [0.65, 0.75]}, attainable={"bound": 0.9})
    (verdict,) = judge([parse(gate, "g", ["closeness"])], Evidence([], [known]))
    assert verdict.status == status
    assert reason in verdict.reason


def test_a_doubt_keeps_a_figure_from_passing_not_from_failing() -> None:
    known = entry(auc=0.5, doubts=["nobody changed anything"])
    gates = [parse(f"closeness.auc <= {limit}", "g", ["closeness"]) for limit in (0.6, 0.4)]
    assert [verdict.status for verdict in judge(gates, Evidence([], [known]))] == ["inconclusive", "failed"]


@pytest.mark.parametrize(("passed", "expected"), [(True, "passed"), (False, "failed"), (None, "inconclusive")])
def test_a_measure_that_decides_nothing_does_not_pass(passed: object, expected: str) -> None:
    (verdict,) = judge([parse("closeness passed", "g", ["closeness"])], Evidence([], [entry(passed, reason="why")]))
    assert (verdict.status, verdict.test) == (expected, "closeness.raw")


def test_figures_of_measures_are_judged_and_a_missing_one_does_not_pass() -> None:
    def of(text: str) -> list[str]:
        return [one.status for one in judge([parse(text, "g", ["closeness"])], Evidence([], [entry(tvd=0.2)]))]

    assert of("closeness.tvd <= 0.2") == of("closeness <= 0.5") == of("closeness[gower].tvd < 1") == ["passed"]
    assert of("closeness.tvd <= 0.1") == ["failed"]
    assert of("closeness.other <= 0.1") == of("closeness.passed <= 1") == of("closeness[euclidean] < 1") == ["inconclusive"]


def test_claims_are_judged_where_there_are_any() -> None:
    claiming, silent = (
        summary("a", claim_holds=False, claim_broken={"classes": 2, "records": 7}),
        summary("b", claim_holds=None),
    )
    (broken,) = judge([parse("claims hold", "g")], Evidence([claiming, silent]))
    assert (broken.status, broken.test) == ("failed", "a")
    assert broken.reason == "the claim is broken in 2 classes with 7 records"
    (nothing,) = judge([parse("claims hold", "g")], Evidence([silent]))
    assert nothing.status == "inconclusive"
    assert claim_verdict(summary("c")).passed


@pytest.mark.parametrize(
    ("statuses", "expected", "allowed"),
    [
        ([], "none", True),
        (["passed"], "passed", True),
        (["passed", "inconclusive"], "inconclusive", False),
        (["inconclusive", "failed", "passed"], "failed", False),
    ],
)
def test_the_worst_verdict_is_that_of_the_run(statuses: list, expected: str, allowed: bool) -> None:
    run = RunVerdict([Verdict(one, "delta <= 1", "a", 0.5, 1.0, "") for one in statuses])
    assert (run.status, run.is_allowed) == (expected, allowed)


def test_a_verdict_is_read_and_written_without_any_change(tmp_path: Path) -> None:
    folder = Folder(Location(str(tmp_path), {}))
    run = RunVerdict([Verdict("failed", "delta <= 1", "a", float("inf"), 1.0, "why", "counts")], (), False, ("careful",))
    write_verdict(folder, run)
    assert read_verdict(folder).document() == run.document()
    folder.write("verdict.json", b"[]")
    with pytest.raises(InputError, match=r"verdict\.json cannot be read; run it again"):
        read_verdict(folder)
