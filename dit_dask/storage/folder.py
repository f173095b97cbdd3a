"""A run folder in any file system: files appear whole or not at all, and failures are one clear line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dit_dask.errors import InputError, RunError
from dit_dask.storage.atomic import Change, Objects, objects, protocols
from dit_dask.storage.filesystem import filesystem, reason
from dit_dask.storage.location import Location, OutputLocation
from dit_dask.storage.redaction import public_url
from dit_dask.storage.retry import FIRST_PATIENCE_SECONDS, retry_transient

PROBE = ".dit-probe"
PERSONAL_FOLDERS = ("records", "measures")
PERSONAL = re.compile(rf"({'|'.join(PERSONAL_FOLDERS)})(/|$)")


def is_personal(name: str) -> bool:
    """Tell whether a file of a run folder is of the private tier: figures of single persons, and what measures keep."""
    return PERSONAL.match(name) is not None


@dataclass(frozen=True)
class Folder:
    """A run folder in some filesystem; opened anew in every process, so that only names and references travel.

    Files that are personal data are in the folder at `private`, if there is one. Local ones can be read by their owner alone;
    `personal` says that all files of this folder are, `closed` names those that are where there is no `private`.
    """

    location: Location
    private: Location | None = None
    personal: bool = False
    closed: frozenset[str] = frozenset()

    def _open(self, location: Location | None = None) -> tuple[Any, str]:
        where = "output" if location is None or location is self.location else "output.private"
        fs, path = filesystem(location or self.location, where)
        return fs, path.rstrip("/")

    def _tier(self, name: str) -> Location:
        """Where a file is."""
        return self.private if self.private is not None and is_personal(name) else self.location

    @property
    def _locations(self) -> list[Location]:
        return [self.location, *([] if self.private is None else [self.private])]

    @contextmanager
    def _objects(self, doing: str, name: str) -> Iterator[tuple[Objects, str]]:
        """Yield the objects and a path among them; whatever fails is one clear line."""
        location = self._tier(name)
        fs, root = self._open(location)
        private_root = None
        if self.personal or location is self.private:
            private_root = root
        elif is_personal(name) or name in self.closed:
            private_root = f"{root}/{name.split('/')[0]}"  # no folder above it is closed
        try:
            yield objects(fs, private_root), f"{root}/{name}"
        except Exception as error:
            raise RunError(f"{doing} {public_url(location.url)}/{name}: {reason(error, location)}") from error

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
        location, *private = (Location(f"{each.url.rstrip('/')}/{name}", each.storage_options) for each in self._locations)
        return Folder(location, private[0] if private else None, self.personal)

    def for_personal_data(self) -> Folder:
        """The folder for files that are all personal data."""
        return Folder(self.private or self.location, personal=True)

    def probe(self) -> None:
        """Find out, before any work, whether this folder can be written to."""
        for location in self._locations:
            self._probe(location)

    def _probe(self, location: Location) -> None:
        fs, root = self._open(location)
        path = (
            f"{_existing(root) if 'file' in protocols(fs) else root}/{PROBE}"  # no folder is made for a run that may not start
        )
        try:
            retry_transient(lambda: objects(fs).replace(path, b""), FIRST_PATIENCE_SECONDS)
        except Exception as error:
            raise InputError(f"output: cannot write to {public_url(location.url)}: {reason(error, location)}") from error
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
        for location in self._locations:
            fs, root = self._open(location)
            with suppress(Exception):  # a courtesy: nothing half done can be taken for a file
                retry_transient(partial(objects(fs).remove_temporary, root))

    def move_personal_data(self) -> int:
        """Move what an earlier session without `private` left in the shared folder; return how many files."""
        if self.private is None:
            return 0
        return sum(
            self.for_personal_data().child(each).take_over(Folder(self.location).child(each)) for each in PERSONAL_FOLDERS
        )

    def take_over(self, other: Folder) -> int:
        """Move all files of another folder to this one; return how many."""
        fs, root = other._open()

        def listed() -> list[str]:
            fs.invalidate_cache()
            return [str(path) for path in fs.find(root)]

        moved = 0
        try:
            for path in retry_transient(listed):
                name = path[len(root) :].lstrip("/")
                content = other.read(name)
                if content is not None:
                    if not self.create(name, content) and self.read(name) != content:
                        self.write(name, content)
                    retry_transient(partial(fs.rm_file, path))
                    moved += 1
            if moved and "file" in protocols(fs):
                for emptied, _, _ in os.walk(root, topdown=False):
                    with suppress(OSError):  # another session may write there
                        os.rmdir(emptied)
        except OSError as error:
            raise RunError(f"output: cannot move personal data out of {other.url}: {reason(error, other.location)}") from error
        return moved

    def names(self, below: str) -> set[str]:
        """The names of the files right below a folder of this one; hidden ones are half-written."""
        locations = [self._tier(below)] if is_personal(below) else self._locations
        return set().union(*(self._names(location, below) for location in locations))

    def _names(self, location: Location, below: str) -> set[str]:
        fs, root = self._open(location)

        def listed() -> Sequence[str]:
            fs.invalidate_cache()
            try:
                return list(fs.ls(f"{root}/{below}", detail=False))
            except FileNotFoundError:
                return []

        try:
            found = retry_transient(listed)
        except Exception as error:
            raise RunError(f"cannot list {public_url(location.url)}/{below}: {reason(error, location)}") from error
        return {name for path in found if not (name := str(path).rstrip("/").rsplit("/", 1)[-1]).startswith(".")}

    def remove(self, name: str) -> None:
        """Remove one file, if it is there."""
        fs, root = self._open(self._tier(name))

        def removed() -> None:
            with suppress(FileNotFoundError):
                fs.rm_file(f"{root}/{name}")

        try:
            retry_transient(removed)
        except Exception as error:
            raise RunError(f"output: cannot remove {self.url}/{name}: {reason(error, self.location)}") from error

    def clear(self, first: str | None = None) -> None:
        """Remove the folder and all it holds, one file before all others if that matters."""
        for location in self._locations:
            self._clear(location, first)

    def _clear(self, location: Location, first: str | None) -> None:
        fs, root = self._open(location)

        def removed() -> None:
            fs.invalidate_cache()
            for path in (root,) if first is None else (f"{root}/{first}", root):
                with suppress(FileNotFoundError):
                    if fs.exists(path):
                        fs.rm(path, recursive=path == root)

        try:
            retry_transient(removed)
        except Exception as error:
            raise RunError(f"output: cannot clear {public_url(location.url)}: {reason(error, location)}") from error


def _existing(path: str) -> str:
    """The nearest folder above a local path, or at it, that is there."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def output_folder(output: OutputLocation) -> Folder:
    """The places of the output, after --out and links are resolved; files of one must never be found in the other."""
    shared = _absolute(output)
    if output.private is None:
        return Folder(shared)
    private = _absolute(output.private)
    outer, inner = (f"{_real_place(place.url)}/" for place in (shared, private))
    if outer.startswith(inner) or inner.startswith(outer):
        raise InputError("output.private must be a place apart from output.url, neither inside it nor around it")
    return Folder(shared, private)


def _real_place(url: str) -> str:
    return (url if "://" in url else os.path.realpath(url)).rstrip("/")


def _absolute(location: Location) -> Location:
    """Workers may run elsewhere in the file system, so a path is made absolute here."""
    url = location.url
    return Location(url if "://" in url else str(Path(url).expanduser().absolute()), location.storage_options)
