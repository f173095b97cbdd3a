"""Calls an imported function or class in the fork of a sanitizer process, and writes the frame that it returns as plain cells.

Like process_main.py it imports nothing of dit_dask.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Sequence
from typing import Any

from .process_messages import FunctionCall

METHODS = ("__call__", "sanitize", "anonymize", "fit_transform")


def call_target(target: Any, call: FunctionCall | None) -> None:
    """Call the function, or build the class and call its method, and write what it returns."""
    import pandas as pd

    if call is None:
        raise TypeError("a request names either a function or a command")
    random.seed(call.seed)  # forks share the state of their parent: draws from it would look deterministic
    sys.modules["numpy"].random.seed(call.seed)
    frame = pd.read_pickle(call.input)  # noqa: S301 - written by our own worker  # nosec B301
    arguments = dict(call.params)
    if call.seed_name:
        arguments[call.seed_name] = call.seed
    if inspect.isclass(target):
        instance = target(**arguments)
        method = next((name for name in METHODS if hasattr(instance, name)), None)
        if method is None:
            raise TypeError(f"the class has none of the methods {', '.join(METHODS)}")
        result = getattr(instance, method)(frame)
    else:
        result = target(frame, **arguments)
    if not isinstance(result, pd.DataFrame):
        raise TypeError(f"expected a DataFrame; got {type(result).__name__}")
    _write_columns(result, call.columns, call.output)


def _write_columns(frame: Any, columns: Sequence[str], path: str) -> None:
    """Write the columns as plain numbers, times and text: the worker unpickles nothing of third-party code."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1 and name in columns:
            raise ValueError(f"the column {name!r} is there {names.count(name)} times")
    arrays = {}
    for position, name in enumerate(names):
        cells = frame.iloc[:, position]
        if name not in columns:
            if tells_rows_apart(cells):  # what it holds stays here; that it is published must be known
                arrays[f"further column {position}"] = pa.array([number % 2 for number in range(len(frame))], pa.int8())
            continue
        kind = cells.dtype
        if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind):
            arrays[name] = pa.Array.from_pandas(cells)
        else:
            missing = cells.isna().to_numpy(bool)
            texts = [None if is_missing else _format_cell(cell) for cell, is_missing in zip(cells, missing, strict=True)]
            arrays[name] = pa.array(texts, pa.string())
    pq.write_table(pa.table(arrays), path)


def tells_rows_apart(cells: Any) -> bool:
    """Whether a column has several values and does not just number the rows."""
    texts = cells.astype(str).tolist()
    numbers = ([str(number) for number in range(start, start + len(texts))] for start in (0, 1))
    return len(set(texts)) > 1 and texts not in numbers


def _format_cell(cell: Any) -> str:
    """Write a cell as text; a collection of any type is written as a sorted set."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, list | tuple | set | frozenset):
        return "{" + ", ".join(sorted(repr(str(value)) for value in cell)) + "}"
    return str(cell)
