"""Where files are: any fsspec URL, opened with options whose ${NAME} references are resolved only here."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from dit_dask.config import Location
from dit_dask.errors import InputError, RunError

# a client without time limits hangs for minutes on a dead server; standard mode backs off between attempts
S3_DEFAULTS = {"connect_timeout": 5, "read_timeout": 30, "retries": {"mode": "standard", "max_attempts": 6}}
MASK = "***"


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


def filesystem(location: Location, where: str) -> tuple[Any, str]:
    """Open the filesystem of a URL; return it and the path inside it."""
    import fsspec

    options = resolved(location.storage_options, f"{where}.storage_options")
    protocol = urlsplit(location.url).scheme if "://" in location.url else "file"
    if protocol in ("s3", "s3a"):
        options["config_kwargs"] = S3_DEFAULTS | dict(options.get("config_kwargs", {}))
    try:
        fs, path = fsspec.core.url_to_fs(location.url, **options)
    except (ImportError, ValueError, TypeError, OSError) as error:
        raise InputError(f"{where}: cannot open {public_url(location.url)}: {reason(error)}") from error
    return fs, str(path)


def reason(error: BaseException) -> str:
    """Say in a few words why storage refused, without headers, keys or traces."""
    if isinstance(error, FileNotFoundError):
        return "the bucket does not exist" if "bucket" in str(error) else "not found"
    if isinstance(error, PermissionError):
        return "permission denied"
    text = str(error).strip().splitlines()
    return re.sub(r"\s+", " ", text[0])[:200] if text else type(error).__name__


def fetch(url: str) -> bytes:
    """Download one file through fsspec."""
    fs, path = filesystem(Location(url, {}), url)
    content: bytes = fs.cat_file(path)
    return content


@dataclass(frozen=True)
class Folder:
    """A run folder in some filesystem; opened anew in every process, so that only names and references travel."""

    location: Location

    def _open(self) -> tuple[Any, str]:
        fs, path = filesystem(self.location, "output")
        return fs, path.rstrip("/")

    @property
    def url(self) -> str:
        """The URL to print."""
        return public_url(self.location.url)

    def child(self, name: str) -> "Folder":
        """The folder of that name inside this one."""
        return Folder(Location(f"{self.location.url.rstrip('/')}/{name}", self.location.storage_options))

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file at once: nobody ever sees half of it."""
        fs, root = self._open()
        path = f"{root}/{name}"
        try:
            if "file" in _protocols(fs):
                _replace_local(path, content)
            else:
                fs.pipe_file(path, content)
        except Exception as error:
            raise RunError(f"output: cannot write {self.url}/{name}: {reason(error)}") from error

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None where there is none."""
        fs, root = self._open()
        fs.invalidate_cache()
        try:
            content: bytes = fs.cat_file(f"{root}/{name}")
        except FileNotFoundError:
            return None
        except Exception as error:
            raise RunError(f"cannot read {self.url}/{name}: {reason(error)}") from error
        return content

    def names(self, below: str) -> set[str]:
        """The names of the files right below a folder of this one; hidden ones are half-written."""
        fs, root = self._open()
        fs.invalidate_cache()
        try:
            found = fs.ls(f"{root}/{below}", detail=False)
        except FileNotFoundError:
            return set()
        except Exception as error:
            raise RunError(f"cannot list {self.url}/{below}: {reason(error)}") from error
        return {name for path in found if not (name := str(path).rstrip("/").rsplit("/", 1)[-1]).startswith(".")}

    def clear(self) -> None:
        """Remove the folder and all it holds."""
        fs, root = self._open()
        try:
            if fs.exists(root):
                fs.rm(root, recursive=True)
        except Exception as error:
            raise RunError(f"output: cannot clear {self.url}: {reason(error)}") from error


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _replace_local(path: str, content: bytes) -> None:
    from uuid import uuid4

    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
