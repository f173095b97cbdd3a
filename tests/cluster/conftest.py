"""Real servers for tests: SeaweedFS speaks S3 on loopback."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.runs import CONFIG, dit
from tests.cluster.s3_server import S3Access, SeaweedServer


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    """A SeaweedFS server with two users and two buckets; a test that kills it starts it again."""
    seaweed = SeaweedServer(tmp_path_factory.mktemp("seaweed"))
    try:
        seaweed.start()
        yield seaweed
    finally:
        seaweed.kill()


@pytest.fixture(scope="session")
def s3(seaweed: SeaweedServer) -> S3Access:
    """The address and credentials of that server."""
    return seaweed.access


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of some seconds and several parts."""
    path = tmp_path_factory.mktemp("config") / "long.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def undisturbed(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that audit, run without any fault; tests copy it before they change it.

    The processes of xdist share one: the first runs it, under a lock, and a complete run is not run again.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "undisturbed"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = dit("run", config, "--out", shared / "runs")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])
