"""Certificates for trials of mutual TLS: short-lived, signed by an authority whose key is never stored."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, Name

ROLES = ("scheduler", "worker", "client")
MAX_DAYS = 365
CLOCK_SKEW = timedelta(minutes=5)


def write(folder: str, days: int) -> str:
    """Write an authority's certificate and a certificate and key for each role; return the commands that use them."""
    if days > MAX_DAYS:
        raise InputError(f"--days must be at most {MAX_DAYS}: these certificates are for trying out; got {days}")
    target = Path(folder)
    try:
        target.mkdir(mode=0o700, parents=True)
        for name, content in _make_files(days).items():
            _create_file(target / name, content)
    except FileExistsError as error:
        raise InputError(f"--to must be a folder that does not exist yet; got {folder!r}") from error
    except OSError as error:
        raise InputError(f"--to: cannot write {folder}: {error.strerror}") from error
    return _format_commands(target)


def _create_file(path: Path, content: bytes) -> None:
    """Create a file with its final mode: a key is at no time readable by others."""
    mode = 0o600 if path.suffix == ".key" else 0o644
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def _make_files(days: int) -> dict[str, bytes]:
    """Return contents by file name; without the authority's key, so that no further certificate can be signed."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(_name("dit trial authority"), authority_key.public_key(), None, authority_key, days)
    files = {"ca.crt": authority.public_bytes(serialization.Encoding.PEM)}
    for role in ROLES:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(_name(f"dit trial {role}"), key.public_key(), authority, authority_key, days)
        files[f"{role}.crt"] = certificate.public_bytes(serialization.Encoding.PEM)
        files[f"{role}.key"] = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    return files


def _name(common: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(subject: Name, public: Any, issuer: Certificate | None, key: Any, days: int) -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(_key_usage(signs=issuer is None), critical=True)
    )
    if issuer is not None:  # Dask's workers are servers to each other and clients of the scheduler
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(key, hashes.SHA256())


def _key_usage(*, signs: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _format_commands(folder: Path) -> str:
    path = folder.absolute()

    def options(role: str) -> str:
        return f"--tls-ca-file {path}/ca.crt --tls-cert {path}/{role}.crt --tls-key {path}/{role}.key"

    return "\n".join(
        [
            f"dask scheduler --protocol tls {options('scheduler')}",
            f"dask worker tls://HOST:8786 {options('worker')}",
            "dit run CONFIG --cluster tls://HOST:8786 --set "
            f"'cluster.tls={{ca: {path}/ca.crt, cert: {path}/client.crt, key: {path}/client.key}}'",
        ]
    )
