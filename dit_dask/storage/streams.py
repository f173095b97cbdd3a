"""Files that are written in blocks: new ones only, complete or not there at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from dit_dask.errors import InputError
from dit_dask.storage.atomic import protocols
from dit_dask.storage.filesystem import filesystem, is_local, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url
from dit_dask.storage.retry import error_code, is_transient


class DigestedFile:
    """Passes bytes on to a file and computes their SHA-256."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def write(self, content: Any) -> int:
        """Write some bytes."""
        self._digest.update(content)
        self._file.write(content)
        return len(memoryview(content))

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is complete."""

    def digest(self) -> str:
        """The digest of all bytes so far."""
        return self._digest.hexdigest()


def refuse_existing(location: Location, where: str) -> None:
    """Raise InputError if something is there already."""
    fs, path = filesystem(location, where)
    try:
        exists = fs.exists(path)
    except Exception as error:
        raise InputError(f"{where}: cannot look at {public_url(location.url)}: {reason(error, location)}") from error
    if exists:
        raise InputError(f"{where}: {public_url(location.url)} exists and is not overwritten; choose another place")


@contextmanager
def new_file(location: Location, where: str) -> Iterator[DigestedFile]:
    """Write a file that must not exist; if anything fails, it is not there afterwards."""
    refuse_existing(location, where)
    fs, path = filesystem(location, where)
    opened = _local_file if is_local(location.url) else _object
    try:
        with opened(fs, path) as file:
            yield DigestedFile(file)
    except FileExistsError as error:
        raise InputError(f"{where}: {public_url(location.url)} exists and is not overwritten; choose another place") from error
    except Exception as error:
        if not isinstance(error, OSError) and not is_transient(error):
            raise
        raise InputError(f"{where}: cannot write {public_url(location.url)}: {reason(error, location)}") from error


@contextmanager
def _local_file(_fs: Any, path: str) -> Iterator[Any]:
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)  # fails if another process was first
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def _object(fs: Any, path: str) -> Iterator[Any]:
    file = fs.open(path, "xb" if "s3" in protocols(fs) else "wb")  # the server refuses to replace what another wrote meanwhile
    try:
        yield file
        _commit(file)
    except BaseException:
        with suppress(Exception):
            file.discard()  # aborts an upload in parts
        with suppress(Exception):
            file.closed = True  # or the end of the object would write what is left in its buffer
        raise


def _commit(file: Any) -> None:
    try:
        file.close()
    except Exception as error:
        if error_code(error) == "PreconditionFailed":
            raise FileExistsError from error
        if error_code(error) != "NotImplemented":
            raise
        file.mode = "wb"  # a server without conditional writes: that it did not exist was checked before
        file.commit()
        file.closed = True


def remove_file(location: Location, where: str) -> None:
    """Remove a file that was just written, if it is there."""
    fs, path = filesystem(location, where)
    with suppress(Exception):
        fs.rm(path)
