"""The manifest of a run folder: what was audited, how, and whether it is complete."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from dit_dask.errors import InputError
from dit_dask.storage.folder import Folder

SCHEMA_VERSION = 1
NAME = "manifest.json"
PLAN = "plan.json"
KEYS = {"status", "config", "input", "versions", "seed", "timings", "plan", "parts"}
PACKAGES = ("dask", "distributed", "numpy", "numba", "pandas", "pyarrow", "scikit-learn", "fsspec")


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    import platform
    from importlib.metadata import version

    return {"dit_dask": version("dit_dask"), "python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def read(folder: Folder) -> dict[str, Any] | None:
    """Return the manifest, or None where there is none that can be read."""
    return _parsed(folder.read(NAME))


def _parsed(content: bytes | None) -> dict[str, Any] | None:
    document = _mapping(content)
    is_ours = document.get("schema_version") == SCHEMA_VERSION and document.keys() >= KEYS
    return document if is_ours else None


def _mapping(content: bytes | None) -> dict[str, Any]:
    try:
        document = json.loads(content or b"")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def write(folder: Folder, document: Mapping[str, Any]) -> None:
    """Replace the manifest, also while other sessions note theirs: none of them overwrites it by what it read before."""
    content = _rendered({"schema_version": SCHEMA_VERSION, **document})
    folder.update(NAME, lambda stored: None if stored == content else content)


def note(folder: Folder, document: Mapping[str, Any]) -> None:
    """Replace the manifest unless someone else has completed this very run meanwhile; what is complete stays so."""
    content = _rendered({"schema_version": SCHEMA_VERSION, **document})
    seen: list[bytes | None] = []

    def change(stored: bytes | None) -> bytes | None:
        if stored == content or _mapping(stored).get("status") == "complete":
            return None
        if seen and stored != seen[0]:  # another writer's note is as good; unchanged means that our write failed
            return None
        seen.append(stored)
        return content

    folder.update(NAME, change)


def discard(folder: Folder) -> None:
    """Remove a run, its manifest first: what is left of it by a crash must not read as complete."""
    folder.clear(first=NAME)


def agreed_plan(folder: Folder, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the one plan of a run: the first to create it decides for everyone who works on the same run."""
    known = _plan(folder)
    if known:
        return known
    mine = make()
    content = _rendered({"dit_dask": versions()["dit_dask"], "plan": mine})
    if folder.create(PLAN, content):
        return mine
    theirs = _plan(folder)
    if not theirs:  # unreadable, or made by another version
        folder.write(PLAN, content)
    return theirs or mine


def _plan(folder: Folder) -> dict[str, Any]:
    document = _mapping(folder.read(PLAN))
    plan = document.get("plan") if document.get("dit_dask") == versions()["dit_dask"] else None
    return plan if isinstance(plan, dict) else {}


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write JSON that a person can read and that can hold no NaN."""
    folder.write(name, _rendered(value))


def _rendered(value: Any) -> bytes:
    return (dumps(value) + "\n").encode()


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
