"""The manifest of a run folder: what was audited, how, and whether it is complete."""

import json
import math
from collections.abc import Mapping
from typing import Any

from dit_dask.errors import InputError
from dit_dask.store import Folder

SCHEMA_VERSION = 1
NAME = "manifest.json"
KEYS = {"status", "config", "input", "versions", "seed", "timings", "plan", "parts"}
PACKAGES = ("dask", "distributed", "numpy", "numba", "pandas", "pyarrow", "scikit-learn", "fsspec")


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    import platform
    from importlib.metadata import version

    return {"dit_dask": version("dit_dask"), "python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def read(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest, or None where there is none that can be read."""
    content = folder.read(NAME)
    if content is None:
        return None
    try:
        document = json.loads(content)
    except ValueError:
        return None
    is_ours = isinstance(document, dict) and document.get("schema_version") == SCHEMA_VERSION and document.keys() >= KEYS
    return document if is_ours else None


def write(folder: Folder, document: Mapping[str, Any]) -> None:
    """Replace the manifest."""
    write_json(folder, NAME, {"schema_version": SCHEMA_VERSION, **document})


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write JSON that a person can read and that can hold no NaN."""
    folder.write(name, (dumps(value) + "\n").encode())


def dumps(value: Any) -> str:
    """Render JSON in which a number that is infinite or none at all is a word."""
    return json.dumps(_worded(value), indent=2, allow_nan=False, ensure_ascii=False)


def _worded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _worded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_worded(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def complete(folder: Folder) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return manifest and summary of a finished run, or say that it is not one."""
    document = read(folder)
    if document is None:
        raise InputError(f"{folder.url} is not a run folder: it has no readable {NAME}")
    if document["status"] != "complete":
        raise InputError(f"{folder.url} is not complete: its status is {document['status']!r}; run it again to resume")
    try:
        summary = json.loads(folder.read("summary.json") or b"")
    except ValueError as error:
        raise InputError(f"{folder.url}: summary.json cannot be read; run it again to mend it") from error
    return document, summary


def whole(folder: Folder) -> bool:
    """Tell whether everything that a complete run writes beside its parts is there."""
    try:
        complete(folder)
        json.loads(folder.read("measures.json") or b"")
    except (InputError, ValueError):
        return False
    return folder.read("distributions.parquet") is not None
