"""The examples for continuous integration: they parse, their commands exist, and their script gates as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask.cli.commands import SUBCOMMANDS
from dit_dask.cli.parser import build_parser
from tests.conftest import ROOT
from tests.reporting.runs import hostile_config

FOLDER = ROOT / "deploy" / "ci"
GITHUB = yaml.safe_load((FOLDER / "github-actions.yaml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = GITHUB["jobs"]["audit"]["steps"]
GITLAB = yaml.safe_load((FOLDER / "gitlab-ci.yaml").read_text("utf-8"))["audit"]


def commands(text: str) -> list[str]:
    return [line.strip() for line in re.findall(r"^\s*(?:- )?(dit .*)$", text, re.MULTILINE)]


@pytest.mark.parametrize("name", ["github-actions.yaml", "gitlab-ci.yaml"])
def test_every_command_is_one_of_ours(name: str) -> None:
    found = commands((FOLDER / name).read_text("utf-8"))
    assert [line.split()[1] for line in found] == ["run", "show", "report"]
    for line in found:
        words = shlex.split(re.split(r" > | \|\| ", line)[0])
        build_parser(SUBCOMMANDS).parse_args(words[1:])


def run_script(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the service would, with this dit."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "dit").write_text(f'#!/bin/sh\nexec {sys.executable} -m dit_dask "$@"\n')
    (folder / "bin" / "dit").chmod(0o755)
    for name in ("pip", "curl"):
        (folder / "bin" / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / "bin" / name).chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    names = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = os.environ | names | variables | {"PATH": path}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("gate", "word", "code"), [("delta <= 1.9", "FAIL", 1), ("smallest_class >= 2", "PASS", 0)])
def test_passing_and_failing_changes_get_a_comment_and_the_right_end(gate: str, word: str, code: int, tmp_path: Path) -> None:
    hostile_config(tmp_path, gates=[gate], measures=[], tests=[{"sanitizer": {"name": "mondrian", "k": 2}}]).rename(
        tmp_path / "audit.yaml"
    )
    by_name = {step.get("name"): step for step in STEPS}
    audited = run_script(by_name["Audit"]["run"], tmp_path)
    assert audited.returncode == 0, audited.stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "GITHUB_OUTPUT").read_text().splitlines())
    assert outputs["code"] == str(code)
    written = run_script(by_name["Write the verdict"]["run"], tmp_path, CODE=outputs["code"], RUN=outputs["run"])
    assert written.returncode == 0, written.stderr
    assert word in (tmp_path / "verdict.md").read_text("utf-8").splitlines()[0]
    assert (tmp_path / "evidence.zip").exists()
    assert run_script(by_name["Gate the release"]["run"], tmp_path, CODE=outputs["code"]).returncode == code
    done = run_script("\n".join(GITLAB["script"]), tmp_path)
    assert done.returncode == code, done.stderr


def test_an_audit_that_could_not_be_completed_says_so_and_fails(tmp_path: Path) -> None:
    done = run_script("\n".join(GITLAB["script"]), tmp_path)  # there is no config
    assert done.returncode == 2
    assert "could not be completed" in (tmp_path / "verdict.md").read_text("utf-8")
