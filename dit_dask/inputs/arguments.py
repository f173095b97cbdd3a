"""What Python callers give an audit, written as a config has it: frames of several libraries, and components by value."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, describe_value

if TYPE_CHECKING:
    import pandas as pd

MAX_PICKLED_SIZE = 2**24


def read_data(data: Any) -> tuple[str, pd.DataFrame | None]:
    """Return the source as a config has it, and the frame that takes its place."""
    if isinstance(data, str | os.PathLike):
        return os.fspath(data), None
    return "frame", to_pandas(data)


def to_pandas(data: Any) -> pd.DataFrame:
    """Turn a frame of pandas, Dask or polars into one of pandas; polars and Dask are not imported for it."""
    import pandas as pd

    library = type(data).__module__.partition(".")[0]
    if library.startswith("dask") and hasattr(data, "compute"):
        data = data.compute()
    elif library == "polars" and hasattr(type(data), "columns"):
        data = (data.collect() if hasattr(data, "collect") else data).to_pandas()
    if not isinstance(data, pd.DataFrame):
        raise InputError(f"data must be a DataFrame, a path or a URL; got {describe_value(data)}")
    return data


def to_document(value: Any) -> Any:
    """Write an argument as a config file would have it, so that it can be checked as one."""
    if isinstance(value, Mapping):
        return {key: to_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def tests_document(tests: Any) -> Any:
    """Write tests as a config has them; sanitizers may be objects or functions, and an object may be the whole test."""
    if not isinstance(tests, Sequence) or isinstance(tests, str):
        return to_document(tests)
    names: dict[str, Any] = {}
    return [_test(test, names, f"tests[{place}]") for place, test in enumerate(tests)]


def _test(test: Any, names: dict[str, Any], where: str) -> Any:
    if _is_by_value(test):
        return {"sanitizer": sanitizer_document(test, names, f"{where}.sanitizer")}
    if not isinstance(test, Mapping):
        return to_document(test)
    return {  # in the order given, which is that of a sweep
        key: sanitizer_document(item, names, f"{where}.sanitizer") if key == "sanitizer" else to_document(item)
        for key, item in test.items()
    }


def sanitizer_document(given: Any, names: dict[str, Any] | None = None, where: str = "sanitizer") -> Any:
    """Write a sanitizer as a config has it; `names` has the functions that are named already."""
    names = {} if names is None else names
    if hasattr(given, "sanitizer") and not isinstance(given, type):  # such as dit.Mondrian(k=5)
        for key in ("quasi_identifiers", "hierarchies"):
            if getattr(given, key, None) is not None:
                raise InputError(
                    f"{where}: {key} are those of the schema in an audit; leave them out of {type(given).__name__}"
                )
        described = copy(given)
        described.sensitive = getattr(given, "sensitive", None) or "the schema's"  # l is about that one in an audit
        return to_document(described.sanitizer())
    if isinstance(given, list | tuple):
        return [sanitizer_document(one, names, f"{where}[{place}]") for place, one in enumerate(given)]
    if isinstance(given, Mapping) and given.get("name") == "python" and callable(given.get("target")):
        more = {key: to_document(item) for key, item in given.items() if key not in ("name", "target")}
        return _function(given["target"], names, f"{where}.target") | more
    return _function(given, names, where) if callable(given) else to_document(given)


def _is_by_value(test: Any) -> bool:
    return callable(test) or (hasattr(test, "sanitizer") and not isinstance(test, Mapping))


def _function(function: Callable[..., Any], names: dict[str, Any], where: str) -> dict[str, Any]:
    """A function as the sanitizer `function`: its name, and itself as a pickle."""
    import cloudpickle

    try:
        pickled = cloudpickle.dumps(function)
    except Exception as error:
        raise InputError(f"{where}: this function cannot be sent to other processes: {type(error).__name__}") from error
    if len(pickled) > MAX_PICKLED_SIZE:
        raise InputError(
            f"{where}: the function and what it refers to take {len(pickled):,} bytes, more than {MAX_PICKLED_SIZE:,}; "
            "let it read large tables from a file"
        )
    return {
        "name": "function",
        "function": _name(function, names),
        "pickled": base64.b64encode(pickled).decode(),
        "cache": "none",  # no other run may use its releases
    }


def _name(function: Any, names: dict[str, Any]) -> str:
    """Name a function, and number another one of the same name."""
    known = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", type(function).__name__)
    name = "".join(letter if letter.isalnum() or letter == "_" else "" for letter in str(known)).lower() or "function"
    number, chosen = 1, name
    while chosen in names and names[chosen] is not function:
        number += 1
        chosen = f"{name}{number}"
    names[chosen] = function
    return chosen
