"""Workers that die while they work."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.cluster.runs import DIT, assert_same, dit
from tests.cluster.test_resume import CONFIG


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_survives_the_death_of_all_its_workers(tmp_path: Path, workers: int) -> None:
    config = tmp_path / "long.yaml"
    config.write_text(CONFIG.replace("k: [2, 3]", "k: 2"))
    quiet = dit("run", config, "--out", tmp_path / "quiet")
    command = [*DIT, "run", str(config), "--out", str(tmp_path / "stormy"), "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "stormy").glob("*/records/*/part-*.parquet")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    victims = [child.pid for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
    assert len(victims) == workers
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    shown, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    assert "distributed" not in said
    assert_same(Path(quiet.stdout.splitlines()[-1]), Path(shown.splitlines()[-1]))
