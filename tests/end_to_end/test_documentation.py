"""What the README and the tutorial tell people to type works, in the order in which they tell it; the site builds."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dit_dask as dit
from tests.cluster.runs import dit as run_dit
from tests.conftest import ROOT

PAGES = {"README.md": {"dit run people.yaml": 1}, "docs/tutorial.md": {"dit run people.yaml": 1}}
"""The pages whose commands are run, and those commands that end with another exit code than 0."""


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    lines = [line[2:].partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(("make ", "cp "))]  # the table is copied here, make is for people


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "docs/examples/people.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = _commands(page)
    assert len(commands) >= 3
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "dit"
        expanded = [path for word in words for path in (map(str, Path().glob(word)) if "*" in word else [word])]
        done = run_dit(*expanded)
        assert done.returncode == PAGES[page].get(command, 0), (command, done.stderr)


def test_the_output_in_the_readme_is_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "docs/examples/people.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    run_dit("init", "people.csv", "--sensitive", "diagnosis")
    printed = run_dit("run", "people.yaml", "--quiet").stdout
    shown = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown is not None
    for line in shown[1].splitlines():
        if line.startswith(("PASS", "FAIL")):
            assert line in printed
        elif line.startswith("mondrian"):
            words = line.split()
            found = next(one for one in printed.splitlines() if one.startswith(f"{words[0]} ")).split()
            assert set(words) <= set(found)


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "docs/examples/people.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    assert isinstance(names["result"], dit.Result)


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 10
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs/images/report.png").stat().st_size < 200_000


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text("utf-8").splitlines()
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= set(index)


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "dit sanitize" in (tmp_path / "reference/commands.html").read_text("utf-8")
    assert "quasi_identifiers" in (tmp_path / "reference/keys.html").read_text("utf-8")


def test_our_rows_of_the_comparison_are_what_the_benchmark_prints() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/comparison.py")], capture_output=True, text=True, check=True)
    lines = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("dit_dask ")]
    printed = {(table, figure): value for _, table, figure, value in lines}
    page = (ROOT / "docs/comparison.md").read_text("utf-8")
    for figure, words in {"closeness": "`closeness`", "inference risk": "`attribute-inference` risk"}.items():
        (row,) = re.findall(rf"^\| dit_dask: {words}.*$", page, re.MULTILINE)
        shown = [cell.strip() for cell in row.strip("|").split("|")][1:]
        assert shown == [printed[table, figure].replace("0.000", "0") for table in ("a copy", "columns permuted")]
