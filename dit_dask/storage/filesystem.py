"""File systems of URLs, opened with options whose ${NAME} references are resolved only here."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dit_dask.errors import InputError, first_line
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import REFERENCE, public_url, scrub, texts, url_secrets
from dit_dask.storage.retry import FIRST_PATIENCE_SECONDS, error_code, is_transient, retry_transient

Answer = TypeVar("Answer")

# a client without time limits hangs for minutes on a dead server; outages are retried here, not by the client
S3_DEFAULTS = {"connect_timeout": 5, "read_timeout": 30, "retries": {"mode": "standard", "max_attempts": 3}}
EXTRAS = {"gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure", "adl": "azure"}
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
    except Exception as error:  # any filesystem may raise an error of its own, with the URL in its text
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
    if is_transient(error):
        return f"the storage does not answer ({type(error).__name__})"
    text = first_line(error)
    secrets = () if location is None else secrets_of(location)
    return scrub(re.sub(r"\s+", " ", text), secrets)[:200] if text else type(error).__name__


def secrets_of(location: Location) -> Iterator[str]:
    """Every text among the options, references resolved, and the credentials of the URL."""
    yield from url_secrets(location.url)
    yield from resolved_texts(location.storage_options)


def resolved_texts(options: Any) -> Iterator[str]:
    """Every text inside a value, without its references and, where they are set, with what they refer to."""
    for text in texts(options):
        yield from REFERENCE.split(text)
        with suppress(UnsetVariableError):
            yield resolved({"value": text}, "")["value"]


def fetch(url: str) -> bytes:
    """Download one file through fsspec."""
    fs, path = filesystem(Location(url, {}), url)
    content: bytes = fs.cat_file(path)
    return content


def reading(action: Callable[[], Answer]) -> Answer:
    """Read input, and wait a while for a storage that does not answer."""
    return retry_transient(action, FIRST_PATIENCE_SECONDS)
