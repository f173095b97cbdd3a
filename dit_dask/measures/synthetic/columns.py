"""The frames that a measure compares: the same columns with the same sort of values, checked once."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, unknown
from dit_dask.values.numbers import DECIMAL, INTEGER

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Floats, Ints

KINDS = ("numeric", "categorical")
SORTS = {
    "number": "numeric",
    "date": "numeric",
    "duration": "numeric",
    "text": "categorical",
    "boolean": "categorical",
    "category": "categorical",
}
# the first that fits: a bool is an int, and everything that can be a category is hashable
TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "boolean": (bool, np.bool_),
    "date": (datetime.date, np.datetime64),
    "duration": (datetime.timedelta, np.timedelta64),  # before numbers: numpy's is one of its integers
    "number": (int, float, decimal.Decimal, np.number),
    "category": (Hashable,),
}
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ].*)?"
MIN_ROWS = 2
NANOSECONDS = {
    "W": 7 * 86_400 * 10**9,
    "D": 86_400 * 10**9,
    "h": 3_600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
}
"""Of each unit of numpy's times that has a fixed length."""
MAX_EXACT = 2**62  # differences of smaller numbers fit into 64 bits


@dataclass(frozen=True, eq=False)
class Column:
    """One column in every frame, in the order of the frames.

    Numeric cells are float64 with NaN for missing ones; whole numbers and dates are offsets from the first frame's smallest, so
    that none is rounded. Categorical cells are codes of `labels`, those of all frames, sorted; -1 stands for missing ones.
    `origin` is the value of the offset 0, None where zero means nothing: dates and categories. `counts` says for each frame for
    how many rows each of its cells stands, where some stand for several.
    """

    name: str
    kind: str
    cells: tuple[NDArray[Any], ...]
    labels: tuple[str, ...] = ()
    origin: float | None = None
    counts: tuple[Ints | None, ...] = ()

    def counts_of(self, frame: int) -> Ints:
        """Return (cells,): for how many rows each cell of a frame stands."""
        counts = self.counts[frame] if self.counts else None
        return np.ones(len(self.cells[frame]), np.int64) if counts is None else counts


def align(
    frames: Mapping[str, pd.DataFrame],
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    counts: Mapping[str, Ints] | None = None,
) -> tuple[Column, ...]:
    """Check that frames can be compared; the others are compared with the first. `counts` are those of frames by their role."""
    (first, reference), *others = frames.items()
    counted = counts or {}
    for role, frame in frames.items():
        _check_frame(role, frame, int(counted[role].sum()) if role in counted else len(frame))
    names = _names(reference) if columns is None else [str(column) for column in columns]
    if not names:
        raise InputError(f"{first}: expected at least one column; got none")
    for role, frame in frames.items():
        absent = [name for name in names if name not in _names(frame)]
        if absent:
            raise InputError(f"{role}: no column {absent[0]!r} among {frame.shape[1]}")
    for role, frame in others if columns is None else []:
        extra = [name for name in _names(frame) if name not in names]
        if extra:
            raise InputError(f"{role}: column {extra[0]!r} is not in {first}; name the columns to compare with columns=")
    for name, kind in (kinds or {}).items():
        if name not in names:
            raise unknown("kinds: column", name, names)
        if kind not in KINDS:
            raise unknown(f"kinds.{name}", kind, KINDS)
    aligned = (_align_column(name, frames, (kinds or {}).get(name)) for name in names)
    return tuple(replace(column, counts=tuple(counted.get(role) for role in frames)) for column in aligned)


def _names(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns]


def _check_frame(role: str, frame: pd.DataFrame, rows: int) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"{role} must be a DataFrame; got {type(frame).__name__}")
    if rows < MIN_ROWS:
        raise InputError(f"{role} must have at least {MIN_ROWS} rows; got {rows}")
    names = _names(frame)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{role}: the column {name!r} is there {names.count(name)} times")


def _align_column(name: str, frames: Mapping[str, pd.DataFrame], requested: str | None) -> Column:
    """Read one column of every frame, all of the same sort."""
    read = {role: frame.iloc[:, _names(frame).index(name)] for role, frame in frames.items()}
    series = {role: _read_text(cells, requested, f"{role}: column {name!r}") for role, cells in read.items()}
    sorts = {role: _find_sort(f"{role}: column {name!r}", cells) for role, cells in series.items()}
    first = next(iter(frames))
    if sorts[first] is None:
        raise InputError(f"{first}: column {name!r} has no value at all; leave it out with columns=")
    for role, sort in sorts.items():
        if sort is not None and sort != sorts[first]:
            hint = " (is the column categorical?)" if {sort, sorts[first]} == {"text", "date"} else ""
            raise InputError(
                f"column {name!r} holds {sorts[first]} values in {first} and {sort} values in {role}; expected the same{hint}"
            )
    kind = requested or SORTS[str(sorts[first])]
    if kind == "numeric":
        if SORTS[str(sorts[first])] != "numeric":
            raise InputError(f"column {name!r} must hold numbers or dates to be numeric; got {sorts[first]} values")
        are_dates = sorts[first] == "date"
        numbers, origin = _convert_numbers(name, series, are_dates)
        return Column(name, kind, numbers, origin=None if are_dates else origin)
    return _encode_labels(name, series)


def _read_text(cells: pd.Series[Any], requested: str | None, where: str) -> pd.Series[Any]:
    """Read text as the command does: as numbers or dates where these are asked for, as dates where all of it is ISO dates."""
    import pandas as pd

    if requested == "categorical" or not (cells.dtype == object or pd.api.types.is_string_dtype(cells.dtype)):
        return cells
    cells = cells.reset_index(drop=True)  # labels of an index may be names, and may be there twice
    present = cells.dropna()
    if not len(present) or not present.map(lambda cell: isinstance(cell, str)).all():
        return cells
    if requested == "numeric":
        return parse_text(cells.astype(object), where)
    if not present.astype(str).str.fullmatch(ISO_DATE).all():
        return cells
    dates = pd.to_datetime(present.astype(str), format="ISO8601", errors="coerce", utc=True)
    return dates.reindex(cells.index) if dates.notna().all() else cells


def parse_text(cells: pd.Series[Any], where: str) -> pd.Series[Any]:
    """Parse text as integers, decimals or ISO dates, all of one sort; a message never shows a cell."""
    import pandas as pd

    texts = cells.dropna().astype(str)
    if texts.str.fullmatch(INTEGER).all():
        integers = [int(cell) for cell in texts]
        return pd.Series(integers, index=texts.index, dtype=object).reindex(cells.index)
    if texts.str.fullmatch(DECIMAL).all():
        return texts.astype(float).reindex(cells.index)
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    if not dates.notna().all():
        bad = texts.index[(dates.isna() & ~texts.str.fullmatch(DECIMAL)).to_numpy(bool)]
        first = f", first in its row {bad[0]}" if len(bad) else ""
        raise InputError(f"{where} must be numbers or ISO dates, all of one sort; got {len(bad)} cells of other text{first}")
    return dates.reindex(cells.index)


def _find_sort(where: str, cells: pd.Series[Any]) -> str | None:
    """Return the sort of values in a column, None where all are missing."""
    import pandas as pd

    kind = cells.dtype
    if cells.isna().all():
        return None
    if isinstance(kind, pd.CategoricalDtype):
        return _find_sort(where, cells.astype(kind.categories.dtype if not cells.isna().any() else object))
    if pd.api.types.is_complex_dtype(kind):
        raise InputError(f"{where} must hold real numbers; got complex ones")
    tests = {
        "boolean": pd.api.types.is_bool_dtype,
        "date": pd.api.types.is_datetime64_any_dtype,
        "duration": pd.api.types.is_timedelta64_dtype,
        "number": pd.api.types.is_numeric_dtype,
    }
    by_type = [sort for sort, test in tests.items() if test(kind)]
    if by_type and not isinstance(kind, pd.ArrowDtype):
        return by_type[0]
    sorts = {_sort_of_cell(cell) for cell in cells.dropna()}
    if len(sorts) > 1:
        raise InputError(f"{where} mixes {' and '.join(sorted(sorts))} values; expected one sort")
    return sorts.pop()


def _sort_of_cell(cell: object) -> str:
    sort = next((sort for sort, types in TYPES.items() if isinstance(cell, types)), None)
    if sort is None:
        raise InputError(f"cells must be single values; got values of type {type(cell).__name__}")
    return sort


def _convert_numbers(name: str, series: Mapping[str, pd.Series[Any]], are_dates: bool) -> tuple[tuple[Floats, ...], float]:
    """Convert numbers or dates to floats, integers as exact offsets; return the origin of these too."""
    missing = [cells.isna().to_numpy(bool) for cells in series.values()]
    values = [
        (_to_nanoseconds if are_dates else _to_reals)(cells[~is_missing])
        for cells, is_missing in zip(series.values(), missing, strict=True)
    ]
    are_integers = all(array.dtype.kind in "iO" or not len(array) for array in values)
    origin = values[0].min() if are_integers else 0
    if are_integers and any(len(array) and max(abs(array.min()), abs(array.max())) >= MAX_EXACT for array in values):
        values, origin = [array.astype(object) for array in values], int(origin)
    columns = []
    for role, array, is_missing in zip(series, values, missing, strict=True):
        spread = np.full(len(is_missing), np.nan)
        spread[~is_missing] = (array - origin).astype(np.float64)
        if not np.isfinite(spread[~is_missing]).all():
            raise InputError(f"{role}: column {name!r} must hold finite numbers; got an infinite one")
        columns.append(spread + 0.0)  # -0.0 and 0.0 are one value
    return tuple(columns), float(origin)


def _to_reals(cells: pd.Series[Any]) -> NDArray[Any]:
    """Return integers as 64-bit integers, or Python's where these overflow; other numbers as floats."""
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind == "m":
        step = NANOSECONDS[np.datetime_data(cells.to_numpy().dtype)[0]]  # tables may have different units
        return np.array([count * step for count in cells.astype("int64").tolist()], object)
    if len(cells) and isinstance(cells.iloc[0], datetime.timedelta | np.timedelta64):
        return np.array([_duration_to_nanoseconds(cell) for cell in cells], object)
    if cells.dtype.kind == "i":
        return cells.to_numpy(np.int64)
    if cells.dtype.kind == "u" or (_holds_objects(cells) and all(_is_whole(cell) for cell in cells)):
        return np.array([int(cell) for cell in cells], object)
    return cells.to_numpy(np.float64)


def _holds_objects(cells: pd.Series[Any]) -> bool:
    """Tell whether cells are Python values: also Arrow's decimals are."""
    return bool(cells.dtype.kind == "O")


def _is_whole(cell: object) -> bool:
    if isinstance(cell, decimal.Decimal):
        return cell.is_finite() and cell == cell.to_integral_value()
    return isinstance(cell, int | np.integer)


def _duration_to_nanoseconds(cell: Any) -> int:
    """Return the same for every type and unit of durations; Python's have microseconds."""
    if isinstance(cell, np.timedelta64):
        step, number = np.datetime_data(cell.dtype)
        return int(cell.astype(np.int64)) * number * NANOSECONDS[step]
    return int(cell // datetime.timedelta(microseconds=1)) * 1000 + int(getattr(cell, "nanoseconds", 0))


def _to_nanoseconds(cells: pd.Series[Any]) -> NDArray[Any]:
    """Return dates and times, taken as UTC, as Python integers of nanoseconds."""
    import pandas as pd

    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    if cells.dtype == object or isinstance(cells.dtype, pd.ArrowDtype):
        return np.array([_cell_to_nanoseconds(cell) for cell in cells], object)
    times = cells.dt.tz_convert("UTC").dt.tz_localize(None) if cells.dt.tz is not None else cells
    step = NANOSECONDS[np.datetime_data(times.to_numpy().dtype)[0]]
    return np.array([stamp * step for stamp in times.astype("int64").tolist()], object)


def _cell_to_nanoseconds(cell: Any) -> int:
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
    microseconds = np.datetime64(cell, "us")
    if isinstance(cell, np.datetime64):
        return int(microseconds.astype(np.int64)) * 1000 + _duration_to_nanoseconds(cell - microseconds)
    return int(microseconds.astype(np.int64)) * 1000 + int(getattr(cell, "nanosecond", 0))


def _encode_labels(name: str, series: Mapping[str, pd.Series[Any]]) -> Column:
    """Turn categories into codes of their labels."""
    import pandas as pd

    factors = {role: pd.factorize(cells.astype(object)) for role, cells in series.items()}
    texts = {role: [format_label(value) for value in distinct] for role, (_, distinct) in factors.items()}
    labels = sorted({label for own in texts.values() for label in own})
    code = {label: position for position, label in enumerate(labels)}
    cells = []
    for role, (factor, _) in factors.items():
        table = np.array([*(code[label] for label in texts[role]), -1], np.int64)  # factor -1, a missing cell, takes the last
        cells.append(table[factor])
    return Column(name, "categorical", tuple(cells), tuple(labels))


def format_label(value: object) -> str:
    """Return a category's name, the same for equal values: 3 and 3.0, 1.50 as a decimal and 1.5, midnight and its date."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = _to_timestamp(value)
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return _format_decimal(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return _format_time(value)
    if isinstance(value, datetime.timedelta):
        return f"{_duration_to_nanoseconds(value)} ns"
    return str(value)


def _to_timestamp(value: np.datetime64 | np.timedelta64) -> object:
    import pandas as pd

    return pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)


def _format_decimal(value: decimal.Decimal) -> str:
    if value == value.to_integral_value():
        return str(int(value))
    shortest = str(float(value))
    return shortest if decimal.Decimal(shortest) == value else str(value.normalize())


def _format_time(value: datetime.datetime) -> str:
    """Times with a zone are taken as UTC, as those without one are."""
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    text = value.isoformat(sep=" ")
    return text.removesuffix(" 00:00:00")
