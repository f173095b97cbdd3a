"""One finished run that many tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reporting.runs import finished_run


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a table with hostile names and values; tests must not change it."""
    return finished_run(tmp_path_factory.mktemp("hostile"))
