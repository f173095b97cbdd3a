"""Checks the arguments of adapters, with one-line errors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd


def import_library(module: str, extra: str) -> Any:
    """Import an optional library, or name the extra that brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise  # the library is installed, a dependency of it is not
        raise InputError(f"the {extra} adapter needs {extra}: pip install 'dit_dask[{extra}]'") from missing


def check_columns(frame: pd.DataFrame, columns: object, name: str) -> list[str]:
    """Return the named columns as a list, if the table has every one of them, once."""
    if not isinstance(columns, list | tuple) or not columns or not all(isinstance(column, str) for column in columns):
        raise InputError(f"{name} must be a list of column names; got {columns!r}")
    for column in columns:
        if column not in frame.columns:
            raise unknown(name, column, map(str, frame.columns))
    if len(set(columns)) < len(columns):
        raise InputError(f"{name} must name each column once; got {columns!r}")
    return list(columns)


def check_numeric(frame: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    """Raise InputError for columns that do not hold numbers."""
    import pandas as pd

    for column in columns:
        if not pd.api.types.is_numeric_dtype(frame[column]) or pd.api.types.is_bool_dtype(frame[column]):
            raise InputError(f"{name} must be numeric; got {frame[column].dtype} in column {column!r}")


def check_integer(name: str, value: object, low: int, high: int, limit: str) -> int:
    """Return an integer between low and high; `limit` says what the upper limit is."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise InputError(f"{name} must be an integer >= {low}; got {value!r}")
    if value > high:
        raise InputError(f"{name} must be at most {high}, {limit}; got {value}")
    return value


def check_number(name: str, value: object, high: float, *, inclusive: bool) -> float:
    """Return a number from 0 to `high`."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    if not (0 <= number <= high if inclusive else 0 <= number < high):
        raise InputError(f"{name} must be a number >= 0 and {'<=' if inclusive else '<'} {high}; got {value!r}")
    return number


def check_choice(name: str, value: object, known: Collection[str]) -> str:
    """Return one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise unknown(name, value, known)
    return value
