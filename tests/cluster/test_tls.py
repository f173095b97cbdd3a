"""Clusters by address, with real schedulers and workers: mutual TLS, what is refused, and version skew."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dit_dask.cluster import security
from dit_dask.config.cluster import TlsFiles
from dit_dask.errors import InputError
from tests.cluster.dask_processes import address_in
from tests.cluster.runs import dit

DASK = [sys.executable, "-m", "dask"]


@contextmanager
def process(*words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Dask process that ends with the test."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = subprocess.Popen([*DASK, *words], env=os.environ | environment, **quiet)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(120)


@contextmanager
def scheduler(folder: Path, protocol: str, *more: str) -> Iterator[str]:
    """A scheduler on loopback; yield its address."""
    there = folder / "scheduler.json"
    words = ["--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(there)]
    with process("scheduler", *words, *more):
        yield address_in(there)


@contextmanager
def worker(folder: Path, address: str, *more: str, **environment: str) -> Iterator[None]:
    """One worker of a scheduler."""
    words = ["worker", address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / "work")]
    with process(*words, *more, **environment):
        yield


def certificates(folder: Path) -> Path:
    assert dit("certificates", "--to", folder).returncode == 0
    return folder


def options(folder: Path, role: str) -> list[str]:
    return ["--tls-ca-file", f"{folder}/ca.crt", "--tls-cert", f"{folder}/{role}.crt", "--tls-key", f"{folder}/{role}.key"]


def client(folder: Path) -> str:
    return f"cluster.tls={{ca: {folder}/ca.crt, cert: {folder}/client.crt, key: {folder}/client.key}}"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates(tmp_path_factory.mktemp("ours") / "certificates")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, ours: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("secured")
    with scheduler(folder, "tls", *options(ours, "scheduler")) as address, worker(folder, address, *options(ours, "worker")):
        yield address


def test_mutual_tls_works_with_files_from_the_config(secured: str, ours: Path, config_file: Path) -> None:
    assert secured.startswith("tls://127.0.0.1:")
    done = dit(
        "run", config_file, "--out", config_file.parent / "runs", "--cluster", secured,
        "--set", client(ours), "--set", "cluster.timeout=60",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not encrypted" not in done.stderr


def test_mutual_tls_works_with_dasks_own_configuration(secured: str, ours: Path, config_file: Path) -> None:
    prefix = "DASK_DISTRIBUTED__COMM__TLS__"
    files = {"CA_FILE": "ca.crt", "CLIENT__CERT": "client.crt", "CLIENT__KEY": "client.key"}
    own = {f"{prefix}{key}": f"{ours}/{file}" for key, file in files.items()}
    done = dit(
        "run", config_file, "--out", config_file.parent / "runs", "--cluster", secured, "--set", "cluster.timeout=60", **own
    )
    assert done.returncode == 0, done.stderr


def refused(config: Path, address: str, *more: str) -> str:
    """The one line of a run that ends before it starts."""
    words = ["--out", str(config.parent / "runs"), "--quiet", "--set", "cluster.timeout=5"]
    failed = dit("run", config, "--cluster", address, *words, *more)
    assert failed.returncode == 2, failed.stderr
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1, failed.stderr
    return failed.stderr


def test_a_client_of_another_authority_is_refused(secured: str, config_file: Path) -> None:
    theirs = certificates(config_file.parent / "theirs")
    said = refused(config_file, secured, "--set", client(theirs))
    assert f"the certificate of the scheduler at {secured} is not signed by cluster.tls.ca" in said


def test_a_client_whose_certificate_is_foreign_is_refused(secured: str, ours: Path, config_file: Path) -> None:
    theirs = certificates(config_file.parent / "theirs")
    mixed = f"cluster.tls={{ca: {ours}/ca.crt, cert: {theirs}/client.crt, key: {theirs}/client.key}}"
    said = refused(config_file, secured, "--set", mixed)
    assert f"the scheduler at {secured} refuses this client's certificate, cluster.tls.cert" in said


def test_plain_tcp_to_a_tls_scheduler_is_refused(secured: str, config_file: Path) -> None:
    plain = secured.replace("tls://", "tcp://")
    assert f"the scheduler at {plain} uses TLS; use tls:// and cluster.tls" in refused(config_file, plain)


def test_something_else_that_listens_there_is_no_scheduler(config_file: Path) -> None:
    class Chatty(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Chatty) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{server.server_address[1]}"
        assert f"no Dask scheduler answers at {address} within 5 s" in refused(config_file, address)
        server.shutdown()
        thread.join()


def test_tls_needs_certificates(secured: str, config_file: Path) -> None:
    assert "tls:// needs certificates: set cluster.tls" in refused(config_file, secured)
    assert not (config_file.parent / "runs").exists()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("ca.crt", "nowhere.crt", "nowhere.key"), "cluster.tls.cert: cannot read"),
        (("ca.crt", "client.crt", "worker.key"), "are not a certificate and its key"),
        (("client.key", "client.crt", "client.key"), "holds no certificate"),
    ],
)
def test_certificate_files_must_be_usable(ours: Path, files: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        security.check_files(TlsFiles(*(str(ours / file) for file in files)))


def test_a_plain_cluster_must_have_workers_and_equal_versions(tmp_path: Path, config_file: Path, ours: Path) -> None:
    other = tmp_path / "other" / "pandas-9.9.9.dist-info"  # the worker's own idea of its pandas
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 9.9.9\n")
    with scheduler(tmp_path, "tcp") as address:
        secure = address.replace("tcp://", "tls://")
        said = refused(config_file, secure, "--set", client(ours))
        assert f"the scheduler at {secure} does not use TLS; is it tcp://?" in said
        assert f"the scheduler at {address} has no workers" in refused(config_file, address)
        with worker(tmp_path, address, PYTHONPATH=str(other.parent)):
            said = refused(config_file, address, "--set", "cluster.timeout=60")
    assert "cluster: versions differ: pandas " in said
    assert ", 9.9.9 on a worker; install the same ones on both sides" in said
    assert not list((config_file.parent / "runs").glob("*/records"))
