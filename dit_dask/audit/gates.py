"""Gates: conditions on a test's summary that decide whether a release may go out."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dit_dask.audit.statistics import Figure, Statistics, by_name
from dit_dask.errors import InputError, quote, unknown

if TYPE_CHECKING:
    from dit_dask.audit.summary import TestSummary


@dataclass(frozen=True)
class Operator:
    """How a value is compared with a limit, the operator that is true where this one is false, and whether it limits growth."""

    holds: Callable[[float, float], bool]
    opposite: str
    is_upper_limit: bool = False


OPERATORS = {
    "<=": Operator(operator.le, ">", is_upper_limit=True),
    "<": Operator(operator.lt, ">=", is_upper_limit=True),
    ">=": Operator(operator.ge, "<"),
    ">": Operator(operator.gt, "<="),
    "==": Operator(operator.eq, "!="),
    "!=": Operator(operator.ne, "=="),
}
_SYMBOLS = "|".join(re.escape(symbol) for symbol in sorted(OPERATORS, key=len, reverse=True))
GRAMMAR = re.compile(rf"\s*([a-z_]+)(?:\[([^\]]+)\])?\s*({_SYMBOLS})\s*([+-]?(?:inf|[\d.]+(?:[eE][+-]?\d+)?))\s*")


@dataclass(frozen=True)
class Gate:
    """A condition NAME OP NUMBER that must hold; `text` is how it is shown."""

    text: str
    statistic: str
    key: str | None
    symbol: str
    limit: float

    @property
    def label(self) -> str:
        """The statistic with its key."""
        return by_name()[self.statistic].label(self.key)


@dataclass(frozen=True)
class Verdict:
    """Whether one test passed one gate, and why."""

    status: Literal["passed", "failed"]
    name: str
    test: str
    value: float | None
    limit: float
    reason: str

    @property
    def passed(self) -> bool:
        """Whether the gate's condition holds."""
        return self.status == "passed"


def parse(text: str, where: str) -> Gate:
    """Read one gate or say what it should look like."""
    match = GRAMMAR.fullmatch(text)
    try:
        limit = float(match[4]) if match else math.nan
    except ValueError:
        match = None
    if not match:
        raise InputError(f"{where} must be NAME OP NUMBER such as 'delta <= 0.1'; got {quote(text)}")
    name, key = match[1], match[2]
    statistic = by_name().get(name)
    if statistic is None or (key is not None and not statistic.keys):
        known = [one.label("…" if one.keys else None) for one in by_name().values()]
        raise unknown(where, name if key is None else f"{name}[{key}]", known)
    if statistic.keys and key not in statistic.keys:
        raise InputError(f"{where}: {name} needs one of [{'], ['.join(statistic.keys)}]; got {quote(text)}")
    return Gate(" ".join(text.split()), name, key, match[3], limit)


def parse_forbidden(text: str, where: str) -> Gate:
    """Read a condition that must not hold, as the gate that is its opposite: forbidding delta > 0.4 demands delta <= 0.4."""
    gate = parse(text, where)
    symbol, number = OPERATORS[gate.symbol].opposite, text.rpartition(gate.symbol)[2].strip()
    return Gate(f"{gate.label} {symbol} {number}", gate.statistic, gate.key, symbol, gate.limit)


def judge(gates: Sequence[Gate], summaries: Sequence[TestSummary]) -> list[Verdict]:
    """Judge every test by every gate."""
    return [_judge_one(gate, one) for gate in gates for one in summaries]


def _judge_one(gate: Gate, summary: TestSummary) -> Verdict:
    value = summary.figure(gate.statistic, gate.key)
    if value is None and summary.withheld:
        reason = f"{gate.label} is withheld here: it is of fewer than 10 rows; the run folder in output.private has it"
        return Verdict("failed", gate.text, summary.test, None, gate.limit, reason)
    return _verdict(gate, summary.test, value)


def already_failed(gates: Sequence[Gate], lower_bounds: Mapping[str, Statistics]) -> list[Verdict]:
    """The gates that fail whatever the other records give, from what the statistics of each test cannot fall below."""
    upper = [gate for gate in gates if OPERATORS[gate.symbol].is_upper_limit and by_name()[gate.statistic].grows]
    verdicts = [
        _verdict(gate, test, bounds.figure(gate.statistic, gate.key)) for gate in upper for test, bounds in lower_bounds.items()
    ]
    return [verdict for verdict in verdicts if not verdict.passed]


def _verdict(gate: Gate, test: str, value: Figure) -> Verdict:
    if value is None:  # what cannot be computed must not pass
        return Verdict("failed", gate.text, test, None, gate.limit, f"{gate.label} does not apply here")
    status: Literal["passed", "failed"] = "passed" if OPERATORS[gate.symbol].holds(value, gate.limit) else "failed"
    return Verdict(status, gate.text, test, float(value), gate.limit, f"{gate.label} is {value:.6g}")
