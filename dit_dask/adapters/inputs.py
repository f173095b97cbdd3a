"""Checks of what a config hands to an adapter, with the one line that a user sees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd


def library(module: str, extra: str) -> Any:
    """Import an optional library, or name the extra that brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise  # the library is here, something that it needs is not
        raise InputError(f"the {extra} adapter needs {extra}: pip install 'dit_dask[{extra}]'") from missing


def present(frame: pd.DataFrame, columns: object, what: str) -> list[str]:
    """Return the named columns as a list, if the table has every one of them, once."""
    if not isinstance(columns, list | tuple) or not columns or not all(isinstance(column, str) for column in columns):
        raise InputError(f"{what} must be a list of column names; got {columns!r}")
    for column in columns:
        if column not in frame.columns:
            raise unknown(what, column, map(str, frame.columns))
    if len(set(columns)) < len(columns):
        raise InputError(f"{what} must name each column once; got {columns!r}")
    return list(columns)


def numeric(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Refuse columns that do not hold numbers."""
    import pandas as pd

    for column in columns:
        if not pd.api.types.is_numeric_dtype(frame[column]) or pd.api.types.is_bool_dtype(frame[column]):
            raise InputError(f"{what} must be numeric; got {frame[column].dtype} in column {column!r}")


def whole(what: str, value: object, low: int, high: int, why: str) -> int:
    """Return an integer between low and high; `why` explains the upper limit."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise InputError(f"{what} must be an integer >= {low}; got {value!r}")
    if value > high:
        raise InputError(f"{what} must be at most {high}, {why}; got {value}")
    return value


def share(what: str, value: object, high: float, *, inclusive: bool) -> float:
    """Return a number from 0 to `high`."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
    if not (0 <= number <= high if inclusive else 0 <= number < high):
        raise InputError(f"{what} must be a number >= 0 and {'<=' if inclusive else '<'} {high}; got {value!r}")
    return number


def one_of(what: str, value: object, known: Collection[str]) -> str:
    """Return one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise unknown(what, value, known)
    return value
