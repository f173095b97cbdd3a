"""The report as a browser shows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cluster.runs import dit

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_browser_draws_the_verdict_and_the_curves(config_file: Path, tmp_path: Path) -> None:
    done = dit("run", config_file, "--out", tmp_path / "runs", "--quiet", "--set", "gates=['delta <= 9']")
    page = Path(done.stdout.splitlines()[-1]) / "report.html"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert "<strong>PASS.</strong>" in shown
    assert shown.count("<path ") == 3
    assert "mondrian-k5" in shown
