"""Gates: conditions on a test's summary that decide whether a release may go out."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.errors import InputError, unknown

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
SIMPLE = ("records", "distinct", "delta", "mean", "std", "argmax_changed", "classes", "smallest_class", "seconds")
KEYED = {"quantiles": ("0.5", "0.9", "0.99", "0.999"), "share_over": ("0.001", "0.00316", "0.01", "0.1")}
GROWING = ("delta", "mean", "argmax_changed", *KEYED)  # never smaller when a record's distance becomes known
GRAMMAR = re.compile(r"\s*([a-z_]+)(?:\[([^\]]+)\])?\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:inf|[\d.]+(?:[eE][+-]?\d+)?))\s*")


@dataclass(frozen=True)
class Gate:
    """A condition NAME OP NUMBER; `forbidden` turns it round: true is a breach."""

    text: str
    field: str
    key: str | None
    symbol: str
    limit: float
    forbidden: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether one test passed one gate, and why."""

    name: str
    test: str
    value: float | None
    limit: float
    passed: bool
    reason: str


def parse(text: str, where: str, *, forbidden: bool = False) -> Gate:
    """Read one gate or say what it should look like."""
    match = GRAMMAR.fullmatch(text)
    try:
        limit = float(match[4]) if match else math.nan
    except ValueError:
        match = None
    if not match:
        raise InputError(f"{where} must be NAME OP NUMBER such as 'delta <= 0.1'; got {text!r}")
    field, key = match[1], match[2]
    if field in KEYED:
        if key not in KEYED[field]:
            raise InputError(f"{where}: {field} needs one of [{'], ['.join(KEYED[field])}]; got {text!r}")
    elif key is not None or field not in SIMPLE:
        raise unknown(where, field if key is None else f"{field}[{key}]", [*SIMPLE, *(f"{name}[…]" for name in KEYED)])
    return Gate(" ".join(text.split()), field, key, match[3], limit, forbidden)


def judge(gates: Sequence[Gate], summary: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """Hold every test against every gate."""
    return [_verdict(gate, test) for gate in gates for test in summary]


def lost(gates: Sequence[Gate], lower_bounds: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """The gates that no further record can save, given what the summaries of the tests cannot fall below."""
    upper = [gate for gate in gates if gate.symbol in ("<", "<=") and not gate.forbidden and gate.field in GROWING]
    return [verdict for verdict in judge(upper, lower_bounds) if not verdict.passed]


def _verdict(gate: Gate, test: Mapping[str, Any]) -> Verdict:
    held = test[gate.field] if gate.key is None else test[gate.field][gate.key]
    label = gate.field if gate.key is None else f"{gate.field}[{gate.key}]"
    if held is None:
        # what cannot be computed cannot vouch for a release
        return Verdict(gate.text, test["test"], None, gate.limit, False, f"{label} does not apply here")
    value = float(held)
    passed = OPERATORS[gate.symbol](value, gate.limit) != gate.forbidden
    return Verdict(gate.text, test["test"], value, gate.limit, passed, f"{label} is {value:.6g}")
