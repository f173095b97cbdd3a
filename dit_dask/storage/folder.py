"""A run folder in any file system: files appear whole or not at all, and failures are one clear line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dit_dask.errors import InputError, RunError
from dit_dask.storage.atomic import Change, Objects, objects, protocols
from dit_dask.storage.filesystem import filesystem, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url
from dit_dask.storage.retry import FIRST_PATIENCE_SECONDS, retry_transient

PROBE = ".dit-probe"


@dataclass(frozen=True)
class Folder:
    """A run folder in some filesystem; opened anew in every process, so that only names and references travel."""

    location: Location

    def _open(self) -> tuple[Any, str]:
        fs, path = filesystem(self.location, "output")
        return fs, path.rstrip("/")

    @contextmanager
    def _objects(self, doing: str, name: str) -> Iterator[tuple[Objects, str]]:
        """Yield the objects and a path among them; whatever fails is one clear line."""
        fs, root = self._open()
        try:
            yield objects(fs), f"{root}/{name}"
        except Exception as error:
            raise RunError(f"{doing} {self.url}/{name}: {reason(error, self.location)}") from error

    @property
    def url(self) -> str:
        """The URL to print."""
        return public_url(self.location.url)

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.location.url.rstrip("/").rsplit("/", 1)[-1]

    def child(self, name: str) -> Folder:
        """The folder of that name inside this one."""
        return Folder(Location(f"{self.location.url.rstrip('/')}/{name}", self.location.storage_options))

    def probe(self) -> None:
        """Find out, before any work, whether this folder can be written to."""
        fs, root = self._open()
        path = (
            f"{_existing(root) if 'file' in protocols(fs) else root}/{PROBE}"  # no folder is made for a run that may not start
        )
        try:
            retry_transient(lambda: objects(fs).replace(path, b""), FIRST_PATIENCE_SECONDS)
        except Exception as error:
            raise InputError(f"output: cannot write to {self.url}: {reason(error, self.location)}") from error
        with suppress(Exception):  # who may write may not be allowed to delete, and two probes may meet
            fs.rm_file(path)

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file at once: nobody ever sees half of it."""
        with self._objects("output: cannot write", name) as (store, path):
            retry_transient(lambda: store.replace(path, content))

    def create(self, name: str, content: bytes) -> bool:
        """Create a file unless there is one; a retried request may find the file that it made itself."""
        with self._objects("output: cannot write", name) as (store, path):
            return retry_transient(lambda: store.create(path, content))

    def update(self, name: str, change: Change) -> None:
        """Change a file by what it holds, also when others do so at the same time."""
        with self._objects("output: cannot write", name) as (store, path):
            retry_transient(lambda: store.update(path, change))

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None where there is none."""
        with self._objects("cannot read", name) as (store, path):
            return retry_transient(lambda: store.read(path))

    def remove_temporary(self) -> None:
        """Remove what crashed writers left half done."""
        fs, root = self._open()
        with suppress(Exception):  # a courtesy: nothing half done can be taken for a file
            retry_transient(lambda: objects(fs).remove_temporary(root))

    def names(self, below: str) -> set[str]:
        """The names of the files right below a folder of this one; hidden ones are half-written."""
        fs, root = self._open()

        def listed() -> Sequence[str]:
            fs.invalidate_cache()
            try:
                return list(fs.ls(f"{root}/{below}", detail=False))
            except FileNotFoundError:
                return []

        try:
            found = retry_transient(listed)
        except Exception as error:
            raise RunError(f"cannot list {self.url}/{below}: {reason(error, self.location)}") from error
        return {name for path in found if not (name := str(path).rstrip("/").rsplit("/", 1)[-1]).startswith(".")}

    def remove(self, name: str) -> None:
        """Remove one file, if it is there."""
        fs, root = self._open()

        def removed() -> None:
            with suppress(FileNotFoundError):
                fs.rm_file(f"{root}/{name}")

        try:
            retry_transient(removed)
        except Exception as error:
            raise RunError(f"output: cannot remove {self.url}/{name}: {reason(error, self.location)}") from error

    def clear(self, first: str | None = None) -> None:
        """Remove the folder and all it holds, one file before all others if that matters."""
        fs, root = self._open()

        def removed() -> None:
            fs.invalidate_cache()
            for path in (root,) if first is None else (f"{root}/{first}", root):
                with suppress(FileNotFoundError):
                    if fs.exists(path):
                        fs.rm(path, recursive=path == root)

        try:
            retry_transient(removed)
        except Exception as error:
            raise RunError(f"output: cannot clear {self.url}: {reason(error, self.location)}") from error


def _existing(path: str) -> str:
    """The nearest folder above a local path, or at it, that is there."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path
