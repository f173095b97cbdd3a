"""Gates: conditions that decide whether a release may go out, as a config writes them.

A gate is NAME OP NUMBER on a statistic or on a figure of a measure, `claims hold`, or `<measure> passed`; ` for PATTERN` at its
end limits it to tests whose ids match.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from dit_dask.audit.statistics import by_name
from dit_dask.errors import InputError, quote, unknown


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
_NUMBER = r"[+-]?(?:inf|[\d.]+(?:[eE][+-]?\d+)?)"
_NAME = r"([a-z][a-z_-]*)(?:\[([^\]]+)\])?(?:\.([A-Za-z_]\w*))?"
COMPARISON = re.compile(rf"\s*{_NAME}\s*({_SYMBOLS})\s*({_NUMBER})\s*")
SCOPE = re.compile(r"(.*\S)\s+for\s+(\S+)\s*", re.S)
CLAIMS, PASSED = "claims hold", "passed"
Kind = Literal["statistic", "figure", "claims", "passed"]


@dataclass(frozen=True)
class Gate:
    """A condition that must hold; `text` is how it is shown.

    A comparison has a symbol and a limit. `name` is a statistic or a measure, `key` what stands in brackets, `figure` the
    figure of a measure; `scope` is the pattern of the ids of tests that it judges.
    """

    text: str
    kind: Kind
    name: str = ""
    key: str | None = None
    figure: str = "value"
    symbol: str = "<="
    limit: float | None = None
    scope: str = "*"

    @property
    def label(self) -> str:
        """What is compared."""
        if self.kind == "statistic":
            return by_name()[self.name].label(self.key)
        key = "" if self.key is None else f"[{self.key}]"
        return f"{self.name}{key}.{self.figure}"

    def judges(self, test: str) -> bool:
        """Whether the test with this id is in the scope."""
        return fnmatchcase(test, self.scope)

    def holds(self, value: float) -> bool:
        """Whether a value meets the condition."""
        return self.limit is not None and OPERATORS[self.symbol].holds(value, self.limit)


def parse(text: str, where: str, measures: Iterable[str] = ()) -> Gate:
    """Read one gate or say what it should look like; `measures` are the names that may stand in place of a statistic."""
    shown = " ".join(text.split())
    scoped = SCOPE.fullmatch(text)
    if scoped:
        return replace(parse(scoped[1], where, measures), text=shown, scope=scoped[2])
    known = tuple(measures)
    if shown == CLAIMS:
        return Gate(shown, "claims")
    name, _, word = shown.partition(" ")
    if word == PASSED:
        return Gate(shown, "passed", _known_measure(name, known, where))
    match = COMPARISON.fullmatch(text)
    limit = _number(match[5]) if match else math.nan
    if not match or math.isnan(limit):
        raise InputError(
            f"{where} must be NAME OP NUMBER such as 'delta <= 0.1', 'claims hold' or 'MEASURE passed'; got {quote(text)}"
        )
    name, key, figure, symbol = match[1], match[2], match[3], match[4]
    if name in known:
        return Gate(shown, "figure", name, key, figure or "value", symbol, limit)
    _check_statistic(name, key, figure, known, where, text)
    return Gate(shown, "statistic", name, key, symbol=symbol, limit=limit)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _known_measure(name: str, measures: Sequence[str], where: str) -> str:
    if name not in measures:
        raise unknown(f"{where}: measure", name, measures)
    return name


def _check_statistic(name: str, key: str | None, figure: str | None, measures: Sequence[str], where: str, text: str) -> None:
    statistic = by_name().get(name)
    if statistic is None or figure is not None or (key is not None and not statistic.keys):
        names = [one.label("…" if one.keys else None) for one in by_name().values()]
        got = name + ("" if key is None else f"[{key}]") + ("" if figure is None else f".{figure}")
        raise unknown(where, got, [*names, *(f"{measure}.…" for measure in measures)])
    if not statistic.keys or key in statistic.keys:
        return
    if statistic.compute is None:  # stored with these keys only
        expected = ", ".join(f"[{known}]" for known in statistic.keys)
        raise InputError(f"{where}: {name} needs one of {expected}; got {quote(text)}")
    number = _number(key) if key is not None else math.nan
    lowest, highest = statistic.range
    if not lowest <= number <= highest:
        expected = f"a number between {lowest:g} and {highest:g}" if highest < math.inf else f"a number >= {lowest:g}"
        raise InputError(
            f"{where}: {name} needs {expected} in brackets, such as [{next(iter(statistic.keys))}]; got {quote(text)}"
        )


def parse_forbidden(text: str, where: str, measures: Iterable[str] = ()) -> Gate:
    """Read a condition that must not hold, as the gate that is its opposite: forbidding delta > 0.4 demands delta <= 0.4."""
    words = " ".join(text.split())
    if words == "claims broken":
        return Gate(CLAIMS, "claims")
    if words.endswith(" failed"):
        return parse(f"{words.removesuffix(' failed')} passed", where, measures)
    gate = parse(text, where, measures)
    if gate.kind in ("claims", "passed"):
        opposite = "claims broken" if gate.kind == "claims" else f"{gate.name} failed"
        raise InputError(f"{where} names what must not be: {quote(opposite)}; got {quote(text)}")
    symbol, rest = OPERATORS[gate.symbol].opposite, words.rpartition(gate.symbol)[2].strip()  # the number as it was written
    return replace(gate, text=f"{gate.label} {symbol} {rest}", symbol=symbol)


def parse_all(texts: Sequence[str], measures: Iterable[str] = ()) -> list[Gate]:
    """Read the `gates` of a config."""
    known = tuple(measures)
    return [parse(text, f"gates[{place}]", known) for place, text in enumerate(texts)]
