"""What breaks while a run works, and that its result is the same as if nothing had happened.

`tools/write_reliability_table.py` runs these tests and writes what they report into docs/reliability.md.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import yaml

from tests.cluster.dask_processes import cluster, dask, free_port, processes
from tests.cluster.runs import CONFIG, LIMIT, assert_same, dit, ended, started, until, workers_of
from tests.cluster.s3_server import S3Access, SeaweedServer

Tell = Callable[[str, object], None]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts and network namespaces")


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Report a line of the table in docs/reliability.md: the fault, and what was seen."""
    return record_property


def folder_of(output: subprocess.CompletedProcess[str] | tuple[str, str]) -> Path:
    shown = output[0] if isinstance(output, tuple) else output.stdout
    return Path(shown.splitlines()[-1])


def parts(output: Path) -> list[Path]:
    return list(output.glob("*/records/*/part-*.parquet"))


def status(output: Path) -> str:
    (manifest,) = output.glob("*/manifest.json")
    return str(json.loads(manifest.read_text())["status"])


@pytest.mark.parametrize("workers", [1, 2])
def test_all_workers_die_at_once(config: Path, undisturbed: Path, tmp_path: Path, workers: int, tell: Tell) -> None:
    with ended(started("run", config, "--out", tmp_path, "--workers", workers)) as process:
        until(lambda: parts(tmp_path), process)
        victims = workers_of(process.pid)
        assert len(victims) == workers
        for victim in victims:
            victim.kill()
        shown, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert "distributed" not in said
    assert_same(undisturbed, folder_of((shown, said)))
    tell("fault", f"all workers killed at once ({workers})")
    tell("seen", "the run went on with new workers")


@pytest.mark.slow
def test_a_random_worker_dies_every_few_seconds(tmp_path: Path, tell: Tell) -> None:
    config = tmp_path / "long.yaml"
    config.write_text(CONFIG.replace("k: [2, 3]", "k: [2, 3, 4, 5, 6, 8]"))
    quiet = dit("run", config, "--out", tmp_path / "quiet")
    chance, killed = random.Random(5), 0
    with ended(started("run", config, "--out", tmp_path / "stormy")) as process:
        until(lambda: parts(tmp_path / "stormy"), process)
        while process.poll() is None and killed < 12:
            victims = workers_of(process.pid)
            if victims:
                with suppress(psutil.NoSuchProcess):
                    chance.choice(victims).kill()
                    killed += 1
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(2, 4))
        shown, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert killed >= 3
    assert_same(folder_of(quiet), folder_of((shown, said)))
    tell("fault", "a random worker killed every 2 to 4 s")
    tell("seen", f"{killed} workers killed; the run went on")


@pytest.mark.slow
def test_the_scheduler_dies_and_the_run_is_resumed(config: Path, undisturbed: Path, tmp_path: Path, tell: Tell) -> None:
    with (
        cluster() as (address, scheduler),
        ended(started("run", config, "--out", tmp_path, "--cluster", address)) as process,
    ):
        until(lambda: len(parts(tmp_path)) > 1, process)
        scheduler.kill()
        start = time.monotonic()
        _, said = process.communicate(timeout=LIMIT)
    waited = time.monotonic() - start
    assert process.returncode == 2
    assert "Traceback" not in said
    assert status(tmp_path) == "failed"
    before = len(parts(tmp_path))
    with cluster() as (address, _):
        resumed = dit("run", config, "--out", tmp_path, "--cluster", address)
    assert resumed.returncode == 0, resumed.stderr
    assert f"resuming: {before} of" in resumed.stderr
    assert_same(undisturbed, folder_of(resumed))
    tell("fault", "the scheduler killed")
    tell("seen", f"exit code 2 after {waited:.0f} s with one line; the same command on a new cluster resumed {before} parts")


def bucket_config(path: Path, s3: S3Access, output: str) -> Path:
    document = yaml.safe_load(CONFIG) | {"output": {"url": f"s3://audits/{output}", "storage_options": s3.options}}
    path.write_text(yaml.safe_dump(document))
    return path


def fetched(s3: S3Access, url: str, to: Path) -> Path:
    s3.client().get(url.removeprefix("s3://").rstrip("/"), str(to), recursive=True)
    return to


def test_the_storage_server_dies_and_comes_back(seaweed: SeaweedServer, undisturbed: Path, tmp_path: Path, tell: Tell) -> None:
    config = bucket_config(tmp_path / "long.yaml", seaweed.access, "outage")
    with ended(started("run", config, **seaweed.access.environment)) as process:
        fs = seaweed.access.client()
        until(lambda: fs.glob("audits/outage/*/plan.json"), process)
        seaweed.kill()
        start = time.monotonic()
        time.sleep(15)
        assert process.poll() is None, process.communicate()
        seaweed.start()
        away = time.monotonic() - start
        shown, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert_same(undisturbed, fetched(seaweed.access, shown.splitlines()[-1], tmp_path / "copy"))
    tell("fault", "the storage server (S3) killed and started again")
    tell("seen", f"{away:.0f} s without storage; the run waited and went on")


@pytest.mark.slow
def test_a_task_exceeds_its_memory(tmp_path: Path, tell: Tell) -> None:
    config = tmp_path / "memory.yaml"
    document = yaml.safe_load(CONFIG) | {
        "tests": [
            {
                "sanitizer": "raw",
                "adversary": {"name": "tests.cluster.memory_hungry.MemoryHungryTree"},
                "records": {"sample": 60},
            }
        ],
        "data": {"source": "dit://census", "limit": 300},
    }
    config.write_text(yaml.safe_dump(document))
    root = str(Path(__file__).parents[2])
    with cluster(memory="600MB", FILL_MEMORY="1") as (address, _):
        failed = dit("run", config, "--out", tmp_path / "out", "--cluster", address, "--quiet", PYTHONPATH=root)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") <= 2, failed.stderr  # one is the warning about tcp://
    assert "(out of memory?)" in failed.stderr
    assert "influence of" in failed.stderr
    assert status(tmp_path / "out") == "failed"
    with cluster(memory="600MB") as (address, _):
        resumed = dit("run", config, "--out", tmp_path / "out", "--cluster", address, PYTHONPATH=root)
    assert resumed.returncode == 0, resumed.stderr
    quiet = dit("run", config, "--out", tmp_path / "quiet", PYTHONPATH=root)
    assert_same(folder_of(quiet), folder_of(resumed))
    tell("fault", "a task exceeds the memory of its worker")
    tell("seen", "exit code 2, one line names the test and its records; the same command with enough memory finished")


def test_parts_are_truncated_or_altered_afterwards(config: Path, undisturbed: Path, tmp_path: Path, tell: Tell) -> None:
    folder = Path(shutil.copytree(undisturbed, tmp_path / undisturbed.name))
    first, second = sorted(folder.glob("records/*/part-*.parquet"))[:2]
    first.write_bytes(first.read_bytes()[:-100])
    content = bytearray(second.read_bytes())
    content[len(content) // 2] ^= 0xFF
    second.write_bytes(bytes(content))
    assert dit("run", config, "--out", tmp_path).returncode == 0
    assert first.read_bytes() == (undisturbed / first.relative_to(folder)).read_bytes()
    assert second.read_bytes() == (undisturbed / second.relative_to(folder)).read_bytes()
    assert_same(undisturbed, folder)
    tell("fault", "a part truncated, another altered, after the run")
    tell("seen", "both found by their digests when the run was started again, and redone")


@needs_root
def test_the_disk_is_full(config: Path, undisturbed: Path, tmp_path: Path, tell: Tell) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", disk], capture_output=True, check=False).returncode:
        pytest.skip("this root may not mount a small disk")
    try:
        failed = dit("run", config, "--out", disk, "--quiet")
        assert failed.returncode == 2
        assert failed.stderr.count("\n") == 1, failed.stderr
        assert "no space left" in failed.stderr
        assert status(disk) != "complete"
        left = len(parts(disk))
        assert not [path for path in disk.rglob(".*.tmp") if path.is_file()]
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        resumed = dit("run", config, "--out", disk)
        assert resumed.returncode == 0, resumed.stderr
        assert_same(undisturbed, folder_of(resumed))
    finally:
        subprocess.run(["umount", disk], check=True)
    tell("fault", "the disk is full")
    tell("seen", f"exit code 2, one line, after {left} parts; the same command finished when there was space")


@pytest.mark.parametrize("where", [pytest.param("files", marks=pytest.mark.slow), "s3"])
def test_two_identical_runs_at_once(
    config: Path, undisturbed: Path, s3: S3Access, tmp_path: Path, where: str, tell: Tell
) -> None:
    if where == "s3":
        config = bucket_config(tmp_path / "long.yaml", s3, "twins")
    more = [] if where == "s3" else ["--out", tmp_path / "twins"]
    with (
        ended(started("run", config, *more, "--workers", 1, **s3.environment)) as one,
        ended(started("run", config, *more, "--workers", 2, **s3.environment)) as other,
    ):
        results = [process.communicate(timeout=LIMIT) for process in (one, other)]
    assert one.returncode == other.returncode == 0, results
    urls = {shown.splitlines()[-1] for shown, _ in results}
    assert len(urls) == 1
    folder = Path(urls.pop()) if where == "files" else fetched(s3, urls.pop(), tmp_path / "copy")
    document = json.loads((folder / "manifest.json").read_text())
    assert document["status"] == "complete"
    assert document["plan"] == json.loads((folder / "plan.json").read_text())["plan"]
    assert_same(undisturbed, folder)
    index = folder.parent / "index.json"
    if where == "s3":
        s3.client().get("audits/twins/index.json", str(index))
    assert len(json.loads(index.read_text())["runs"]) == 1
    tell("fault", f"two identical runs at once ({where})")
    tell("seen", "both ended with 0 and the same folder; one plan, one entry in the index")


@pytest.mark.slow
def test_the_clock_is_wrong_and_jumps(s3: S3Access, tmp_path: Path, tell: Tell) -> None:
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
    if library is None:
        pytest.skip("needs libfaketime (Debian package faketime)")
    config, clock = tmp_path / "short.yaml", tmp_path / "clock"
    config.write_text(CONFIG.replace("limit: 6000", "limit: 1500"))
    clock.write_text("-400d")
    # what a clock on the wall shows is wrong, for the command and all its workers; the machine's count of seconds is not
    wrong = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1"}
    wrong |= {"DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with ended(started("run", config, "--out", tmp_path / "out", **wrong)) as process:
        until(lambda: list(tmp_path.glob("out/*/plan.json")), process)
        clock.write_text("+900d")
        shown, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    folder = folder_of((shown, said))
    assert_same(folder_of(dit("run", config, "--out", tmp_path / "quiet")), folder)
    timings = json.loads((folder / "manifest.json").read_text())["timings"]
    assert int(timings["finished"][:4]) - int(timings["started"][:4]) >= 3
    refused = dit("run", bucket_config(tmp_path / "s3.yaml", s3, "clock"), "--quiet", **s3.environment, **wrong)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "clocks" in refused.stderr
    tell("fault", "the clock 400 days slow, then 900 days fast while the run works (libfaketime)")
    tell("seen", "the run went on; a bucket refuses such a clock, and the one line says so")


@contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Two network namespaces joined by one cable, which is the interface veth of each."""
    one, other = (f"dit{os.getpid()}{side}" for side in "ab")

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        try:
            for name in (one, other):
                ip("netns", "add", name)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs iproute2 and the right to make network namespaces")
        ip("link", "add", f"v{one}", "netns", one, "type", "veth", "peer", "name", f"v{other}", "netns", other)
        for place, name in enumerate((one, other), 1):
            ip("-n", name, "addr", "add", f"10.77.0.{place}/24", "dev", f"v{name}")
            ip("-n", name, "link", "set", f"v{name}", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield one, other
    finally:
        for name in (one, other):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@needs_root
@pytest.mark.slow
def test_the_network_between_two_hosts_is_cut_for_some_seconds(
    config: Path, undisturbed: Path, tmp_path: Path, tell: Tell
) -> None:
    def cable(state: str) -> None:
        subprocess.run(["ip", "-n", other, "link", "set", f"v{other}", state], check=True)

    with two_hosts() as (one, other):
        port, options = free_port(), ("--nthreads", 1, "--no-dashboard", "--memory-limit", "4GB")
        address = f"tcp://10.77.0.1:{port}"
        scheduler = dask("scheduler", "--host", "10.77.0.1", "--port", port, "--no-dashboard", inside=[one])
        near = dask("worker", address, "--host", "10.77.0.1", *options, inside=[one])
        far = dask("worker", address, "--host", "10.77.0.2", *options, inside=[other])
        with processes(scheduler, near, far):
            command = ["ip", "netns", "exec", one, sys.executable, "-m", "dit_dask", "run", config, "--cluster", address]
            with ended(
                subprocess.Popen(
                    [*map(str, command), "--out", str(tmp_path)],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            ) as process:
                until(lambda: parts(tmp_path), process)
                cable("down")
                start = time.monotonic()
                time.sleep(8)
                cable("up")
                away = time.monotonic() - start
                shown, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert_same(undisturbed, folder_of((shown, said)))
    tell("fault", "two hosts (network namespaces), the cable between them cut for some seconds")
    tell("seen", f"cut for {away:.0f} s; the run went on")


@pytest.mark.slow
def test_a_run_without_progress_ends_names_its_tasks_and_can_be_resumed(
    config: Path, undisturbed: Path, tmp_path: Path, tell: Tell
) -> None:
    options = ("--out", tmp_path, "--set", "cluster.stall_minutes=1")
    with ended(started("run", config, *options)) as process:
        until(lambda: parts(tmp_path), process)
        for worker in workers_of(process.pid):
            worker.suspend()
        _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 2, said
    assert "no progress for" in said
    assert "mondrian-k" in said.splitlines()[-1]
    assert status(tmp_path) == "failed"
    resumed = dit("run", config, "--out", tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert "resuming" in resumed.stderr
    assert_same(undisturbed, folder_of(resumed))
    tell("fault", "all workers frozen (SIGSTOP), as in a deadlock")
    tell("seen", "the watchdog ended the run with 2 and named the tasks; the same command resumed it")
