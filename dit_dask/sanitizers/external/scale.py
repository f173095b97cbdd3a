"""Ordered values: numbers and dates parsed from text, and the levels between two of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date, time
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_NUMBER = 1000  # characters; no longer integer is loaded either
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?")
DATE = re.compile(
    r"(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):?(\d{2})?)?)?)?)?"
)
INFINITE = frozenset({"inf", "infinity", "∞"})
PER_SECOND = {"ns": 10**9, "us": 10**6}

Span = tuple[Any, Any]  # the first and the last value that a number or a date stands for


class MalformedError(ValueError):
    """A text in a known form whose content is contradictory or ambiguous."""


class Scale:
    """Levels in ascending order, as numbers or as moments; `codes` are their codes."""

    def __init__(self, levels: Sequence[Any], codes: NDArray[np.intp], unit: str | None = None) -> None:
        self.levels, self.codes, self.unit = levels, codes, unit
        # parse text as the loader did: equal text must give equal numbers
        self.number: Callable[[str], Any] = float if any(isinstance(level, float) for level in levels) else Fraction

    @cached_property
    def texts(self) -> list[str]:
        """The levels as masks see them: ISO dates, or the digits of whole numbers."""
        if self.unit:
            return [str(day) for day in np.array(self.levels, f"datetime64[{self.unit}]").astype("datetime64[D]")]
        return [str(int(level)) if level == int(level) else "" for level in self.levels]

    def span(self, text: str) -> Span | None:
        """Read a number or a date; a year, a month or a day lasts until its end."""
        text = text.strip()
        if len(text) > LONGEST_NUMBER:
            return None
        if self.unit:
            return _date_span(text, PER_SECOND[self.unit])
        return (self.number(text),) * 2 if NUMBER.fullmatch(text) else None

    def bound(self, text: str) -> Span | None:
        """Read an end of an interval, which may be infinite."""
        text = text.strip()
        sign, word = (text[0], text[1:]) if text[:1] in ("-", "+") else ("+", text)
        return (float(f"{sign}inf"),) * 2 if word.lower() in INFINITE else self.span(text)

    def between(self, low: Span, high: Span, closed: tuple[bool, bool] = (True, True)) -> NDArray[np.intp]:
        """Return the codes of the levels between two ends."""
        if low[0] > high[1]:
            raise MalformedError("its lower end is above its upper end")
        start = bisect_left(self.levels, low[0]) if closed[0] else bisect_right(self.levels, low[1])
        stop = bisect_right(self.levels, high[1]) if closed[1] else bisect_left(self.levels, high[0])
        return self.codes[start:stop]

    def nearest(self, span: Span) -> NDArray[np.intp]:
        """Return the codes of the levels next to a span that holds none, both where they are equally far."""
        position = bisect_left(self.levels, span[0])
        if position in (0, len(self.levels)):
            return self.codes[:1] if position == 0 else self.codes[-1:]
        # the distance of a period is that of its first and its last day, each taken at its start
        end = span[1] if self.unit is None or span[0] == span[1] else span[1] + 1 - 86400 * PER_SECOND[self.unit]
        below, first, last, above = (
            _printed_value(value) for value in (self.levels[position - 1], span[0], end, self.levels[position])
        )
        return self.codes[position - (first - below <= above - last) : position + (above - last <= first - below)]


def parse_fraction(text: str) -> Fraction | None:
    """Parse a number exactly; None if the text is not a number."""
    text = text.strip()
    return Fraction(text) if len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) else None


def _printed_value(number: Any) -> Fraction:
    """Return the decimal that a float is printed as: 0.15 is as far from 0.1 as from 0.2."""
    return Fraction(str(number) if isinstance(number, float) else number)


def _date_span(text: str, second: int) -> Span | None:
    """Return the first and the last tick of a year, month or day, or the tick of a moment."""
    match = DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second_of_minute, part, sign, hours, minutes = match.groups()
    try:
        first = date(int(year), int(month or 1), int(day or 1))
        last = date(int(year), int(month or 12), int(day or monthrange(int(year), int(month or 12))[1]))
        offset = time(int(hours or 0), int(minutes or 0))
        clock = time(int(hour or 0), int(minute or 0), int(second_of_minute or 0))
    except ValueError:
        return None
    start, stop = (ticks * 86400 * second for ticks in (_days(first), _days(last) + 1))
    if hour is None:
        return start, stop - 1
    shift = (offset.hour * 3600 + offset.minute * 60) * (-1 if sign == "-" else 1)
    seconds = clock.hour * 3600 + clock.minute * 60 + clock.second - shift + Fraction(int(part or 0), 10 ** len(part or ""))
    return (start + seconds * second,) * 2


def _days(day: date) -> int:
    return day.toordinal() - date(1970, 1, 1).toordinal()
