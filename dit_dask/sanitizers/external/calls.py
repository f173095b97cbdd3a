"""The ways to call a third-party sanitizer: a function, a command, or releases that were made before."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar
from uuid import uuid4

import numpy as np

from dit_dask.errors import ExternalSanitizerError, InputError
from dit_dask.sanitizers.external.process import SanitizerProcess, child_environment
from dit_dask.sanitizers.external.process_messages import CommandCall, FunctionCall, Request, notes_path
from dit_dask.storage.compression import BoundedGzip
from dit_dask.storage.filesystem import filesystem, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import hidden_texts, mask_text, public_url, scrub

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints

MAX_DIGESTED_SIZE = 2**28
RECORD = "{record}"


@dataclass(frozen=True)
class ProcessLimits:
    """What holds for every call in a child process: its time limit, and whether errors may quote its stderr."""

    timeout: float
    show_stderr: bool


@dataclass(frozen=True, eq=False)
class Function:
    """A function or class by import path: DataFrame in, DataFrame out."""

    limits: ProcessLimits
    target: str
    params: Mapping[str, Any] = field(repr=False)
    columns: tuple[str, ...]
    process: SanitizerProcess
    is_callable: ClassVar[bool] = True

    def sanitize(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Call it in a fork of its process, so that it cannot damage the worker."""
        with call_folder(self.process) as folder:
            source, output = os.path.join(folder, "input.pickle"), os.path.join(folder, "output.parquet")
            with create_private(source) as file:
                frame.iloc[ids].reset_index(drop=True).to_pickle(file)
            seed_name = None if self.process.seed_name in self.params else self.process.seed_name
            call = FunctionCall(source, output, dict(self.params), self.columns, seed_name, seed)
            with hiding(self.params):
                run_call(self.process, Request(folder, self.limits.timeout, function=call), self.limits)
            return read_output(output, "it exited with code 0 but returned nothing", "it returned")

    def prepare(self) -> Mapping[str, str]:
        """Import it in the child process.

        Of a function by value nothing identifies the code: a pickle does not hold the modules that it refers to, and differs
        from session to session. So it never equals that of another run.
        """
        self.process.open()
        return {self.target: self.process.code or uuid4().hex}


@dataclass(frozen=True, eq=False)
class Command:
    """A program that reads {input} and writes {output}."""

    limits: ProcessLimits
    argv: tuple[str, ...] = field(repr=False)
    format: str
    env: Mapping[str, str] = field(repr=False)
    process: SanitizerProcess
    is_callable: ClassVar[bool] = True

    def sanitize(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Run it in an empty folder."""
        with call_folder(self.process) as folder:
            source, output = (os.path.join(folder, f"{name}.{self.format}") for name in ("input", "output"))
            with create_private(source) as file:
                file.write(encode_table(frame.iloc[ids], self.format))
            values = {"{input}": source, "{output}": output, "{seed}": str(seed)}
            argv = [fill_placeholders(part, values) for part in self.argv]
            env = child_environment({"HOME": folder, "TMPDIR": folder} | dict(self.env))
            with hiding(list(self.argv), self.env):
                run_call(self.process, Request(folder, self.limits.timeout, command=CommandCall(argv, env)), self.limits)
            nothing = f"it exited with code 0 but wrote no file at {{output}} ({os.path.basename(output)})"
            return read_output(output, nothing, "it wrote")

    def prepare(self) -> Mapping[str, str]:
        """Find the program; scripts among its arguments count as its code."""
        program = shutil.which(self.argv[0], path=child_environment(self.env).get("PATH"))
        if program is None:
            raise InputError(f"argv[0]: no program {mask_text(self.argv[0])!r} on this machine")
        files = [Path(part) for part in (program, *self.argv[1:]) if os.path.isabs(part) and os.path.isfile(part)]
        small = [path for path in files if path.stat().st_size < MAX_DIGESTED_SIZE]
        return {f"{index}: {path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for index, path in enumerate(small)}


def run_call(process: SanitizerProcess, request: Request, limits: ProcessLimits) -> None:
    """Run a call in the sanitizer process; raise ExternalSanitizerError that says how it failed."""
    reply = process.call(request)
    if reply.status == "ok":
        return
    causes = {
        "timeout": f"it took longer than its {limits.timeout:g} s",
        "signal": f"it was killed by {reply.error}",
        "raised": f"it raised {reply.error}",
        "exit": f"it ended with exit code {reply.error}",
    }
    stderr = reply.stderr.strip().splitlines()
    if not stderr:
        suffix = ""
    elif limits.show_stderr:
        suffix = f": {stderr[-1][:300]!r}"
    else:
        suffix = " (show_stderr: true shows its last message, which may hold values)"
    raise ExternalSanitizerError(causes.get(reply.status, reply.error) + suffix)


@contextmanager
def hiding(*given: Any) -> Iterator[None]:
    """Take what a sanitizer was given, and may print or raise, out of the errors about it."""
    try:
        yield
    except ExternalSanitizerError as error:
        secrets = [text for value in given for text in hidden_texts(value)]
        raise ExternalSanitizerError(scrub(str(error), secrets), skip=error.skip) from None


@contextmanager
def call_folder(process: SanitizerProcess) -> Iterator[str]:
    """Make the empty folder of one call; remove it and the notes beside it afterwards."""
    process.open()
    folder = os.path.join(process.root, uuid4().hex)
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            os.unlink(notes_path(folder))


def create_private(path: str) -> BinaryIO:
    """Create a file that only this user can read, whatever the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def read_output(path: str, nothing: str, subject: str) -> pd.DataFrame:
    """Read the file that a call wrote; a link or no file is an error with the message `nothing`."""
    if os.path.islink(path) or not os.path.isfile(path):
        raise ExternalSanitizerError(nothing)
    try:
        return decode_table(Path(path).read_bytes(), path, subject)
    except OSError as error:
        raise ExternalSanitizerError(f"{subject} a file that cannot be read: {error.strerror}") from error


def fill_placeholders(argument: str, values: Mapping[str, str]) -> str:
    """Replace {input}, {output} and {seed} in an argument of a command."""
    for placeholder, value in values.items():
        argument = argument.replace(placeholder, value)
    return argument


@dataclass(frozen=True, eq=False)
class Precomputed:
    """Releases that were made before: one of the whole table, one without each record, or person."""

    full: str = field(repr=False)
    without: str = field(repr=False)
    storage_options: Mapping[str, Any] = field(repr=False)
    is_callable: ClassVar[bool] = False

    def sanitize(self, frame: pd.DataFrame, ids: Ints, _seed: int) -> pd.DataFrame:
        """Read the file that belongs to these rows."""
        missing = np.setdiff1d(np.arange(len(frame)), ids)  # several rows of one person, named by the first
        if not len(missing):
            return self._read(self.full)
        url = self.url(int(missing[0]))
        release = self._read(url)
        if len(missing) > 1 and len(release) > len(ids) and self._full_rows <= len(frame):
            raise ExternalSanitizerError(
                f"{public_url(url)} has {len(release):,} rows, more than the {len(ids):,} of the table it is a release of; "
                "releases made with another schema.subject are others (dit leave-out writes the tables)"
            )
        return release

    @cached_property
    def _full_rows(self) -> int:
        """How many rows the release of the whole table has."""
        return len(self._read(self.full))

    def _read(self, url: str) -> pd.DataFrame:
        location = Location(url, self.storage_options)
        fs, path = filesystem(location, "sanitizer")
        try:
            content = fs.cat_file(path)
        except Exception as error:
            raise ExternalSanitizerError(f"cannot read {public_url(url)}: {reason(error, location)}") from error
        return decode_table(content, path, f"{public_url(url)} holds")

    def url(self, record: int) -> str:
        """Return the URL of the release without a record."""
        return self.without.replace(RECORD, str(record))

    def prepare(self) -> Mapping[str, str]:
        """Check that the release of the whole table exists; return the digest of its content."""
        location = Location(self.full, self.storage_options)
        fs, path = filesystem(location, "full")
        try:
            return {"full": hashlib.sha256(fs.cat_file(path)).hexdigest()}
        except Exception as error:
            raise InputError(f"full: cannot read {public_url(self.full)}: {reason(error, location)}") from error

    def present(self, records: Ints) -> dict[int, str]:
        """Return the records whose release exists, each with a text that changes with the content of the file."""
        folder, _, name = self.without.rpartition("/")
        location = Location(folder or ".", self.storage_options)
        fs, path = filesystem(location, "without")
        try:
            fs.invalidate_cache()
            if RECORD not in folder:
                entries = {str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]: entry for entry in fs.ls(path, detail=True)}
                names = {int(record): name.replace(RECORD, str(int(record))) for record in records}
                return {record: _file_version(entries[file]) for record, file in names.items() if file in entries}
            paths = {int(record): str(fs._strip_protocol(self.url(int(record)))) for record in records}
            return {record: _file_version(fs.info(path)) for record, path in paths.items() if fs.exists(path)}
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise InputError(f"without: cannot list {public_url(folder)}: {reason(error, location)}") from error


def _file_version(entry: Mapping[str, Any]) -> str:
    """Identify a file's content by what its listing says, without reading it."""
    keys = ("ETag", "etag", "md5Hash", "content_md5", "size", "mtime", "LastModified", "last_modified", "updated")
    return " ".join(f"{key}={entry[key]}" for key in keys if entry.get(key) is not None)


def encode_table(frame: pd.DataFrame, kind: str) -> bytes:
    """Write a table as CSV or Parquet, with its labels and without its index."""
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(buffer, index=False)
    else:
        frame.to_csv(buffer, index=False)
    return buffer.getvalue()


def decode_table(content: bytes, name: str, subject: str) -> pd.DataFrame:
    """Read CSV (all text) or Parquet by the file's name."""
    import pandas as pd
    import pyarrow.parquet as pq

    name = name.partition("?")[0]
    try:
        if name.endswith(".parquet"):
            frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas(integer_object_nulls=True)
        else:
            text = BoundedGzip(io.BytesIO(content), "the file").read() if name.endswith(".gz") else content
            frame = pd.read_csv(io.BytesIO(text), dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError as error:
        raise ExternalSanitizerError(f"{subject} an empty file") from error
    except InputError as error:
        raise ExternalSanitizerError(f"{subject} a file that is too large: {error}") from error
    except Exception as error:
        kind = "Parquet" if name.endswith(".parquet") else "CSV"
        raise ExternalSanitizerError(f"{subject} a file that is not {kind}: {type(error).__name__}") from error
    if frame.columns.duplicated().any():
        raise ExternalSanitizerError(f"{subject} a table with two columns of the same name")
    return frame
