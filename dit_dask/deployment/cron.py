"""Cron schedules as Kubernetes reads them, checked before a cluster sees them."""

from __future__ import annotations

import re

from dit_dask.errors import InputError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# name, least, most, names of values
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 0, 6, DAYS),
)
MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def check(text: str, where: str) -> str:
    """Return the schedule or say which field is wrong."""
    if text in MACROS:
        return text
    parts = text.split()
    if len(parts) != len(FIELDS):
        expected = "five fields (minute, hour, day of month, month, day of week) or one of " + ", ".join(MACROS)
        raise InputError(f"{where} must be {expected}; got {text!r}")
    values = [_values(part, *field, where) for part, field in zip(parts, FIELDS, strict=True)]
    any_weekday = parts[4][0] in "*?"
    if any_weekday and not any(min(values[2]) <= LONGEST[month - 1] for month in values[3]):
        raise InputError(f"{where} never comes: no such month has a day {min(values[2])}; got {text!r}")
    return text


def zone(text: str, where: str) -> str:
    """Return a time zone's name or say that there is none."""
    from zoneinfo import available_timezones

    if text not in available_timezones():
        raise InputError(f"{where} must be the name of a time zone such as Europe/Paris; got {text!r}")
    return text


def _values(part: str, name: str, least: int, most: int, names: tuple[str, ...], where: str) -> set[int]:
    """Expand one field: lists of values, ranges and steps."""
    found: set[int] = set()
    for item in part.lower().split(","):
        span, slash, step = item.partition("/")
        match = re.fullmatch(r"[*?]|([a-z0-9]+)(?:-([a-z0-9]+))?", span)
        low, high = least, most
        if match and match[1]:
            low = _number(match[1], least, names)
            high = _number(match[2], least, names) if match[2] else most if slash else low
        wrong_step = slash and (not step.isdecimal() or int(step) < 1)
        if not match or wrong_step or not least <= low <= high <= most:
            expected = f"values from {least} to {most}, lists, ranges or steps such as */2"
            raise InputError(f"{where}: the {name} must be {expected}; got {part!r}")
        found.update(range(low, high + 1, int(step) if slash else 1))
    return found


def _number(text: str, least: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text) + least
    return int(text) if text.isdecimal() else -1
