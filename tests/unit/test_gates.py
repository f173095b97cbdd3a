from __future__ import annotations

import pytest

from dit_dask.audit.gates import parse, parse_forbidden
from dit_dask.audit.statistics import Statistics
from dit_dask.audit.verdict import Evidence, already_failed, judge
from dit_dask.errors import InputError
from dit_dask.reporting.text import verdict_lines
from tests.unit.summaries import summary

REACHED = {
    "distance": 2.0,
    "gain": 1.0,
    "changes_prediction": True,
    "adversary": "bernoulli-nb",
    "candidates": 7,
    "is_sampled": False,
}
SUMMARIES = [
    summary("a", delta=0.1, std=None, share_over={"0.01": 0.2}, quantiles={"0.99": "inf"}, attainable=REACHED),
    summary("b", delta=0.3, std=0.1, share_over={"0.01": 0.0}, quantiles={"0.99": 0.5}, attainable=REACHED),
]


def passed(text: str) -> list[bool]:
    return [verdict.passed for verdict in judge([parse(text, "gates[0]")], Evidence(SUMMARIES))]


def passed_unless(text: str) -> list[bool]:
    return [verdict.passed for verdict in judge([parse_forbidden(text, "--fail-on")], Evidence(SUMMARIES))]


def test_gates_must_hold_for_every_test() -> None:
    assert passed("delta <= 0.1") == [True, False]
    assert passed("delta<0.1") == [False, False]
    assert passed("share_over[0.01] == 0") == [False, True]
    assert passed("quantiles[0.99] < 1") == [False, True]
    assert passed("classes >= 7") == [True, True]
    assert passed("seconds > 1.5") == [False, False]


@pytest.mark.parametrize(
    "text",
    [
        "delta >= 0",
        "delta <= inf",
        "delta != -1",
        "share_over[0.01] <= 1",
        "quantiles[0.99] > -1",
        "classes >= 1",
        "smallest_class > 0",
        "seconds >= 0",
    ],
)
def test_a_gate_that_every_possible_value_meets_does_not_pass(text: str) -> None:
    verdicts = judge([parse(text, "gates[0]")], Evidence(SUMMARIES))
    assert {verdict.status for verdict in verdicts} <= {"inconclusive", "failed"}
    assert "could not have failed: set another limit" in verdicts[1].reason


@pytest.mark.parametrize("text", ["delta > 0.05", "delta >= 0.05", "delta != 0.7", "share_over[0.01] > -0.1"])
def test_a_gate_that_demands_influence_is_no_pass_alone(text: str) -> None:
    alone = judge([parse(text, "gates[0]")], Evidence(SUMMARIES[:1]))
    assert [verdict.status for verdict in alone] == ["inconclusive"]
    beside = judge([parse(text, "gates[0]"), parse("delta <= 0.4", "gates[1]")], Evidence(SUMMARIES[:1]))
    assert beside[1].passed
    assert beside[0].passed or "could not have failed" in beside[0].reason


def test_a_gate_in_the_wrong_direction_proposes_the_right_one() -> None:
    (verdict,) = judge([parse("delta > 0.05", "gates[0]")], Evidence(SUMMARIES[:1]))
    assert "write delta <= 0.05 if that is meant" in verdict.reason


@pytest.mark.parametrize("symbol", ["<=", ">=", "<", ">", "==", "!="])
@pytest.mark.parametrize("limit", ["0.05", "0.1", "0.3", "0.5"])
def test_fail_on_is_the_opposite_of_the_same_gate(symbol: str, limit: str) -> None:
    condition = f"delta {symbol} {limit}"
    demanded, forbidden = parse(condition, "gates[0]"), parse_forbidden(condition, "--fail-on")
    fails = [[one.status == "failed" for one in judge([gate], Evidence(SUMMARIES))] for gate in (demanded, forbidden)]
    assert fails[0] == [not one for one in fails[1]]


def test_a_line_says_what_was_demanded_and_not_its_opposite() -> None:
    verdicts = judge(
        [parse_forbidden("delta>2e-1", "--fail-on"), parse("share_over[0.01] < 1", "gates[0]")], Evidence(SUMMARIES)
    )
    assert list(verdict_lines(verdicts)) == [
        "PASS  delta <= 2e-1  a: delta is 0.1",
        "FAIL  delta <= 2e-1  b: delta is 0.3",
        "PASS  share_over[0.01] < 1  a: share_over[0.01] is 0.2",
        "PASS  share_over[0.01] < 1  b: share_over[0.01] is 0",
    ]


def test_what_does_not_apply_cannot_vouch_for_a_release() -> None:
    assert passed("std <= 0.2") == [False, True]
    assert passed_unless("std > 1") == [False, True]
    assert passed("quantiles[0.5] >= 0") == [False, False]  # a run that did not compute it


def test_only_what_can_only_grow_fails_early() -> None:
    bounds = {"a": Statistics({"delta": 0.3, "std": 0.3, "records": 5, "share_over": {"0.01": 0.2}})}

    def early(text: str) -> list[str]:
        return [verdict.test for verdict in already_failed([parse(text, "gates[0]")], bounds)]

    assert early("delta <= 0.2") == early("share_over[0.01] < 0.2") == ["a"]
    assert early("delta <= 0.3") == early("delta >= 0.9") == early("delta == 0") == []
    assert early("std <= 0.2") == early("records < 5") == []


@pytest.mark.parametrize(
    "text",
    [
        "delta",
        "delta <=",
        "delta ! 3",
        "delta <= x",
        "<= 3",
        "delta <= 0.1 and mean < 1",
        "__import__('os') < 1",
        "delta <= 1.2.3",
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"gates\[0\] must be NAME OP NUMBER"):
        parse(text, "gates[0]")


@pytest.mark.parametrize("text", ["dleta <= 1", "test == 1", "delta[3] < 1"])
def test_an_unknown_name_lists_the_known_ones(text: str) -> None:
    with pytest.raises(InputError, match="known: argmax_changed"):
        parse(text, "gates[0]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quantiles[1.7] < 1", "quantiles needs a number between 0 and 1 in brackets, such as [0.5]"),
        ("quantiles < 1", "quantiles needs a number between 0 and 1"),
        ("share_over < 1", "share_over needs a number >= 0 in brackets, such as [0.001]"),
        ("share_over[x] < 1", "share_over needs a number >= 0"),
        ("share_over[-1] < 1", "share_over needs a number >= 0"),
        ("share_over[nan] < 1", "share_over needs a number >= 0"),
    ],
)
def test_a_wrong_key_says_which_numbers_may_stand_there(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "gates[0]")
    assert expected in str(caught.value)


def test_a_gate_may_name_the_tests_that_it_judges() -> None:
    gate = parse("delta <= 0.1 for a*", "gates[0]")
    assert [verdict.test for verdict in judge([gate], Evidence(SUMMARIES))] == ["a"]
    assert parse_forbidden("delta > 1e-1 for a*", "--fail-on").text == "delta <= 1e-1 for a*"
    (nobody,) = judge([parse("delta <= 0.1 for c*", "gates[0]")], Evidence(SUMMARIES))
    assert (nobody.status, nobody.reason) == ("inconclusive", "no sanitised test is there to be judged with an id like c*")


def test_conditions_in_words_have_opposites_of_their_own() -> None:
    assert parse_forbidden("claims broken", "--fail-on").text == "claims hold"
    assert parse_forbidden("closeness failed", "--fail-on", ["closeness"]).text == "closeness passed"
    with pytest.raises(InputError, match="names what must not be: 'claims broken'; got 'claims hold'"):
        parse_forbidden("claims hold", "--fail-on")
    with pytest.raises(InputError, match="measure: unknown 'closenes'; did you mean 'closeness'"):
        parse("closenes passed", "gates[0]", ["closeness"])
