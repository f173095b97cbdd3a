"""Certificates of a Dask client: from files named in the config, or from Dask's own configuration."""

from __future__ import annotations

import ssl
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.config.cluster import TlsFiles
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from distributed.security import Security

MISSING = (
    "tls:// needs certificates: set cluster.tls to {ca: FILE, cert: FILE, key: FILE} (dit certificates makes some to try out)"
)


def check_files(files: TlsFiles) -> None:
    """Raise InputError that names a certificate file that cannot be used."""
    for name, file in asdict(files).items():
        try:
            Path(file).read_bytes()
        except OSError as error:
            raise InputError(f"cluster.tls.{name}: cannot read {file}: {error.strerror}") from error
    try:
        ssl.create_default_context(cafile=files.ca)
    except ssl.SSLError as error:
        raise InputError(f"cluster.tls.ca: {files.ca} holds no certificate") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(files.cert, files.key)
    except ssl.SSLError as error:
        raise InputError(f"cluster.tls: {files.cert} and {files.key} are not a certificate and its key") from error


def client_security(files: TlsFiles | None) -> Security:
    """Return the security of a client that accepts TLS only."""
    from distributed.security import Security

    if files is not None:
        check_files(files)
        return Security(tls_ca_file=files.ca, tls_client_cert=files.cert, tls_client_key=files.key, require_encryption=True)
    configured: Any = Security(require_encryption=True)
    if not (configured.tls_ca_file and configured.tls_client_cert and configured.tls_client_key):
        raise InputError(MISSING)
    return configured
