"""Interrupted and started again, a run does only what is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.cluster.runs import LIMIT, assert_same, dit, ended, started, until


def stopped(config: Path, output: Path, how: int) -> tuple[Path, int]:
    """Start a run, stop it once it has written some parts, and return its folder and exit code."""
    with ended(started("run", config, "--out", output)) as process:
        until(lambda: len(list(output.glob("*/records/*/part-*.parquet"))) > 1, process)
        os.killpg(process.pid, how)
        _, said = process.communicate(timeout=LIMIT)
    assert "distributed" not in said
    (folder,) = output.iterdir()
    return folder, process.returncode


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_resumes_with_the_same_result(config: Path, undisturbed: Path, tmp_path: Path, how: int) -> None:
    folder, code = stopped(config, tmp_path, how)
    assert code == (-9 if how == signal.SIGKILL else 2)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("records/*/part-*.parquet")}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == ("running" if how == signal.SIGKILL else "failed")
    if how != signal.SIGKILL:  # a session that could still say what it spent; a figure that is easy to find again
        assert sum(manifest["timings"]["engine_seconds"].values()) > 0
        manifest["timings"]["engine_seconds"] = dict.fromkeys(manifest["timings"]["engine_seconds"], 90_000.0)
        (folder / "manifest.json").write_text(json.dumps(manifest))
    assert dit("gate", folder, "--fail-on", "delta > 9").returncode == 2
    resumed = dit("run", config, "--out", tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert f"resuming: {len(before)} of" in resumed.stderr
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items())
    assert Path(resumed.stdout.splitlines()[-1]) == folder
    assert_same(undisturbed, folder)
    for entry in json.loads((folder / "summary.json").read_text()):
        assert (entry["seconds"] >= 90_000) == (how != signal.SIGKILL)  # what an earlier session spent counts too


def test_a_complete_run_is_not_run_again_and_another_gate_is_judged_on_it(
    config: Path, undisturbed: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(undisturbed, tmp_path / undisturbed.name))
    files = {path: path.stat().st_mtime_ns for path in folder.glob("records/*/*.parquet")}
    assert files
    again = dit("run", config, "--out", tmp_path)
    assert again.returncode == 0
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in files.items())
    assert dit("run", config, "--out", tmp_path, "--set", "gates=['delta <= 0']").returncode == 1


HARM = [(name, b"") for name in ("summary.json", "distributions.parquet", "measures.json", "report.html")] + [
    ("summary.json", b"[{")
]


@pytest.mark.parametrize(("name", "left"), HARM)
def test_a_complete_run_that_lost_a_file_is_repaired(
    config: Path, undisturbed: Path, tmp_path: Path, name: str, left: bytes
) -> None:
    folder = Path(shutil.copytree(undisturbed, tmp_path / undisturbed.name))
    (folder / name).unlink()
    if left:
        (folder / name).write_bytes(left)
    assert dit("run", config, "--out", tmp_path).returncode == 0
    assert_same(undisturbed, folder)
    assert (folder / name).stat().st_size > len(left)
