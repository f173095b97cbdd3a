"""Run a table-to-table Python function on CSV files: what a `command` sanitizer calls in the environment of another tool."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from dit_dask.errors import DitError, InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, call, write; an expected failure is one line on stderr and exit code 2."""
    options = _build_parser().parse_args(arguments)
    try:
        _run(options)
    except DitError as failure:
        sys.stderr.write(f"error: {failure}\n")
        return 2
    return 0


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dit_dask.adapters", description=__doc__)
    parser.add_argument("target", help="package.module:function, which takes and returns a pandas DataFrame")
    parser.add_argument("--in", dest="input", required=True, help="the CSV to sanitise")
    parser.add_argument("--out", dest="output", required=True, help="the CSV to write")
    parser.add_argument("--params", help="a JSON file with the keyword arguments of the function")
    parser.add_argument(
        "--numeric", nargs="*", default=[], metavar="COLUMN", help="columns to read as numbers; others are text"
    )
    return parser


def _run(options: argparse.Namespace) -> None:
    import pandas as pd

    function = _import_function(options.target)
    parameters = _read_parameters(options.params)
    try:
        # only the listed columns are numbers: 02139 is not 2139, and NA may be a country
        frame = pd.read_csv(options.input, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as failure:
        raise InputError(f"--in: cannot read {options.input} ({type(failure).__name__})") from failure
    for column in options.numeric:
        if column not in frame.columns:
            raise InputError(f"--numeric: no column {column!r} in {options.input}; it has {', '.join(frame.columns)}")
        try:
            frame[column] = pd.to_numeric(frame[column])
        except ValueError as failure:
            raise InputError(f"--numeric: column {column!r} of {options.input} holds other than numbers") from failure
    function(frame, **parameters).to_csv(options.output, index=False)


def _import_function(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise InputError(f"target must be package.module:function; got {target!r}")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as failure:
        raise InputError(f"target {target!r} cannot be imported: {failure}") from failure


def _read_parameters(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        parameters = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise InputError(f"--params: cannot read {path} as JSON ({type(failure).__name__})") from failure
    if not isinstance(parameters, dict):
        raise InputError(f"--params: {path} must hold an object of keyword arguments; got {type(parameters).__name__}")
    return parameters


if __name__ == "__main__":
    sys.exit(main())
