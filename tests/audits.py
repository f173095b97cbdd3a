"""Configs, rows and built tests from plain documents, made by the same functions that a run uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dit_dask.audit.build import build_tests
from dit_dask.audit.grammar import check_config
from dit_dask.audit.test import Test as Point
from dit_dask.config import document as config
from dit_dask.inputs.load import load
from dit_dask.values.table import Rows


def checked(
    schema: Mapping[str, Any], tests: Sequence[Mapping[str, Any]] = (), folder: str = ".", **more: Any
) -> config.Config:
    """A config document around a schema and tests."""
    document = {"version": 1, "data": {"source": "frame"}, "schema": schema, "tests": list(tests) or [{"sanitizer": "raw"}]}
    return check_config(document | more, folder)


def loaded(frame: pd.DataFrame, schema: Mapping[str, Any], **data: Any) -> Rows:
    """The rows of a frame."""
    return load(checked(schema, data={"source": "frame", **data}), frame)


def points(rows: Rows, schema: Mapping[str, Any], tests: Sequence[Mapping[str, Any]], seed: int = 0) -> list[Point]:
    """The built tests of a config."""

    def read(path: str, where: str) -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    return build_tests(checked(schema, tests, seed=seed), rows, read)


WORKED = pd.DataFrame({"age": [28, 36, 47, 53, 72], "gender": list("MMFMF"), "disease": ["Flu", "Flu", "Cancer", "Flu", "Flu"]})
WORKED_SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "gender": {"kind": "categorical"}},
    "sensitive": "disease",
}
