"""Fixtures that many tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# no time limit holds on a busy machine; the same examples in every CI run, new ones at a desk
settings.register_profile(
    "dit", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("dit")

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DIT_DATA") or ROOT.parent / "shared" / "data").resolve()


@pytest.fixture(scope="session", autouse=True)
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run in an empty folder: what a user's own runs left in the checkout is not seen, and nothing is added to it."""
    with chdir(tmp_path_factory.mktemp("cwd")), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIT_DATA", str(DATA))  # it may have been relative to the folder where the suite was started
        yield


def require_data() -> Path:
    """Return the folder of real tables; a missing folder is a skip, a missing file inside it is not."""
    if not DATA.is_dir():
        pytest.skip("no real data: set DIT_DATA")
    return DATA


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real tables."""
    return require_data()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the data is, a test that was skipped for want of it is a failure; under xdist the controller has the reports."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    lacking = [report.nodeid for report in skipped if "DIT_DATA" in str(report.longrepr)]
    if DATA.is_dir() and lacking:
        reporter.write_line(f"ERROR: {DATA} is there, but these tests found no real data: {', '.join(lacking)}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def write_people(folder: Path) -> Path:
    """Write a small CSV of people, with one incomplete row, and a hierarchy beside it."""
    lines = ["age,town,job,illness"]
    for number in range(60):
        town = ("Lyon", "Nice", "Bonn", "Köln")[number * 7 % 4]
        lines.append(
            f"{20 + number * 13 % 41},{town},{('cook', 'clerk')[number % 2]},{('flu', 'cold', 'gout')[number * 5 % 3]}"
        )
    lines.append("33,?,cook,flu")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "town.csv").write_text("Lyon;France;*\nNice;France;*\nBonn;Germany;*\nKöln;Germany;*\n", "utf-8")
    return folder / "people.csv"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A small CSV of people, with one incomplete row, and a hierarchy beside it."""
    return write_people(tmp_path)


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
