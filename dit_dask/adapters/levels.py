"""Generalisation levels of a column: from the value itself up to `*`, as full-domain anonymisers take them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.values.hierarchy import ROOT, Hierarchy, parse

if TYPE_CHECKING:
    import pandas as pd

# a path of `leaf;parent;…;*` lines (or dit://hierarchies/…), {leaf: [parent, …, "*"]}, interval widths, or nothing: value or *
Source = str | Mapping[str, Sequence[str]] | Sequence[float] | None


def build_levels(column: pd.Series[Any], source: Source) -> list[list[object]]:
    """Return aligned lists, one a level: entry j of level 0 is a value, entry j of level i what it becomes there."""
    where = f"hierarchies.{column.name}"
    values = list(column.drop_duplicates())
    if source is None:
        return [values, [ROOT] * len(values)]
    if isinstance(source, str):
        paths = _paths_to_root(parse(_read_text(source, where), source))
    elif isinstance(source, Mapping):
        paths = _paths_to_root(parse(_join_lines(source, where), where))
    elif isinstance(source, list | tuple):
        return _build_intervals(column, values, _parse_widths(source, where), where)
    else:
        raise InputError(f"{where} must be a path, a mapping value: [parent, …, {ROOT!r}] or a list of widths; got {source!r}")
    unknown = sum(value not in paths for value in values)
    if unknown:
        raise InputError(f"{where}: {unknown} of the {len(values)} values in the table are not leaves of the hierarchy")
    return [list(level) for level in zip(*paths.values(), strict=True)]


def _read_text(path: str, where: str) -> str:
    try:
        return Path(datasets.resolve(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(f"{where}: cannot read {path} ({type(failure).__name__})") from failure


def _join_lines(paths: Mapping[str, Sequence[str]], where: str) -> str:
    text = io.StringIO()
    for leaf, above in paths.items():
        if not isinstance(above, list | tuple):
            raise InputError(f"{where}.{leaf} must be a list [parent, …, {ROOT!r}]; got {above!r}")
        csv.writer(text, delimiter=";").writerow([leaf, *above])
    return text.getvalue()


def _paths_to_root(hierarchy: Hierarchy) -> dict[object, list[object]]:
    """Map each leaf to its path to the root, all of one length: a shallow leaf is repeated.

    Levels are counted from the root, so that a node is on the same level in every path through it.
    """
    paths: dict[object, list[object]] = {}
    for node, name in enumerate(hierarchy.names):
        if hierarchy.child_count[node] == 0:
            path: list[object] = [name]
            above = int(hierarchy.parent[node])
            while above >= 0:
                path.append(hierarchy.names[above])
                above = int(hierarchy.parent[above])
            paths[name] = path
    depth = max(map(len, paths.values()))
    return {leaf: [leaf] * (depth - len(path)) + path for leaf, path in paths.items()}


def _parse_widths(widths: Sequence[object], where: str) -> list[Fraction]:
    """Parse widths exactly; each must be a multiple of the one before."""
    expected = f"{where} must be a list of positive widths, each a multiple of the one before; got {list(widths)!r}"
    if not widths or not all(isinstance(width, int | float) and not isinstance(width, bool) for width in widths):
        raise InputError(expected)
    try:
        steps = [Fraction(str(width)) for width in widths]
    except ValueError as failure:  # nan, inf
        raise InputError(expected) from failure
    if min(steps) <= 0 or any(wide % narrow or wide == narrow for narrow, wide in pairwise(steps)):
        raise InputError(expected)
    return steps


def _build_intervals(column: pd.Series[Any], values: list[object], widths: list[Fraction], where: str) -> list[list[object]]:
    """Return intervals `[low, high)` between multiples of each width.

    Their edges are public: unlike the range of the data they do not depend on the records.
    """
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"{where}: widths need a numeric column; got {column.dtype}")
    exact = [Fraction(str(value)) for value in values]
    intervals: list[list[object]] = []
    for width in widths:
        lows = [floor(value / width) * width for value in exact]
        intervals.append([f"[{format_number(low)}, {format_number(low + width)})" for low in lows])
    return [values, *intervals, [ROOT] * len(values)]


def format_number(value: Fraction | float) -> str:
    """Write a number as short as reading it back allows: 30, not 30.0."""
    return str(int(value)) if value == int(value) else repr(float(value))
