"""The ways to have a table sanitised by someone else: a function, a command, or releases that are there already."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from dit_dask.errors import ExternalSanitizerError, InputError
from dit_dask.sanitizers.external.process import SanitizerProcess, passed_on
from dit_dask.storage.filesystem import filesystem, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints

MOST_HASHED = 2**28
RECORD = "{record}"


@dataclass(frozen=True, eq=False)
class Hosted:
    """Runs in a child process of the worker, with a folder of its own for every call and no secrets around it."""

    timeout: float
    show_stderr: bool

    def _call(self, folder: str, request: Mapping[str, Any]) -> None:
        """Have the keeper run a call, or say how it failed."""
        common = {"folder": folder, "notes": f"{folder}.notes", "timeout": self.timeout, "argv": None}
        reply = self._keeper.call(common | dict(request), self.timeout)
        if reply["status"] == "ok":
            return
        words = {
            "timeout": f"it took longer than its {self.timeout:g} s",
            "signal": f"it was killed by {reply.get('error')}",
            "raised": f"it raised {reply.get('error')}",
            "exit": f"it ended with exit code {reply.get('error')}",
        }
        said = reply.get("stderr", "").strip().splitlines()
        if not said:
            after = ""
        elif self.show_stderr:
            after = f": {said[-1][:300]!r}"
        else:
            after = " (show_stderr: true shows its last message, which may hold values)"
        raise ExternalSanitizerError(words.get(reply["status"], str(reply.get("error"))) + after)

    @cached_property
    def _keeper(self) -> SanitizerProcess:
        return SanitizerProcess(self._target(), self._search())

    def _target(self) -> str | None:
        return None

    def _search(self) -> list[str]:
        return []

    def _folder(self) -> str:
        """Make the empty folder of one call."""
        self._keeper.open()
        folder = os.path.join(self._keeper.root, uuid4().hex)
        os.mkdir(folder, 0o700)
        return folder

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_keeper"}


@dataclass(frozen=True, eq=False)
class Function(Hosted):
    """A function or class by import path: DataFrame in, DataFrame out."""

    target: str
    params: Mapping[str, Any]
    columns: tuple[str, ...]
    search: tuple[str, ...]

    def sanitised(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Call it in a fork, which cannot hurt the worker."""
        folder = self._folder()
        try:
            given, returned = os.path.join(folder, "input.pickle"), os.path.join(folder, "output.parquet")
            frame.iloc[ids].reset_index(drop=True).to_pickle(given)
            seed_name = None if self._keeper.seed_name in self.params else self._keeper.seed_name
            self._call(
                folder,
                {
                    "input": given,
                    "output": returned,
                    "params": dict(self.params),
                    "columns": list(self.columns),
                    "seed_name": seed_name,
                    "seed": seed,
                },
            )
            return _returned(returned, "it ended well but returned nothing", "it returned")
        finally:
            _removed(folder)

    def ready(self) -> Mapping[str, str]:
        """Import it, in the child."""
        self._keeper.open()
        return {self.target: self._keeper.code}

    def _target(self) -> str:
        return self.target

    def _search(self) -> list[str]:
        return list(self.search)


@dataclass(frozen=True, eq=False)
class Command(Hosted):
    """A program that reads {input} and writes {output}."""

    argv: tuple[str, ...]
    format: str
    env: Mapping[str, str]

    def sanitised(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Run it in an empty folder."""
        folder = self._folder()
        try:
            given, returned = (os.path.join(folder, f"{name}.{self.format}") for name in ("input", "output"))
            Path(given).write_bytes(written(frame.iloc[ids], self.format))
            places = {"{input}": given, "{output}": returned, "{seed}": str(seed)}
            argv = [_filled(part, places) for part in self.argv]
            self._call(folder, {"argv": argv, "env": passed_on({"HOME": folder, "TMPDIR": folder} | dict(self.env))})
            nothing = f"it ended well but wrote no file at {{output}} ({os.path.basename(returned)})"
            return _returned(returned, nothing, "it wrote")
        finally:
            _removed(folder)

    def ready(self) -> Mapping[str, str]:
        """Find the program; scripts among its arguments count as its code."""
        program = shutil.which(self.argv[0], path=passed_on(self.env).get("PATH"))
        if program is None:
            raise InputError(f"argv[0]: no program {self.argv[0]!r} on this machine")
        files = [Path(part) for part in (program, *self.argv[1:]) if os.path.isabs(part) and os.path.isfile(part)]
        small = [path for path in files if path.stat().st_size < MOST_HASHED]
        return {f"{place}: {path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for place, path in enumerate(small)}


def _returned(path: str, nothing: str, who: str) -> pd.DataFrame:
    """Read what a call left behind: a file of its own, or it left nothing."""
    if os.path.islink(path) or not os.path.isfile(path):
        raise ExternalSanitizerError(nothing)
    try:
        return read_table(Path(path).read_bytes(), path, who)
    except OSError as error:
        raise ExternalSanitizerError(f"{who} a file that cannot be read: {error.strerror}") from error


def _removed(folder: str) -> None:
    """Remove a call's folder and what was noted beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.unlink(f"{folder}.notes")


def _filled(part: str, places: Mapping[str, str]) -> str:
    for mark, place in places.items():
        part = part.replace(mark, place)
    return part


@dataclass(frozen=True, eq=False)
class Precomputed:
    """Releases that the owner of the sanitizer made: one of the whole table, one without each record."""

    full: str
    without: str
    storage_options: Mapping[str, Any]

    def sanitised(self, frame: pd.DataFrame, ids: Ints, _seed: int) -> pd.DataFrame:
        """Read the file that belongs to these rows."""
        missing = np.setdiff1d(np.arange(len(frame)), ids)
        if len(missing) > 1:
            raise ExternalSanitizerError(f"there is no release without {len(missing)} records")
        url = self.full if not len(missing) else self.url(int(missing[0]))
        fs, path = filesystem(Location(url, self.storage_options), "sanitizer")
        try:
            content = fs.cat_file(path)
        except Exception as error:
            raise ExternalSanitizerError(f"cannot read {public_url(url)}: {reason(error)}") from error
        return read_table(content, path, f"{public_url(url)} holds")

    def url(self, record: int) -> str:
        """Where the release without a record is."""
        return self.without.replace(RECORD, str(record))

    def ready(self) -> Mapping[str, str]:
        """The whole release must be there; its content is part of what the run is about."""
        fs, path = filesystem(Location(self.full, self.storage_options), "full")
        try:
            return {"full": hashlib.sha256(fs.cat_file(path)).hexdigest()}
        except Exception as error:
            raise InputError(f"full: cannot read {public_url(self.full)}: {reason(error)}") from error

    def present(self, records: Ints) -> dict[int, str]:
        """The records whose release is there, with what tells one version of the file from another."""
        folder, _, name = self.without.rpartition("/")
        fs, path = filesystem(Location(folder or ".", self.storage_options), "without")
        try:
            fs.invalidate_cache()
            if RECORD not in folder:
                entries = {str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]: entry for entry in fs.ls(path, detail=True)}
                return {int(one): _version(entries[file]) for one in records if (file := _at(name, one)) in entries}
            places = {int(one): str(fs._strip_protocol(self.url(int(one)))) for one in records}
            return {one: _version(fs.info(place)) for one, place in places.items() if fs.exists(place)}
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise InputError(f"without: cannot list {public_url(folder)}: {reason(error)}") from error


def _at(name: str, record: Any) -> str:
    return name.replace(RECORD, str(int(record)))


def _version(entry: Mapping[str, Any]) -> str:
    """What a listing says of a file's content, without reading it."""
    marks = ("ETag", "etag", "md5Hash", "content_md5", "size", "mtime", "LastModified", "last_modified", "updated")
    return " ".join(f"{mark}={entry[mark]}" for mark in marks if entry.get(mark) is not None)


def written(frame: pd.DataFrame, kind: str) -> bytes:
    """A table as CSV or Parquet, with its own labels."""
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(buffer, index=False)
    else:
        frame.to_csv(buffer, index=False)
    return buffer.getvalue()


def read_table(content: bytes, name: str, who: str) -> pd.DataFrame:
    """Read CSV (all text) or Parquet by the file's name."""
    import pandas as pd
    import pyarrow.parquet as pq

    name = name.partition("?")[0]
    try:
        if name.endswith(".parquet"):
            frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas(integer_object_nulls=True)
        else:
            text = gzip.decompress(content) if name.endswith(".gz") else content
            frame = pd.read_csv(io.BytesIO(text), dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError as error:
        raise ExternalSanitizerError(f"{who} an empty file") from error
    except Exception as error:
        kind = "Parquet" if name.endswith(".parquet") else "CSV"
        raise ExternalSanitizerError(f"{who} a file that is not {kind}: {type(error).__name__}") from error
    if frame.columns.duplicated().any():
        raise ExternalSanitizerError(f"{who} a table with two columns of the same name")
    return frame
