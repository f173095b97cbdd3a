"""SeaweedFS, a real S3 server on loopback that tests may kill and start again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEY, SECRET = "audit-key", "audit-secret-never-shown"
READER, READER_SECRET = "reader-key", "reader-secret-never-shown"
BUCKETS = ("incoming", "audits")


@dataclass(frozen=True)
class S3Access:
    """The address of an S3 server and the credentials of its two users."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Options as a config writes them."""
        return {"key": "${DIT_TEST_KEY}", "secret": "${DIT_TEST_SECRET}", "endpoint_url": self.endpoint}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that those options name."""
        return {"DIT_TEST_KEY": KEY, "DIT_TEST_SECRET": SECRET}

    @property
    def reader(self) -> dict[str, str]:
        """The same variables for a user who may read and list, and not write."""
        return {"DIT_TEST_KEY": READER, "DIT_TEST_SECRET": READER_SECRET}

    @property
    def resolved(self) -> dict[str, str]:
        """Options with the credentials themselves."""
        return {"key": KEY, "secret": SECRET, "endpoint_url": self.endpoint}

    def client(self) -> Any:
        """A filesystem of the test's own."""
        import s3fs

        limits = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 1}}
        return s3fs.S3FileSystem(**self.resolved, skip_instance_cache=True, use_listings_cache=False, config_kwargs=limits)


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


class SeaweedServer:
    """One server process, its folder and its ports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        writer = _identity("audit", KEY, SECRET, ["Admin", "Read", "Write", "List", "Tagging"])
        reader = _identity("reader", READER, READER_SECRET, ["Read", "List"])
        (folder / "s3.json").write_text(json.dumps({"identities": [writer, reader]}))
        self._master, self._volume, self._filer, port = free_ports(4)
        self._port = port
        self.access = S3Access(f"http://127.0.0.1:{port}")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start again on the same data, and wait until buckets can be written."""
        self.launch()
        deadline = time.monotonic() + 300
        while True:
            try:
                fs = self.access.client()
                for bucket in BUCKETS:
                    if not fs.exists(bucket):
                        fs.mkdir(bucket)
                fs.pipe_file("incoming/probe", b"ready")
                return
            except Exception:
                assert self._process is not None
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.5)

    def launch(self) -> None:
        """Start the process and wait for nothing."""
        command = [
            str(Path(sys.executable).with_name("weed")), "server", f"-dir={self._folder}", "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1", "-master.telemetry=false", f"-master.port={self._master}", f"-volume.port={self._volume}",
            "-filer", f"-filer.port={self._filer}", "-s3", f"-s3.port={self._port}", "-s3.port.iceberg=0", "-s3.port.lance=0",
            "-volume.max=60", "-s3.autoCreateBucket=false",
            f"-s3.config={self._folder / 's3.json'}", "-master.volumeSizeLimitMB=64",
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """End it at once: a graceful stop takes over 20 s."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def _identity(name: str, key: str, secret: str, actions: list[str]) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
