"""Real servers for tests: SeaweedFS speaks S3 on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

KEY, SECRET = "audit-key", "audit-secret-never-shown"


@dataclass(frozen=True)
class S3Server:
    """Where the server listens and how to log in."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Options as a config writes them."""
        return {"key": "${DIT_TEST_KEY}", "secret": "${DIT_TEST_SECRET}", "endpoint_url": self.endpoint}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that those options name."""
        return {"DIT_TEST_KEY": KEY, "DIT_TEST_SECRET": SECRET}


def free_ports(count: int) -> list[int]:
    """Ports below 45000: the server also takes each port + 10000."""
    found: list[int] = []
    for port in range(21_000 + os.getpid() % 2_000 * 10, 45_000):
        with socket.socket() as one, socket.socket() as two:
            try:
                one.bind(("127.0.0.1", port))
                two.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports")


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A SeaweedFS server with one user and two buckets."""
    import s3fs

    folder = tmp_path_factory.mktemp("weed")
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    user = {"name": "audit", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    (folder / "s3.json").write_text(json.dumps({"identities": [user]}))
    master, volume, filer, port = free_ports(4)
    command = [
        str(Path(sys.executable).with_name("weed")), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-master.telemetry=false", f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}",
        "-s3", f"-s3.port={port}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-volume.max=60",
        "-s3.autoCreateBucket=false", f"-s3.config={folder / 's3.json'}", "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                fs = s3fs.S3FileSystem(
                    key=KEY, secret=SECRET, endpoint_url=endpoint, skip_instance_cache=True,
                    config_kwargs={"connect_timeout": 2, "read_timeout": 5, "retries": {"max_attempts": 1}},
                )  # fmt: skip
                for bucket in ("incoming", "audits"):
                    if not fs.exists(bucket):
                        fs.mkdir(bucket)
                fs.pipe_file("incoming/probe", b"ready")
                break
            except Exception:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.5)
        yield S3Server(endpoint)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # a graceful stop takes over 20 s
        process.wait()
