"""Dates written as text: unambiguous forms are recognised, the others need a format or the order of day and month."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.schema import AttributeConfig
from dit_dask.errors import InputError, quote
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

TIME = r"(?:[T ](?P<time>\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(rf"\s*(?P<year>\d{{4}})(?P<sign>[-/.]?)(?P<month>\d{{2}})(?P=sign)(?P<day>\d{{2}}){TIME}\s*")
YEAR_LAST = re.compile(rf"\s*(?P<first>\d{{1,2}})(?P<sign>[-/.])(?P<second>\d{{1,2}})(?P=sign)(?P<year>\d{{4}}){TIME}\s*")
MOST_MONTHS = 12


def parse_dates(name: str, cells: Sequence[Any], described: AttributeConfig, counts: Ints) -> list[datetime.datetime]:
    """Convert the distinct cells of a column to moments without a time zone."""
    where = f"schema.quasi_identifiers.{name}"
    parsed = [_from_text(cell, described, where) if isinstance(cell, str) else _from_object(cell) for cell in cells]
    bad = np.flatnonzero([moment is None for moment in parsed])
    if len(bad):
        worst = bad[counts[bad].argmax()]
        is_shown = counts[worst] >= MIN_DISCLOSED_COUNT
        shown = f"{quote(cells[worst])} in {counts[worst]:,} rows" if is_shown else f"{len(bad):,} other values"
        raise InputError(
            f"column {name!r} must be dates such as 2020-12-31 or 31.12.2020; got {shown} (set {where}.format, or list it "
            "under data.missing)",
            hidden=[str(cells[place]) for place in bad[:5]],
        )
    moments = [moment for moment in parsed if moment is not None]
    if described.dayfirst is None and described.format is None:
        moments = _order_days(name, cells, moments, where)
    return _without_zones(name, moments, described.zone, where)


def _from_object(cell: Any) -> datetime.datetime | None:
    """Convert a date or a time stamp of a Parquet file or a frame."""
    if isinstance(cell, datetime.datetime):  # time stamps of pandas, too
        return cell.to_pydatetime(warn=False) if hasattr(cell, "to_pydatetime") else cell
    return datetime.datetime(cell.year, cell.month, cell.day) if isinstance(cell, datetime.date) else None


def _from_text(text: str, described: AttributeConfig, where: str) -> datetime.datetime | None:
    if described.format is not None:
        return _by_formats(text, described.format, where)
    year_first, year_last = YEAR_FIRST.fullmatch(text), YEAR_LAST.fullmatch(text)
    if year_first:
        return _moment(year_first, int(year_first["month"]), int(year_first["day"]))
    if not year_last:
        return None
    first, second = int(year_last["first"]), int(year_last["second"])
    is_day_first = described.dayfirst if described.dayfirst is not None else year_last["sign"] == "." or second <= MOST_MONTHS
    return _moment(year_last, *((second, first) if is_day_first else (first, second)))


def _by_formats(text: str, formats: Sequence[str], where: str) -> datetime.datetime | None:
    """Parse by the formats given; two that read a cell as different dates overlap."""
    found = {}
    for form in formats:
        try:
            found[datetime.datetime.strptime(text.strip(), form)] = form
        except ValueError:
            continue
    if len(found) > 1:
        first, second = list(found.values())[:2]
        raise InputError(f"{where}.format: {first!r} and {second!r} overlap: they read the same value as different dates")
    return next(iter(found), None)


def _moment(match: re.Match[str], month: int, day: int) -> datetime.datetime | None:
    time, zone = match["time"] or "00:00", match["zone"] or ""
    hour = time if len(time.split(":")[0]) == 2 else f"0{time}"
    try:
        return datetime.datetime.fromisoformat(f"{match['year']}-{month:02}-{day:02}T{hour}{zone}")
    except ValueError:
        return None


def _order_days(name: str, cells: Sequence[Any], moments: list[datetime.datetime], where: str) -> list[datetime.datetime]:
    """Find out whether days or months come first in 03/04/2020, from dates that can be read in one way only."""
    matches = [YEAR_LAST.fullmatch(cell) if isinstance(cell, str) else None for cell in cells]
    slashed = [(int(match["first"]), int(match["second"])) for match in matches if match and match["sign"] != "."]
    if not slashed:
        return moments
    days_first, months_first = (any(pair[place] > MOST_MONTHS for pair in slashed) for place in (0, 1))
    if days_first == months_first:
        found = "both orders" if days_first else "dates that may be read in both orders"
        raise InputError(f"column {name!r} has {found} of day and month, such as 03/04/2020; set {where}.dayfirst")
    ordered = []
    for match, moment in zip(matches, moments, strict=True):
        if match and match["sign"] != "." and months_first:
            moment = _moment(match, int(match["first"]), int(match["second"])) or moment
        ordered.append(moment)
    return ordered


def _without_zones(name: str, moments: list[datetime.datetime], zone: str | None, where: str) -> list[datetime.datetime]:
    """Convert times to the named zone; without one, times with a zone are refused."""
    import zoneinfo

    zoned = sum(moment.tzinfo is not None for moment in moments)
    if not zoned:
        return moments
    if zone is None:
        raise InputError(f"column {name!r} has times with a time zone; set {where}.zone to the one that days are counted in")
    if zoned < len(moments):
        raise InputError(f"column {name!r} has times with and without a time zone; expected one or the other")
    try:
        target = zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(f"{where}.zone must be a time zone such as Europe/Paris or UTC; got {quote(zone)}") from None
    return [moment.astimezone(target).replace(tzinfo=None) for moment in moments]


def to_text(moments: Sequence[datetime.datetime]) -> list[str]:
    """Write moments as ISO days, or with their time of day where any has one."""
    has_times = any(moment.time() != datetime.time() for moment in moments)
    return [moment.isoformat(sep=" ") if has_times else moment.date().isoformat() for moment in moments]
