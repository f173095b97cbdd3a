"""The manifest of a run folder: what was audited, how, and whether it is complete."""

import json
from collections.abc import Mapping
from typing import Any

from dit_dask.errors import InputError
from dit_dask.store import Folder

SCHEMA_VERSION = 1
NAME = "manifest.json"
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
    return document if isinstance(document, dict) and document.get("schema_version") == SCHEMA_VERSION else None


def write(folder: Folder, document: Mapping[str, Any]) -> None:
    """Replace the manifest."""
    write_json(folder, NAME, {"schema_version": SCHEMA_VERSION, **document})


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write JSON that a person can read and that can hold no NaN."""
    folder.write(name, (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def complete(folder: Folder) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return manifest and summary of a finished run, or say that it is not one."""
    document = read(folder)
    if document is None:
        raise InputError(f"{folder.url} is not a run folder: it has no readable {NAME}")
    if document["status"] != "complete":
        raise InputError(f"{folder.url} is not complete: its status is {document['status']!r}; run it again to resume")
    content = folder.read("summary.json")
    if content is None:
        raise InputError(f"{folder.url} has no summary.json; run it again with --fresh")
    return document, json.loads(content)
