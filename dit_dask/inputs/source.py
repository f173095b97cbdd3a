"""Finds the files of a config's source: a path, a glob, or the file that a pointer names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.storage.filesystem import filesystem, reading, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

EMBEDDED = "dit://census"
LATEST = "data.source.latest"
FORMATS = ".csv, .tsv (also .gz or .zst), .parquet or .xlsx"


def check_source(config: Config) -> None:
    """Check that there are files to read, without reading them."""
    if config.data.source != EMBEDDED:
        source_files(config)


def source_files(config: Config) -> tuple[Location, Any, list[str]]:
    """Find the files of the source; of a `latest`, the newest."""
    source, options = config.data.source, config.data.storage_options
    if isinstance(source, str):
        return _find_files(_resolve_location(source, config, options), source)
    pointer = source.latest
    if any(mark in pointer for mark in "*?["):
        location, fs, paths = _find_files(_resolve_location(pointer, config, options), pointer)
        return location, fs, paths[-1:]
    target = _resolve_pointer(read_text(pointer, config, LATEST, options), pointer)
    return _find_files(_resolve_location(target, config, options), target)


def table_files(source: str, options: Mapping[str, Any], config: Config, where: str) -> tuple[Location, Any, list[str]]:
    """Find the files of another table that the config names."""
    return _find_files(_resolve_location(source, config, options), source, where)


def _resolve_pointer(text: str, pointer: str) -> str:
    """Return the path in a pointer file: a name beside or below it, as plain text or as {"source": name}."""
    import json

    try:
        content = json.loads(text)
    except ValueError:
        content = text.strip()
    name = content.get("source") if isinstance(content, dict) else content
    folder = pointer[: pointer.rfind("/") + 1]
    is_name = isinstance(name, str) and re.fullmatch(r"[^\n\r]{1,1000}", name)
    name = str(name).removeprefix(folder or "./")
    # a writer of the pointer must not be able to direct us, with our credentials, to another place
    if not is_name or not name or _leads_out(name):
        expected = 'one name of a file beside or below it, or {"source": name}'
        raise InputError(f"{LATEST}: {public_url(pointer)} must hold {expected}")
    return folder + name


def _leads_out(name: str) -> bool:
    """Tell whether a name, however often it is decoded, may leave its folder or name another host."""
    while True:
        if any(mark in name for mark in ("://", "::", "\\")) or name.startswith(("/", "~")) or ".." in name.split("/"):
            return True
        decoded = unquote(name)
        if decoded == name:
            return False
        if decoded.count("/") != name.count("/"):  # a hidden separator
            return True
        name = decoded


def _resolve_location(path: str, config: Config, options: Mapping[str, Any] | None = None) -> Location:
    """Resolve known names and paths relative to the config file."""
    from pathlib import Path

    url = datasets.resolve(path)
    if "://" not in url:
        url = str(Path(config.folder) / Path(url).expanduser())
    return Location(url, options or {})


def _find_files(location: Location, source: str, where: str = "data.source") -> tuple[Location, Any, list[str]]:
    fs, path = filesystem(location, where.removesuffix(".source"))
    shown = public_url(source)

    def list_paths() -> list[str]:
        fs.invalidate_cache()
        if fs.isdir(path):
            return sorted(str(file) for file in fs.find(path) if str(file).endswith(".parquet"))
        if fs.exists(path):
            return [path]
        return sorted(str(file) for file in fs.glob(path) if not fs.isdir(file))

    try:
        paths = reading(list_paths)
    except Exception as error:
        raise InputError(f"{where}: cannot read {shown}: {reason(error, location)}") from error
    if not paths:
        raise InputError(f"{where}: no file at {shown}")
    for file in paths:
        if not re.search(r"\.((csv|tsv)(\.gz|\.zst)?|parquet|xlsx)$", file_name(file)):
            raise InputError(f"{where} must be {FORMATS}; got {file_name(file)!r}")
    return location, fs, paths


def file_name(path: str) -> str:
    """Return the file's name, without the query of a web address, which may hold tokens."""
    return (public_url(path).partition("?")[0] if "://" in path else path).rsplit("/", 1)[-1]


def read_text(path: str, config: Config, where: str, options: Mapping[str, Any] | None = None) -> str:
    """Read a small text file named in the config, relative to it."""
    location = _resolve_location(path, config, options)
    fs, inner = filesystem(location, where)
    try:
        content: bytes = reading(lambda: fs.cat_file(inner))
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: {public_url(path)} is not UTF-8 text") from error
    except Exception as error:
        raise InputError(f"{where}: cannot read {public_url(path)}: {reason(error, location)}") from error
