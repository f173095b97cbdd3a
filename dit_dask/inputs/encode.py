"""Columns as text labels or as numbers whose rank is their code; values are checked here, once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dit_dask.errors import InputError
from dit_dask.inputs.dialect import COMMA_DECIMAL
from dit_dask.inputs.hierarchies import Labels
from dit_dask.values.arrays import Bools, Codes, Floats, Ints
from dit_dask.values.numbers import DECIMAL, INTEGER
from dit_dask.values.schema import MIN_DISCLOSED_COUNT, Attribute

if TYPE_CHECKING:
    import pandas as pd

MAX_DIGITS = 1000
MISSING = "(missing)"  # the category of missing cells, where they are kept


@dataclass(frozen=True, eq=False)
class Column:
    """The distinct cells of a column in the used rows, and how many rows have each; rows without a value are left out.

    `first_row` finds the first used row that has one of some cells, which only messages need.
    """

    name: str
    cells: pd.Series[Any]
    counts: Ints
    has_missing: bool
    first_row: Callable[[Bools], int]


def check_single_type(name: str, column: pd.Series[Any]) -> None:
    """Raise InputError for an object column that mixes types."""
    if column.dtype == object:
        types = sorted({type(cell).__name__ for cell in column})
        if len(types) > 1:
            raise InputError(f"column {name!r} mixes types: {', '.join(types)}; expected one")
        if not isinstance(column.iloc[0], Hashable):
            raise InputError(f"column {name!r} must hold single values; got values of type {types[0]}")


def encode_numeric(column: Column) -> tuple[Attribute, Codes]:
    """Code the cells of a numeric column by the rank of their values; the numbers themselves only give widths."""
    name = column.name
    check_single_type(name, column.cells)
    if isinstance(column.cells.iloc[0], bool | np.bool_):
        raise InputError(f"column {name!r} must be numeric; got booleans (use kind: categorical)")
    numbers = _convert_numbers(column)
    unit = None
    if numbers.dtype.kind == "M":
        unit, numbers = np.datetime_data(numbers.dtype)[0], numbers.view(np.int64)
    levels, inverse = np.unique(numbers, return_inverse=True)
    values = levels if levels.dtype == np.float64 else _compute_offsets(name, levels)
    attribute = Attribute(name, "numeric", tuple(levels.tolist()), values, unit=unit)
    return attribute, inverse.astype(np.int32)


def _compute_offsets(name: str, levels: NDArray[Any]) -> Floats:
    """Return distances from the smallest level, subtracted exactly before they become floats."""
    try:
        offsets = np.array([float(step) for step in (levels.astype(object) - levels.astype(object)[0])])
    except OverflowError:
        offsets = np.array([np.inf])
    if not np.isfinite(offsets).all():
        raise InputError(f"column {name!r} must be numbers that differ by less than 1e308")
    return offsets


def _convert_numbers(column: Column) -> NDArray[Any]:
    """Convert the distinct cells of a column to numbers that sort and subtract exactly."""
    import datetime
    import decimal

    import pandas as pd

    name, cells = column.name, column.cells
    first = cells.iloc[0]
    if isinstance(first, str):
        return _parse_numbers(column, cells.astype(str))
    if pd.api.types.is_float_dtype(cells.dtype):
        return _check_finite(name, cells.to_numpy(np.float64))
    if pd.api.types.is_datetime64_any_dtype(cells.dtype) or isinstance(first, datetime.date):
        return _convert_dates(cells)
    if isinstance(first, int | np.integer):
        return _convert_integers([int(cell) for cell in cells])
    if isinstance(first, decimal.Decimal):
        return np.array(cells.tolist(), object)
    raise InputError(f"column {name!r} must be numbers or dates; got values of type {type(first).__name__}")


def _convert_dates(cells: pd.Series[Any]) -> NDArray[Any]:
    """Convert dates and times to integer nanoseconds, or microseconds where nanoseconds overflow."""
    import pandas as pd

    times = pd.to_datetime(cells)
    try:
        times = times.dt.as_unit("ns")
    except pd.errors.OutOfBoundsDatetime:  # 9999-12-31 and the like
        times = times.dt.as_unit("us")
    stamps: NDArray[Any] = times.astype("int64").to_numpy().view(f"datetime64[{times.dt.unit}]")
    return stamps


def _convert_integers(numbers: Sequence[int]) -> NDArray[Any]:
    """Return integers as int64 where they fit, else as Python integers."""
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return np.array(numbers, np.int64 if fits else object)


def _check_finite(name: str, numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise InputError(f"column {name!r} must be finite numbers; got an infinite one")
    return numbers + 0.0  # -0.0 and 0.0 are one value


def _parse_numbers(column: Column, cells: pd.Series[str]) -> NDArray[Any]:
    """Parse text as integers, decimals or ISO dates, all of one sort; the error names the first row."""
    import pandas as pd

    name, counts = column.name, column.counts
    is_integer = cells.str.fullmatch(INTEGER).to_numpy(bool)
    if is_integer.all():
        if cells.str.len().max() > MAX_DIGITS:
            raise InputError(f"column {name!r} must be numbers; got one of more than {MAX_DIGITS} digits")
        return _convert_integers([int(cell) for cell in cells])
    decimal = cells.str.fullmatch(DECIMAL).to_numpy(bool)
    if decimal.all():
        numbers = np.array([float(cell) for cell in cells])
        if (is_integer & (np.abs(numbers) >= 2**53)).any():
            raise InputError(f"column {name!r} mixes decimals with integers beyond 2^53, which they cannot represent")
        return _check_finite(name, numbers)
    if not decimal.any():
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
        if dates.notna().all():
            return _convert_dates(dates)
        decimal = dates.notna().to_numpy(bool)
    bad = np.flatnonzero(~decimal)
    if cells.iloc[bad].str.fullmatch(COMMA_DECIMAL).all():
        raise InputError(
            f"column {name!r} has numbers with a comma; set data.csv.decimal: ',' if it is the decimal sign, or remove it "
            "if it groups thousands"
        )
    worst = bad[counts[bad].argmax()]
    row = column.first_row(np.arange(len(cells)) == worst)
    shown = f"the text {cells.iloc[worst]!r} in {counts[worst]} rows" if counts[worst] >= MIN_DISCLOSED_COUNT else "text"
    raise InputError(
        f"column {name!r} must be numbers or ISO dates; got {shown}, first in used row {row} "
        "(list it under data.missing if it marks missing cells)",
        hidden=[cells.iloc[worst]],
    )


def label_cells(column: Column) -> Labels:
    """Write the cells of a column as labels."""
    import pandas as pd

    cells = column.cells
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    check_single_type(column.name, cells)
    labels = [str(value) for value in cells]
    if len(set(labels)) < len(labels):
        raise InputError(f"column {column.name!r} has different values that read the same as text")
    return Labels(column.name, labels, np.arange(len(labels)), column.counts, column.first_row)


def ordered_levels(order: Sequence[object], labels: Labels, where: str) -> list[str]:
    """Return an order as text; it must have all labels."""
    levels = [str(level) for level in order]
    missing = [label for label in labels.labels if label not in levels]
    if missing:
        raise labels.refuse(f"{where} has no place for", missing)
    return levels


def refuse_label(name: str, levels: Sequence[object]) -> None:
    """Refuse a value that has the name of missing cells."""
    if MISSING in levels:
        raise InputError(f"column {name!r} has the value {MISSING!r} and missing cells, which data.missing_as names so")
