"""Where files are: any fsspec URL, opened with options whose ${NAME} references are resolved only here."""

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from dit_dask.config import Location
from dit_dask.errors import InputError, RunError
from dit_dask.objects import Change, Objects, objects, protocols
from dit_dask.outage import FIRST_PATIENCE_SECONDS, error_code, is_outage, riding_out

Answer = TypeVar("Answer")

# a client without time limits hangs for minutes on a dead server; outages are ridden out here, not by the client
S3_DEFAULTS = {"connect_timeout": 5, "read_timeout": 30, "retries": {"mode": "standard", "max_attempts": 3}}
EXTRAS = {"gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure", "adl": "azure"}
MASK = "***"
PROBE = ".dit-probe"
SHORTEST_SECRET = 4
ANSWERS = {
    "NoSuchBucket": "the bucket does not exist",
    "InvalidAccessKeyId": "the server does not know this key",
    "SignatureDoesNotMatch": "the secret does not belong to the key",
    "RequestTimeTooSkewed": "the clocks of this machine and the server differ too much",
    "AccessDenied": "permission denied",
    "403": "permission denied, or a wrong key",
}


class UnsetVariableError(InputError):
    """A ${NAME} that the environment does not have."""


def environment(name: str) -> str | None:
    """Read an environment variable: the only place but the cluster that may."""
    return os.environ.get(name)


def resolved(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Replace ${NAME} in option values by the environment's."""

    def replace(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: replace(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replace(item) for item in value]
        return re.sub(r"\$\{(\w+)\}", lambda match: lookup(match[1]), value) if isinstance(value, str) else value

    def lookup(name: str) -> str:
        value = environment(name)
        if value is None:
            raise UnsetVariableError(f"{where}: the environment variable {name} is not set")
        return value

    return {key: replace(value) for key, value in options.items()}


def redacted(value: Any, key: str = "") -> Any:
    """Copy a config document without secrets: storage options, and credentials inside URLs."""
    if key in ("storage_options", "env"):
        return _masked(value)
    if isinstance(value, Mapping):
        return {name: redacted(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return public_url(value) if isinstance(value, str) and "://" in value else value


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    is_reference = isinstance(value, str) and re.fullmatch(r"\$\{\w+\}", value)
    return value if is_reference else MASK


def public_url(url: str) -> str:
    """Show a URL without user, password and query, where tokens live."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, parts.path, MASK if parts.query else "", ""))


def is_local(url: str) -> bool:
    """Tell whether a URL is a place in this machine's own file system."""
    return "://" not in url or urlsplit(url).scheme in ("file", "local")


def filesystem(location: Location, where: str) -> tuple[Any, str]:
    """Open the filesystem of a URL; return it and the path inside it."""
    import fsspec

    options = resolved(location.storage_options, f"{where}.storage_options")
    protocol = urlsplit(location.url).scheme if "://" in location.url else "file"
    if protocol in ("s3", "s3a"):
        options["config_kwargs"] = S3_DEFAULTS | dict(options.get("config_kwargs", {}))
    try:
        fs, path = fsspec.core.url_to_fs(location.url, **options)
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        hint = f"install dit_dask[{extra}]" if extra else reason(error, location)
        raise InputError(f"{where}: cannot open {public_url(location.url)}: {hint}") from error
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{where}: cannot open {public_url(location.url)}: {reason(error, location)}") from error
    return fs, str(path)


def reason(error: BaseException, location: Location | None = None) -> str:
    """Say in a few words why storage refused, without headers, keys or traces."""
    answer = ANSWERS.get(error_code(error))
    if answer:
        return answer
    if isinstance(error, FileNotFoundError):
        return "the bucket does not exist" if "bucket" in str(error) else "not found"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "no space left"
    if is_outage(error):
        return f"the storage does not answer ({type(error).__name__})"
    text = str(error).strip().splitlines()
    return _scrubbed(re.sub(r"\s+", " ", text[0]), location)[:200] if text else type(error).__name__


def _scrubbed(text: str, location: Location | None) -> str:
    """Take credentials out of someone else's words."""
    for secret in _secrets(location.storage_options) if location else ():
        text = text.replace(secret, MASK)
    return re.sub(r"(://)[^/@\s]+@|(\?)[^\s\"']+", lambda match: f"{match[1] or match[2]}{MASK}", text)


def _secrets(options: Any) -> Iterator[str]:
    """Every text among the options, references resolved."""
    if isinstance(options, Mapping):
        for item in options.values():
            yield from _secrets(item)
    elif isinstance(options, str):
        with suppress(UnsetVariableError):
            value = resolved({"value": options}, "")["value"]
            if len(value) >= SHORTEST_SECRET:
                yield value


def fetch(url: str) -> bytes:
    """Download one file through fsspec."""
    fs, path = filesystem(Location(url, {}), url)
    content: bytes = fs.cat_file(path)
    return content


def reading(action: Callable[[], Answer]) -> Answer:
    """Read input, and wait a while for a storage that does not answer."""
    return riding_out(action, FIRST_PATIENCE_SECONDS)


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

    def child(self, name: str) -> "Folder":
        """The folder of that name inside this one."""
        return Folder(Location(f"{self.location.url.rstrip('/')}/{name}", self.location.storage_options))

    def probe(self) -> None:
        """Find out, before any work, whether this folder can be written to."""
        fs, root = self._open()
        path = (
            f"{_existing(root) if 'file' in protocols(fs) else root}/{PROBE}"  # no folder is made for a run that may not start
        )
        try:
            riding_out(lambda: objects(fs).replace(path, b""), FIRST_PATIENCE_SECONDS)
        except Exception as error:
            raise InputError(f"output: cannot write to {self.url}: {reason(error, self.location)}") from error
        with suppress(Exception):  # who may write may not be allowed to delete, and two probes may meet
            fs.rm_file(path)

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file at once: nobody ever sees half of it."""
        with self._objects("output: cannot write", name) as (store, path):
            riding_out(lambda: store.replace(path, content))

    def create(self, name: str, content: bytes) -> bool:
        """Create a file unless there is one; a retried request may find the file that it made itself."""
        with self._objects("output: cannot write", name) as (store, path):
            return riding_out(lambda: store.create(path, content))

    def amend(self, name: str, change: Change) -> None:
        """Change a file by what it holds, also when others do so at the same time."""
        with self._objects("output: cannot write", name) as (store, path):
            riding_out(lambda: store.amend(path, change))

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None where there is none."""
        with self._objects("cannot read", name) as (store, path):
            return riding_out(lambda: store.read(path))

    def tidy(self) -> None:
        """Remove what crashed writers left half done."""
        fs, root = self._open()
        with suppress(Exception):  # a courtesy: nothing half done can be taken for a file
            riding_out(lambda: objects(fs).tidy(root))

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
            found = riding_out(listed)
        except Exception as error:
            raise RunError(f"cannot list {self.url}/{below}: {reason(error, self.location)}") from error
        return {name for path in found if not (name := str(path).rstrip("/").rsplit("/", 1)[-1]).startswith(".")}

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
            riding_out(removed)
        except Exception as error:
            raise RunError(f"output: cannot clear {self.url}: {reason(error, self.location)}") from error


def _existing(path: str) -> str:
    """The nearest folder above a local path, or at it, that is there."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path
