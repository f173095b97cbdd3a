"""Attacks by another user of the machine on the processes of a run: everything that listens is on loopback, which all share."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from distributed.comm import connect
from distributed.security import Security

from dit_dask.cluster import local
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import TaskSession
from tests.cluster.runs import CONFIG, ended, started, until, workers_of

pytestmark = pytest.mark.slow  # they look at a run while it works, which a busy machine can miss

SECONDS = 2.0
REQUEST = b"GET /info/main/workers.html HTTP/1.0\r\n\r\n"


def listening(process: psutil.Process) -> set[tuple[str, int]]:
    """The addresses on which a process and those below it accept connections."""
    found = set()
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            found |= {tuple(each.laddr) for each in one.net_connections("inet") if each.status == psutil.CONN_LISTEN}
    return found


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[tuple[str, int]]]:
    """Everything that `dit run` listens on while it works."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "long.yaml").write_text(CONFIG)
    with ended(started("run", folder / "long.yaml", "--out", folder / "runs", "--workers", 1)) as process:
        until(lambda: list(folder.glob("runs/*/records/*/*.parquet")), process)  # its workers have records in memory
        assert workers_of(process.pid)
        yield listening(psutil.Process(process.pid))
        assert process.poll() is None


def answer(stream: socket.socket) -> bytes:
    """What comes back for an HTTP request; nothing where the connection is cut or silent."""
    received = b""
    with suppress(OSError):
        stream.settimeout(SECONDS)
        stream.sendall(REQUEST)
        while more := stream.recv(1 << 16):
            received += more
    return received


def test_the_run_listens_on_loopback_only(addresses: set[tuple[str, int]]) -> None:
    assert len(addresses) >= 3  # scheduler, nanny, worker
    assert {host for host, _ in addresses} == {local.LOOPBACK}


def test_a_plain_tcp_client_of_another_user_is_refused(addresses: set[tuple[str, int]]) -> None:
    for host, port in addresses:
        with pytest.raises(OSError, match=r"\(closed\)|Timed out"):
            asyncio.run(connect(f"tcp://{host}:{port}", timeout=SECONDS))


def test_a_tls_client_of_another_user_is_refused(addresses: set[tuple[str, int]]) -> None:
    arguments = Security.temporary().get_connection_args("client")
    arguments["ssl_context"].verify_mode = ssl.CERT_NONE  # an attacker accepts any server
    for host, port in addresses:
        with pytest.raises(OSError, match=r"\(closed\)|Timed out"):
            asyncio.run(connect(f"tls://{host}:{port}", timeout=SECONDS, **arguments))


def test_a_tls_client_without_a_certificate_gets_no_byte(addresses: set[tuple[str, int]]) -> None:
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
    for address in addresses:
        received = b""
        with suppress(OSError), socket.create_connection(address, SECONDS) as plain, anonymous.wrap_socket(plain) as stream:
            received = answer(stream)
        assert received == b""


def test_no_port_shows_the_run_over_http(addresses: set[tuple[str, int]]) -> None:
    for address in addresses:
        with socket.create_connection(address, SECONDS) as stream:
            assert b"HTTP" not in answer(stream), address


def test_the_dashboard_is_served_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(CONFIG)
    words = ("--out", tmp_path / "runs", "--workers", 1, "--set", "cluster.dashboard=true")
    with ended(started("run", tmp_path / "long.yaml", *words)) as process:
        assert process.stderr is not None
        link = next(line for line in process.stderr if "shows the cluster at work" in line)
        assert link.startswith(f"dit: http://{local.LOOPBACK}:")
        open_ports = 0
        for address in listening(psutil.Process(process.pid)):
            with socket.create_connection(address, SECONDS) as stream:
                open_ports += b"HTTP" in answer(stream)
        assert open_ports == 1


def test_an_audit_in_a_notebook_listens_on_nothing() -> None:
    before = listening(psutil.Process())
    seen: list[set[tuple[str, int]]] = []

    def work(session: TaskSession) -> int:
        task = session.submit(sum, (1, 2), key="sum", description="sum")
        seen.append(listening(psutil.Process()))
        return sum(session.result(done) for done in session.completed() if done is task)

    assert TaskRunner(None).run(work) == 3
    assert seen == [before]


def test_what_workers_spill_to_disk_is_readable_by_their_user_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = local.scratch_folder()
    assert local.scratch_folder() == first  # so that Dask finds what killed workers left
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o700
    os.chmod(first, 0o755)  # as a folder that somebody else made in advance
    other = local.scratch_folder()
    assert other != first
    assert stat.S_IMODE(os.stat(other).st_mode) == 0o700
