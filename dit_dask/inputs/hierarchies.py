"""Hierarchies that a config names: read from files, or made from the values themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.config.schema import HierarchyRule
from dit_dask.errors import InputError, quote
from dit_dask.inputs.source import read_text
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Bools, Ints
from dit_dask.values.hierarchy import ROOT, Hierarchy, build, flat, parse, parse_levels
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

MOST_NAMED = 10


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct labels of a column: factors[m] says which one each distinct cell has, counts[m] how many used rows have it.

    `first_row` finds the first used row that has one of some cells.
    """

    column: str
    labels: Sequence[str]
    factors: Ints
    counts: Ints
    first_row: Callable[[Bools], int]

    def refuse(self, problem: str, labels: Sequence[str], note: str = "") -> InputError:
        """Phrase that labels cannot be used: those that many rows share are named, of the others the first row."""
        place = {label: number for number, label in enumerate(self.labels)}
        counted = np.bincount(self.factors, self.counts, len(self.labels) + 1)  # the last is of those that no row has
        rows = {label: counted[place.get(label, -1)] for label in labels}
        # of the config alone, or of many people
        shown = [label for label in labels if not 0 < rows[label] < MIN_DISCLOSED_COUNT][:MOST_NAMED]
        if not shown:
            first = self.first_row(np.isin(self.factors, [place[label] for label in labels]))
            note = f", first in used row {first}{note} (--show-values shows them)"
            return InputError(f"{problem} {len(labels):,} values of column {self.column!r}{note}", hidden=labels[:MOST_NAMED])
        noun = "the value" if len(labels) == 1 else f"{len(labels):,} values"
        more = len(labels) - len(shown)
        named = ", ".join(quote(label) for label in shown) + (f" and {more:,} more" if more else "")
        text = f"{problem} {noun} {named} of column {self.column!r}{note}"
        return InputError(text, hidden=[label for label in labels if label not in shown][:MOST_NAMED])


def make_hierarchy(
    spec: str | HierarchyRule | None, labels: Labels, config: Config, where: str, *, inner: bool = False
) -> Hierarchy:
    """Make a hierarchy that has a leaf for every label; with `inner` any node of a file will do."""
    if spec is None:
        return flat(sorted(labels.labels))
    if isinstance(spec, str):
        return _checked(parse(read_text(spec, config, where), public_url(spec)), spec, labels, where, inner=inner)
    rule, value = next((rule, value) for rule, value in asdict(spec).items() if value is not None)
    if rule == "levels":
        text = read_text(value, config, f"{where}.levels")
        return _checked(parse_levels(text, public_url(value)), value, labels, f"{where}.levels")
    return build([[*path, ROOT] for path in RULES[rule](labels, value, f"{where}.{rule}")])


def _checked(hierarchy: Hierarchy, path: str, labels: Labels, where: str, *, inner: bool = False) -> Hierarchy:
    known = set(hierarchy.names if inner else hierarchy.leaves)
    missing = [label for label in labels.labels if label not in known]
    if missing:
        raise labels.refuse(f"{where}: {public_url(path)} has no {'node' if inner else 'leaf'} for", missing)
    return hierarchy


def _by_prefix(labels: Labels, lengths: Sequence[int], where: str) -> list[list[str]]:
    """Group codes by their first characters; a group is written as the prefix and a star."""
    short = [label for label in labels.labels if len(label) < lengths[0]]
    if short:
        raise labels.refuse(f"{where}: a prefix of {lengths[0]} characters is longer than", short)
    return [[label, *(f"{label[:length]}{ROOT}" for length in lengths)] for label in sorted(labels.labels)]


def _by_dates(labels: Labels, periods: Sequence[str], _where: str) -> list[list[str]]:
    """Group ISO dates by periods."""
    return [[label, *(PERIODS[period](label) for period in periods)] for label in sorted(labels.labels)]


def _by_bands(labels: Labels, widths: Sequence[float], where: str) -> list[list[str]]:
    """Group numbers by intervals whose ends are multiples of a width, closed on the left."""
    text = [label for label in labels.labels if not re.fullmatch(DECIMAL, label)]
    if text:
        raise labels.refuse(f"{where}: bands are of numbers; got", text)
    numbers = {label: Fraction(label.strip()) for label in labels.labels}
    exact = [Fraction(str(width)) for width in widths]
    return [
        [label, *(_band(numbers[label], width) for width in exact)]
        for label in sorted(numbers, key=lambda label: (numbers[label], label))
    ]


def _band(number: Fraction, width: Fraction) -> str:
    low = number // width * width
    return f"[{_short(low)}, {_short(low + width)})"


def _short(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):.15g}"


PERIODS: dict[str, Callable[[str], str]] = {
    "day": lambda date: date[:10],
    "month": lambda date: date[:7],
    "quarter": lambda date: f"{date[:4]}-Q{(int(date[5:7]) + 2) // 3}",
    "year": lambda date: date[:4],
    "decade": lambda date: f"{date[:3]}0s",
}
RULES: dict[str, Callable[[Labels, Any, str], list[list[str]]]] = {
    "prefix": _by_prefix,
    "dates": _by_dates,
    "bands": _by_bands,
}
