"""What the suite promises about itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

TESTS = """\
import pytest


def test_that_needs_a_table():
    pytest.skip("no real data: set DIT_DATA")


def test_that_needs_none():
    pass
"""


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_skip_for_want_of_data_is_a_failure_where_the_data_is(tmp_path: Path, processes: int, is_there: bool) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish\n")
    (tmp_path / "test_table.py").write_text(TESTS)
    if is_there:
        (tmp_path / "data").mkdir()
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:kmock", "--numprocesses", str(processes), str(tmp_path)],
        cwd=tmp_path,
        env=outer | {"PYTHONPATH": str(ROOT), "DIT_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed, 1 skipped" in done.stdout
    assert done.returncode == (1 if is_there else 0), done.stdout
    assert ("test_that_needs_a_table" in done.stdout) == is_there
