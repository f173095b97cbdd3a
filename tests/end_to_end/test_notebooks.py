"""Every notebook runs from top to bottom, ends with a decision, and is committed with the outputs of its script."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.conftest import ROOT, require_data

TOOL = runpy.run_path(str(ROOT / "tools/write_notebooks.py"))
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
NEEDS_DATA = {"07-papers-reproduced"}
LONG = {"05-differential-privacy", "06-synthetic-data"}  # seconds of processor time each


def _decision(notebook: Any) -> str:
    """What the last code cell with an output says."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    return str(outputs[-1].get("text") or outputs[-1]["data"]["text/plain"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebook machinery, not ours
@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else []) for path in SCRIPTS]
)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    if path.stem in NEEDS_DATA:
        require_data()
    notebook = TOOL["run_script"](path, tmp_path)
    shown = {kind for cell in notebook.cells for one in cell.get("outputs", []) for kind in one.get("data", {})}
    assert "text/html" in shown
    assert "decision" in _decision(notebook)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_outputs_are_those_of_the_script(path: Path) -> None:
    stored = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    script = TOOL["read_script"](path)
    assert [cell.source for cell in stored.cells] == [cell.source for cell in script.cells], "run tools/write_notebooks.py"
    assert "decision" in _decision(stored)
    assert not [one for cell in stored.cells for one in cell.get("outputs", []) if one.output_type == "error"]


def test_the_notebooks_are_numbered_and_have_scripts() -> None:
    assert [path.stem for path in SCRIPTS] == [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    assert [path.name[:2] for path in SCRIPTS] == [f"{number:02}" for number in range(1, len(SCRIPTS) + 1)]
