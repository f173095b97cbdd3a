"""The public names are documented: every parameter is explained, and every example runs."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import dit_dask as dit

FUNCTIONS = sorted(name for name in dit.__all__ if inspect.isfunction(getattr(dit, name)))
CLASSES = sorted(name for name in dit.__all__ if inspect.isclass(getattr(dit, name)))
WITH_EXAMPLES = [*FUNCTIONS, "Mondrian", "Result"]


def _explained(document: str) -> set[str]:
    """The names that the Parameters section explains."""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\w+\n-+\n|\Z)", document, re.S)
    lines = [] if section is None else [line for line in section[1].splitlines() if line and not line.startswith(" ")]
    return {name.strip() for line in lines for name in line.partition(" :")[0].split(",")}


@pytest.mark.parametrize("name", [*FUNCTIONS, "Mondrian"])
def test_every_parameter_is_explained(name: str) -> None:
    public = getattr(dit, name)
    assert set(inspect.signature(public).parameters) == _explained(inspect.getdoc(public) or "")


def _methods() -> list[Any]:
    return [getattr(dit.Result, name) for name in ("distances", "worst", "frontier", "release")]


@pytest.mark.parametrize("method", _methods(), ids=lambda method: method.__name__)
def test_parameters_of_a_result_are_explained(method: Any) -> None:
    assert set(inspect.signature(method).parameters) - {"self"} == _explained(inspect.getdoc(method) or "")


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_its_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = (one for one in doctest.DocTestFinder(recurse=False).find(getattr(dit, name), name) if one.name == name)
    assert found.examples
    text: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(found, out=text.append).failed == 0, "".join(text)


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_says_what_it_is(name: str) -> None:
    assert (inspect.getdoc(getattr(dit, name)) or "").endswith((".", "]", "}")) or "Examples" in inspect.getdoc(
        getattr(dit, name)
    )
