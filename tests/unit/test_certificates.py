"""Certificates for trying out."""

from __future__ import annotations

import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from dit_dask.deployment import certificates
from dit_dask.errors import InputError


def test_keys_are_private_and_no_authority_can_sign_again(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        certificates.write(str(tmp_path / "c"), 7)
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "c").iterdir()}
    keys = {f"{role}.key": 0o600 for role in certificates.ROLES}
    assert found == {"ca.crt": 0o644, **{f"{role}.crt": 0o644 for role in certificates.ROLES}, **keys}
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


def test_certificates_are_short_lived_and_signed_by_the_authority(tmp_path: Path) -> None:
    certificates.write(str(tmp_path / "c"), 7)
    authority = x509.load_pem_x509_certificate((tmp_path / "c" / "ca.crt").read_bytes())
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for role in certificates.ROLES:
        one = x509.load_pem_x509_certificate((tmp_path / "c" / f"{role}.crt").read_bytes())
        one.verify_directly_issued_by(authority)
        assert not one.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert timedelta(days=6) < one.not_valid_after_utc - datetime.now(UTC) <= timedelta(days=7)
        assert isinstance(one.public_key(), ec.EllipticCurvePublicKey)
        context = ssl.create_default_context(cafile=str(tmp_path / "c" / "ca.crt"))
        context.load_cert_chain(tmp_path / "c" / f"{role}.crt", tmp_path / "c" / f"{role}.key")


@pytest.mark.parametrize(
    ("folder", "days", "said"), [("", 30, "does not exist yet"), ("new", 366, "at most 365"), ("file/c", 3, "cannot write")]
)
def test_wrong_wishes_are_one_line(tmp_path: Path, folder: str, days: int, said: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=said) as caught:
        certificates.write(str(tmp_path / folder), days)
    assert "\n" not in str(caught.value)
