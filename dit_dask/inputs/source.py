"""Which files a config's source means: a path, a glob, or whatever a pointer names today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.storage.filesystem import filesystem, reading, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

EMBEDDED = "dit://census"
LATEST = "data.source.latest"


def check_source(config: Config) -> None:
    """Find out whether there are files to read, without reading them."""
    if config.data.source != EMBEDDED:
        source_files(config)


def source_files(config: Config) -> tuple[Location, Any, list[str]]:
    """Find the files of the source; of a `latest`, the newest."""
    source, options = config.data.source, config.data.storage_options
    if isinstance(source, str):
        return _files(_input(source, config, options), source)
    pointer = source.latest
    if any(mark in pointer for mark in "*?["):
        location, fs, paths = _files(_input(pointer, config, options), pointer)
        return location, fs, paths[-1:]
    target = _pointed(read_text(pointer, config, LATEST, options), pointer)
    return _files(_input(target, config, options), target)


def table_files(source: str, options: Mapping[str, Any], config: Config, where: str) -> tuple[Location, Any, list[str]]:
    """Find the files of another table that the config names."""
    return _files(_input(source, config, options), source, where)


def _pointed(text: str, pointer: str) -> str:
    """Resolve what a pointer says: a name beside or below the pointer, as plain text or as {"source": name}."""
    import json

    try:
        said = json.loads(text)
    except ValueError:
        said = text.strip()
    name = said.get("source") if isinstance(said, dict) else said
    folder = pointer[: pointer.rfind("/") + 1]
    is_name = isinstance(name, str) and re.fullmatch(r"[^\n\r]{1,1000}", name)
    name = str(name).removeprefix(folder or "./")
    # whoever may write the pointer must not be able to send us, and our credentials, elsewhere
    if not is_name or not name or "://" in name or name.startswith("/") or ".." in name.split("/"):
        expected = 'one name of a file beside or below it, or {"source": name}'
        raise InputError(f"{LATEST}: {public_url(pointer)} must hold {expected}")
    return folder + name


def _input(path: str, config: Config, options: Mapping[str, Any] | None = None) -> Location:
    """Resolve known names and paths relative to the config file."""
    from pathlib import Path

    url = datasets.resolve(path)
    if "://" not in url:
        url = str(Path(config.folder) / Path(url).expanduser())
    return Location(url, options or {})


def _files(location: Location, source: str, where: str = "data.source") -> tuple[Location, Any, list[str]]:
    fs, path = filesystem(location, where.removesuffix(".source"))
    shown = public_url(source)

    def found() -> list[str]:
        fs.invalidate_cache()
        if fs.isdir(path):
            return sorted(str(one) for one in fs.find(path) if str(one).endswith(".parquet"))
        if fs.exists(path):
            return [path]
        return sorted(str(one) for one in fs.glob(path) if not fs.isdir(one))

    try:
        paths = reading(found)
    except Exception as error:
        raise InputError(f"{where}: cannot read {shown}: {reason(error, location)}") from error
    if not paths:
        raise InputError(f"{where}: no file at {shown}")
    for one in paths:
        if not re.search(r"\.(csv|csv\.gz|parquet)$", file_name(one)):
            raise InputError(f"{where} must be .csv, .csv.gz or .parquet; got {file_name(one)!r}")
    return location, fs, paths


def file_name(path: str) -> str:
    """The file's name, without the query of a web address, where tokens live."""
    return (path.partition("?")[0] if "://" in path else path).rsplit("/", 1)[-1]


def read_text(path: str, config: Config, where: str, options: Mapping[str, Any] | None = None) -> str:
    """Read a small text file named in the config, relative to it."""
    location = _input(path, config, options)
    fs, inner = filesystem(location, where)
    try:
        content: bytes = reading(lambda: fs.cat_file(inner))
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: {public_url(path)} is not UTF-8 text") from error
    except Exception as error:
        raise InputError(f"{where}: cannot read {public_url(path)}: {reason(error, location)}") from error
