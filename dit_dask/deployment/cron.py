"""Cron schedules as Kubernetes reads them, checked before a cluster sees them."""

from __future__ import annotations

import re

from dit_dask.errors import InputError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# name, lowest and highest value, names of values
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 0, 6, DAYS),
)
MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def check(text: str, where: str) -> str:
    """Return the schedule; raise InputError that names the wrong field."""
    if text in MACROS:
        return text
    parts = text.split()
    if len(parts) != len(FIELDS):
        expected = "five fields (minute, hour, day of month, month, day of week) or one of " + ", ".join(MACROS)
        raise InputError(f"{where} must be {expected}; got {text!r}")
    values = [_expand_field(part, *field, where) for part, field in zip(parts, FIELDS, strict=True)]
    any_weekday = parts[4][0] in "*?"
    if any_weekday and not any(min(values[2]) <= DAYS_IN_MONTH[month - 1] for month in values[3]):
        raise InputError(f"{where} never runs: no such month has a day {min(values[2])}; got {text!r}")
    return text


def zone(text: str, where: str) -> str:
    """Return the name of a time zone; raise InputError if it is unknown."""
    from zoneinfo import available_timezones

    if text not in available_timezones():
        raise InputError(f"{where} must be the name of a time zone such as Europe/Paris; got {text!r}")
    return text


def _expand_field(part: str, name: str, lowest: int, highest: int, names: tuple[str, ...], where: str) -> set[int]:
    """Expand one field: lists of values, ranges and steps."""
    values: set[int] = set()
    for item in part.lower().split(","):
        span, slash, step = item.partition("/")
        match = re.fullmatch(r"[*?]|([a-z0-9]+)(?:-([a-z0-9]+))?", span)
        low, high = lowest, highest
        if match and match[1]:
            low = _parse_value(match[1], lowest, names)
            high = _parse_value(match[2], lowest, names) if match[2] else highest if slash else low
        wrong_step = slash and (not step.isdecimal() or int(step) < 1)
        if not match or wrong_step or not lowest <= low <= high <= highest:
            expected = f"values from {lowest} to {highest}, lists, ranges or steps such as */2"
            raise InputError(f"{where}: the {name} must be {expected}; got {part!r}")
        values.update(range(low, high + 1, int(step) if slash else 1))
    return values


def _parse_value(text: str, lowest: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + lowest
    return int(text) if text.isdecimal() else -1
