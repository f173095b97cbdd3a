from __future__ import annotations

import pytest

from dit_dask.audit.gates import judge, parse
from dit_dask.errors import InputError

SUMMARY = [
    {"test": "a", "delta": 0.1, "std": None, "share_over": {"0.01": 0.2}, "quantiles": {"0.99": "inf"}},
    {"test": "b", "delta": 0.3, "std": 0.1, "share_over": {"0.01": 0.0}, "quantiles": {"0.99": 0.5}},
]


def passed(text: str, *, forbidden: bool = False) -> list[bool]:
    return [verdict.passed for verdict in judge([parse(text, "gates[0]", forbidden=forbidden)], SUMMARY)]


def test_gates_must_hold_for_every_test() -> None:
    assert passed("delta <= 0.1") == [True, False]
    assert passed("delta<0.1") == [False, False]
    assert passed("share_over[0.01] == 0") == [False, True]
    assert passed("quantiles[0.99] < 1e3") == [False, True]
    assert passed("delta < inf") == [True, True]


def test_fail_on_fails_where_its_condition_is_true() -> None:
    assert passed("delta > 0.2", forbidden=True) == [True, False]


def test_what_does_not_apply_cannot_vouch_for_a_release() -> None:
    assert passed("std >= 0") == [False, True]
    assert passed("std > 5", forbidden=True) == [False, True]


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


def test_keys_of_quantiles_and_shares_are_fixed() -> None:
    with pytest.raises(InputError, match=r"needs one of \[0.5\]"):
        parse("quantiles[0.7] < 1", "gates[0]")
    with pytest.raises(InputError, match=r"share_over needs one of"):
        parse("share_over < 1", "gates[0]")
