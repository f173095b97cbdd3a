"""Real servers for tests: SeaweedFS speaks S3 on loopback."""

from collections.abc import Iterator

import pytest

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
