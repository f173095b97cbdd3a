"""Real servers for tests: SeaweedFS speaks S3 on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.runs import CONFIG, dit
from tests.cluster.weed import S3Server, Weed


@pytest.fixture(scope="session")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weed]:
    """A SeaweedFS server with two users and two buckets; a test that kills it starts it again."""
    weed = Weed(tmp_path_factory.mktemp("weed"))
    try:
        weed.start()
        yield weed
    finally:
        weed.kill()


@pytest.fixture(scope="session")
def s3(weed: Weed) -> S3Server:
    """Where that server is."""
    return weed.server


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of some seconds and several parts."""
    path = tmp_path_factory.mktemp("config") / "long.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def undisturbed(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that audit, run in peace; tests copy it before they harm it."""
    done = dit("run", config, "--out", tmp_path_factory.mktemp("whole"))
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])
