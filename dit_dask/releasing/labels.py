"""Published values as readers of a table expect them: [20, 39], nodes of a hierarchy, dates, sets, *."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import Reader
from dit_dask.values.hierarchy import ROOT
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Ints

SPECIAL = frozenset(",;~{}()[]'\"\\*")  # characters that make a label ambiguous in a set
TICKS_PER_DAY = {"ns": 86_400 * 10**9, "us": 86_400 * 10**6}


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """A column of texts that repeat: the text of place code[n] among the labels; with an index, that of code[index[n]].

    An index is one of every row, and code[m] then one of every record or class.
    """

    code: Ints
    labels: Sequence[str]
    index: Ints | Codes | None = None

    def codes(self, rows: Any) -> Ints:
        """Return the codes of some rows."""
        codes: Ints = self.code[rows if self.index is None else self.index[rows]]
        return codes


def label_values(release: Release, place: int) -> LabelledColumn:
    """Name the published value of one attribute in every class; each name is read back and must mean the same."""
    attribute = release.schema.quasi_identifiers[place]
    published, levels = release.published, len(attribute.levels)
    value = published.shares(place, levels).value
    low, high, is_range = published.ends(place)
    distinct, first = np.unique(value, return_index=True)
    reader, labels = Reader(attribute), [""] * (int(value.max(initial=-1)) + 1)
    for number, one in zip(distinct.tolist(), first.tolist(), strict=True):
        covered = np.zeros(levels, bool)
        if is_range[one]:
            covered[low[one] : high[one] + 1] = True
        else:
            covered = published.coverage(place, levels)[1][number]
        labels[number] = _name(attribute, covered, reader)
    return LabelledColumn(value, labels)


def _name(attribute: Attribute, covered: Bools, reader: Reader) -> str:
    """The first way to write a set of codes that our own reader takes for exactly this set."""
    codes = np.flatnonzero(covered)
    if not len(codes):
        raise InputError(f"column {attribute.name!r}: a published value covers no value of the table")
    for text in _candidates(attribute, codes):
        try:
            if np.array_equal(reader(text).covers, covered):
                return text
        except InputError:
            continue
    raise InputError(f"column {attribute.name!r}: a published value cannot be written so that it is read back as it is")


def _candidates(attribute: Attribute, codes: Ints) -> list[str]:
    low, high = int(codes[0]), int(codes[-1])
    is_range = high - low + 1 == len(codes)
    found: list[str] = []
    if len(codes) == 1:
        found.append(level_text(attribute, low))
    elif is_range and attribute.hierarchy is None and attribute.kind != "ordinal":
        found.append(f"[{level_text(attribute, low)}, {level_text(attribute, high)}]")
    tree = attribute.hierarchy
    if is_range and tree is not None:
        found += [tree.names[node] for node in np.flatnonzero((tree.low == low) & (tree.high == high)) if tree.names[node]]
    if len(codes) == len(attribute.levels) and attribute.values is None:
        found.append(ROOT)
    names = [level_text(attribute, int(code)) for code in codes]
    quoted = [f"'{name.translate({39: chr(92) + chr(39), 92: chr(92) * 2})}'" for name in names]
    is_plain = not any(SPECIAL.intersection(name) for name in names)
    return [*found, *(["{" + ", ".join(names) + "}"] if is_plain else []), "{" + ", ".join(quoted) + "}"]


def level_text(attribute: Attribute, code: int) -> str:
    """Write one original value; a date without a time of day as a day."""
    level = attribute.levels[code]
    if attribute.unit is None or not isinstance(level, int):
        return str(level)
    moment = np.array([level]).astype(f"datetime64[{attribute.unit}]")
    is_day = level % TICKS_PER_DAY[attribute.unit] == 0
    return str(moment.astype("datetime64[D]")[0] if is_day else moment[0])


def label_bins(binned: Attribute, original: Attribute, bin_of: Ints) -> list[str]:
    """Name bins of an attribute, bin_of[code], by the original values that they hold."""
    if binned is original:
        return [level_text(original, code) for code in range(len(original.levels))]
    reader = Reader(original)
    return [_name(original, bin_of == number, reader) for number in range(len(binned.levels))]
