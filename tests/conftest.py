"""Fixtures that many tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# the same examples in every CI run; at a desk new ones are welcome
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real tables; a missing folder is a skip, a missing file inside it is not."""
    if not DATA.is_dir():
        pytest.skip("no real data: set DIT_DATA")
    return DATA


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the data is, a test that skipped for want of it is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    if DATA.is_dir() and any("no real data" in str(report.longrepr) for report in skipped):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A small CSV of people, with one incomplete row, and a hierarchy beside it."""
    lines = ["age,town,job,illness"]
    for number in range(60):
        town = ("Lyon", "Nice", "Bonn", "Köln")[number * 7 % 4]
        lines.append(
            f"{20 + number * 13 % 41},{town},{('cook', 'clerk')[number % 2]},{('flu', 'cold', 'gout')[number * 5 % 3]}"
        )
    lines.append("33,?,cook,flu")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "town.csv").write_text("Lyon;France;*\nNice;France;*\nBonn;Germany;*\nKöln;Germany;*\n", "utf-8")
    return tmp_path / "people.csv"


CONFIG = """\
version: 1
name: people
data: {source: people.csv, missing: ["?"]}
schema:
  quasi_identifiers:
    age: {kind: numeric}
    town: {kind: categorical, hierarchy: town.csv}
    job: {kind: categorical}
  sensitive: illness
tests:
  - sanitizer: {name: mondrian, k: [2, 5]}
  - sanitizer: raw
    adversary: conditional-frequency
cluster: {workers: 1}
seed: 3
"""


@pytest.fixture
def config_file(people: Path) -> Path:
    """A config that audits the small CSV."""
    path = people.parent / "people.yaml"
    path.write_text(CONFIG, "utf-8")
    return path
