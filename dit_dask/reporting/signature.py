"""Detached Ed25519 signatures of an evidence pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dit_dask.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAKE = "openssl genpkey -algorithm ed25519 -out key.pem"


def read_private_key(path: str) -> Ed25519PrivateKey:
    """Read the key that signs."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_read(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"--key must be an Ed25519 private key in PEM, without a password ({MAKE}); got {path}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"--key must be an Ed25519 private key ({MAKE}); got another kind in {path}")
    return key


def read_public_key(path: str) -> Ed25519PublicKey:
    """Read the key that verifies."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"--key must be an Ed25519 public key in PEM (openssl pkey -pubout); got {path}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"--key must be an Ed25519 public key; got another kind in {path}")
    return key


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"--key: cannot read {path}: {error.strerror}") from error


def sign(key: Ed25519PrivateKey, content: bytes) -> tuple[bytes, bytes]:
    """The signature of a content, and the public key as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return key.sign(content), public


def is_signed_by(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    """Tell whether the owner of the key signed exactly this content."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def parse_public_key(content: bytes) -> Ed25519PublicKey | None:
    """Read the public key that lies in a pack; None if it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def fingerprint(key: Ed25519PublicKey) -> str:
    """The SHA-256 of a public key, to be compared with what its owner says."""
    import hashlib

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()
