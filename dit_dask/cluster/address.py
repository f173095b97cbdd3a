"""A Dask cluster that runs already, at its scheduler's address."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dit_dask.cluster import security, versions
from dit_dask.config.cluster import ClusterConfig, TlsFiles
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

SECONDS = 8
PROBE_SECONDS = 3


def check(settings: ClusterConfig) -> None:
    """Check the certificates before anything starts."""
    if (settings.address or "").startswith("tls://"):
        security.client_security(settings.tls)


def warning(address: str) -> str | None:
    """Return a warning for plain TCP to another machine."""
    if address.startswith("tls://") or is_loopback(urlsplit(address).hostname or ""):
        return None
    return f"{address} is not encrypted, and whoever reaches that scheduler can run code on it; prefer tls://"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, without a name server."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def join(settings: ClusterConfig, _variables: Sequence[str] = ()) -> Iterator[Client]:
    """Yield a client of a cluster that runs already, after checks of its workers and versions."""
    with reach(settings.address or "", settings.tls, settings.timeout or SECONDS) as client:
        yield client


@contextmanager
def reach(address: str, files: TlsFiles | None, seconds: float) -> Iterator[Client]:
    """Yield a client of the scheduler at an address, once it has a worker and the versions agree."""
    from distributed import Client
    from distributed.versions import VersionMismatchWarning

    identity = security.client_security(files) if address.startswith("tls://") else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)  # checked below, and more strictly
            client = Client(address, timeout=seconds, security=identity)
    except Exception as error:  # another program may listen there, and its reply, parsed as Dask's, can raise anything
        raise InputError(f"cluster: {diagnosis(address, files, seconds)}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError as error:
            raise InputError(f"cluster: the scheduler at {address} has no workers") from error
        versions.check(client)
        yield client


def diagnosis(address: str, files: TlsFiles | None, seconds: float) -> str:
    """Connect to a scheduler that did not answer and return why."""
    parts = urlsplit(address)
    silent = f"no Dask scheduler answers at {address} within {seconds:g} s"
    try:
        place = (parts.hostname or "", parts.port or 0)
        with socket.create_connection(place, PROBE_SECONDS):
            pass
    except OSError:
        return silent
    if parts.scheme == "tcp":
        return f"the scheduler at {address} uses TLS; use tls:// and cluster.tls" if _speaks_tls(place) else silent
    return _refusal(address, place, files) or silent


def _speaks_tls(place: tuple[str, int]) -> bool:
    """Connect without verifying the other side: nothing confidential is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(place, PROBE_SECONDS) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "WRONG_VERSION_NUMBER" not in str(error) and "EOF" not in str(error)
    except OSError:
        return False


def _refusal(address: str, place: tuple[str, int], files: TlsFiles | None) -> str | None:
    """Repeat the handshake to see which side refuses; None where TLS works."""
    context = security.client_security(files).get_connection_args("client")["ssl_context"]
    try:
        with socket.create_connection(place, PROBE_SECONDS) as plain, context.wrap_socket(plain) as secured:
            secured.recv(1)  # with TLS 1.3 a refused client gets the alert only with the first reply
    except ssl.SSLCertVerificationError:
        return f"the certificate of the scheduler at {address} is not signed by cluster.tls.ca"
    except ssl.SSLError as error:
        if "ALERT" in str(error):
            return f"the scheduler at {address} refuses this client's certificate, cluster.tls.cert"
        return f"the scheduler at {address} does not use TLS; is it tcp://?"
    except TimeoutError:
        return None if _speaks_tls(place) else f"the scheduler at {address} does not use TLS; is it tcp://?"
    except OSError:
        return None
    return None
