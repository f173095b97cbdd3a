"""Whether an evidence pack is what was packed: no file changed, missing or added, and the signature right."""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dit_dask.errors import InputError, quote
from dit_dask.reporting.evidence import CHECKSUMS, PUBLIC_KEY, SIGNATURE
from dit_dask.reporting.signature import fingerprint, is_signed_by, parse_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MOST_FILES, MOST_BYTES = 100, 200_000_000  # a pack has a dozen files of some megabytes
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LOCAL_HEADER, DIRECTORY_ENTRY, END_RECORD = 30, 46, 22  # bytes in a zip file, without names
LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


@dataclass(frozen=True)
class Verification:
    """What is wrong with a pack, and who signed it: a fingerprint, and whether the key was given and not only enclosed."""

    problems: tuple[str, ...]
    files: int
    signer: str | None = None
    is_trusted: bool = False


def verify_pack(path: str, key: Ed25519PublicKey | None = None) -> Verification:
    """Check a pack; with a key the signature must be there and be its owner's."""
    contents, problems = read_pack(path)
    sums = contents.get(CHECKSUMS)
    if sums is None:
        return Verification((*problems, f"{CHECKSUMS} is missing"), len(contents))
    problems += _compare(contents, sums)
    signature, enclosed = contents.get(SIGNATURE), contents.get(PUBLIC_KEY)
    if signature is None and enclosed is None:
        problems += [f"{SIGNATURE} is missing: the pack is not signed"] if key is not None else []
        return Verification(tuple(problems), len(contents))
    own = None if enclosed is None else parse_public_key(enclosed)
    chosen = key or own
    if signature is None or chosen is None:
        return Verification((*problems, f"{SIGNATURE} and {PUBLIC_KEY} must both be there and readable"), len(contents))
    if not is_signed_by(chosen, signature, sums):
        problems.append(f"{SIGNATURE} is not the signature of {'the given key' if key is not None else PUBLIC_KEY}")
    return Verification(tuple(problems), len(contents), fingerprint(chosen), key is not None)


def read_pack(path: str) -> tuple[dict[str, bytes], list[str]]:
    """Read all files of a pack into memory, within limits; nothing is ever written."""
    try:
        with Path(path).open("rb") as file, zipfile.ZipFile(file) as pack:
            contents, problems = _read_entries(pack)
            return contents, [*problems, *_hidden_bytes(pack, file.seek(0, 2))]
    except OSError as error:
        raise InputError(f"dit verify: cannot read {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(
            f"dit verify: {path} is not a pack that can be read: it must be a zip file without a password"
        ) from error


def _read_entries(pack: zipfile.ZipFile) -> tuple[dict[str, bytes], list[str]]:
    entries = pack.infolist()
    if len(entries) > MOST_FILES:
        return {}, [f"it has {len(entries):,} files; a pack has at most {MOST_FILES}"]
    contents: dict[str, bytes] = {}
    problems: list[str] = []
    left = MOST_BYTES
    for entry in entries:
        if not NAME.fullmatch(entry.filename) or entry.is_dir() or entry.external_attr >> 16 & 0o170000 not in (0, 0o100000):
            problems.append(f"the name {quote(entry.filename)} is none that a pack has")
        elif entry.filename in contents:
            problems.append(f"{entry.filename} is there twice")
        else:
            with pack.open(entry) as file:
                content = file.read(left + 1)  # sizes in the directory of a zip file may lie
            if len(content) > left:
                return {}, [*problems, f"its files are larger than {MOST_BYTES:,} bytes in all"]
            left -= len(content)
            contents[entry.filename] = content
    return contents, problems


def _hidden_bytes(pack: zipfile.ZipFile, size: int) -> list[str]:
    """Whether the file has room for anything but the entries: before them, between them, in extra fields or in comments."""
    names = [len(entry.orig_filename.encode()) for entry in pack.infolist()]
    content = sum(entry.compress_size for entry in pack.infolist())
    expected = content + sum(LOCAL_HEADER + DIRECTORY_ENTRY + 2 * length for length in names) + END_RECORD
    return [] if size == expected else [f"it has {size:,} bytes, and its files need {expected:,}"]


def _compare(contents: Mapping[str, bytes], sums: bytes) -> list[str]:
    """Every listed file must be there with its digest, and no other."""
    lines = [LINE.fullmatch(line) for line in sums.decode("ascii", "replace").splitlines()]
    if not lines or None in lines:
        return [f"{CHECKSUMS} is not a list of checksums"]
    listed = {match[2]: match[1] for match in lines if match}
    problems = [f"{name} is missing" for name in listed if name not in contents]
    problems += [
        f"{name} is listed twice" for name in listed if sum(match is not None and match[2] == name for match in lines) > 1
    ]
    for name, content in contents.items():
        if name in (CHECKSUMS, SIGNATURE, PUBLIC_KEY):
            continue
        if name not in listed:
            problems.append(f"{name} was added: it is not in {CHECKSUMS}")
        elif hashlib.sha256(content).hexdigest() != listed[name]:
            problems.append(f"{name} was changed: its digest is not the one in {CHECKSUMS}")
    return problems
