"""What is installed: an audit that could check nothing must not look like one that found nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import audit_dependencies
import write_hashed_constraints as hashed

UNREACHABLE: dict[str, Any] = {
    "no answer": subprocess.TimeoutExpired("pip_audit", 90),
    "no database": subprocess.CompletedProcess("pip_audit", 1, "", "ConnectionError"),
    "no package known": subprocess.CompletedProcess(
        "pip_audit", 0, json.dumps({"dependencies": [{"name": "numpy", "skip_reason": "not found"}]}), ""
    ),
}


def answer_with(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> None:
    def run(*_: Any, **__: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(audit_dependencies.subprocess, "run", run)


@pytest.mark.parametrize("outcome", UNREACHABLE.values(), ids=UNREACHABLE)
def test_an_audit_that_could_check_nothing_says_so_and_fails_where_it_is_required(
    outcome: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, outcome)
    assert audit_dependencies.main([]) == 0
    assert capsys.readouterr().out.startswith("dependency audit: NOT CHECKED: ")
    assert audit_dependencies.main(["--require"]) == 2


def test_a_vulnerable_package_fails_and_an_unchecked_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = [
        {"name": "old", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]},
        {"name": "private", "skip_reason": "not found"},
    ]
    answer_with(monkeypatch, subprocess.CompletedProcess("pip_audit", 1, json.dumps({"dependencies": packages}), ""))
    assert audit_dependencies.main([]) == 1
    shown = capsys.readouterr().out
    assert "old 1: CVE-1 (fixed in 2)" in shown
    assert "NOT CHECKED: private" in shown


def test_a_file_of_the_runtime_set_that_was_exchanged_is_refused_by_its_hash() -> None:
    text = hashed.HASHED.read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==\S+ --hash=sha256:[0-9a-f]{64}", line), line
    assert "://" not in text
    pinned, all_pinned = hashed.read_constraints(text), hashed.read_constraints(hashed.CONSTRAINTS.read_text("utf-8"))
    assert pinned == {name: all_pinned[name] for name in pinned}
    assert sorted(pinned) == hashed.runtime_set()


def test_the_page_about_security_names_files_that_exist() -> None:
    page = ROOT / "SECURITY.md"
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        assert (Path(page.parent) / target).is_file(), target
