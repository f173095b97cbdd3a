"""The manifest of a run folder: what was audited, how, and whether it is complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from dit_dask.audit.parts import PartFile
from dit_dask.audit.plan import TestPlan
from dit_dask.errors import InputError
from dit_dask.storage.documents import parse_mapping, render_json
from dit_dask.storage.folder import Folder

SCHEMA_VERSION = 1
NAME = "manifest.json"
PLAN = "plan.json"
RUNNING, COMPLETE, FAILED = "running", "complete", "failed"
PACKAGES = ("dask", "distributed", "numpy", "numba", "pandas", "pyarrow", "scikit-learn", "fsspec")


@dataclass(frozen=True)
class InputFingerprint:
    """How many rows were read, dropped and used, the digest of the used ones, and how many persons have them, if known.

    `left_out` counts the complete rows that a round of hardening took away; None in other runs.
    """

    read: int
    dropped: int
    used: int
    digest: str
    persons: int | None = None
    left_out: int | None = None


@dataclass(frozen=True)
class Timings:
    """When a run started and finished, the seconds of its stages, and the engine seconds of each test so far."""

    started: str
    finished: str | None = None
    seconds: Mapping[str, float] | None = None
    engine_seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Manifest:
    """What manifest.json holds; `config` is the resolved document without secrets.

    `personal_data` lists the files of the folder that must not be shared, by their paths in it.
    """

    status: str
    config: Mapping[str, Any]
    files: Sequence[str]
    input: InputFingerprint
    versions: Mapping[str, str]
    seed: int
    timings: Timings
    plan: Mapping[str, TestPlan] = field(default_factory=dict)
    parts: Mapping[str, Sequence[PartFile]] = field(default_factory=dict)
    error: str | None = None
    personal_data: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the run was finished."""
        return self.status == COMPLETE

    def document(self) -> dict[str, Any]:
        """As in manifest.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "status": self.status,
            "config": self.config,
            "files": list(self.files),
            "input": {key: value for key, value in asdict(self.input).items() if value is not None},
            "versions": dict(self.versions),
            "seed": self.seed,
            "timings": {key: value for key, value in asdict(self.timings).items() if value is not None},
            "plan": {test: plan.document() for test, plan in self.plan.items()},
            "parts": {test: [asdict(part) for part in parts] for test, parts in self.parts.items()},
            "personal_data": list(self.personal_data),
            **({} if self.error is None else {"error": self.error}),
        }

    @property
    def secrets(self) -> list[str]:
        """The names of the sensitive attributes."""
        return _secret_names(self.config)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Manifest:
        """The inverse of `document`."""
        config = document["config"]
        names = _secret_names(config)
        if not names or not all(isinstance(text, str) for text in (config["name"], *config["gates"], *names)):
            raise TypeError("not the config of a run")
        if not isinstance(document["timings"].get("engine_seconds", {}), Mapping) or "dit_dask" not in document["versions"]:
            raise TypeError("not the manifest of a run")
        return cls(
            document["status"],
            config,
            document.get("files", ()),
            InputFingerprint(**document["input"]),
            document["versions"],
            document["seed"],
            Timings(**document["timings"]),
            read_plan(document["plan"]),
            {test: [PartFile(**part) for part in parts] for test, parts in document["parts"].items()},
            document.get("error"),
            document.get("personal_data", ()),
        )


def _secret_names(config: Mapping[str, Any]) -> list[str]:
    sensitive = config["schema"]["sensitive"]
    return [one["name"] for one in (sensitive if isinstance(sensitive, list) else [sensitive])]


def read_plan(document: Mapping[str, Any]) -> dict[str, TestPlan]:
    """Read the plans of all tests."""
    return {test: TestPlan.read(kept) for test, kept in document.items()}


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    import platform
    from importlib.metadata import version

    return {"dit_dask": version("dit_dask"), "python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def now() -> str:
    """The present time as manifests write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read(folder: Folder) -> Manifest | None:
    """Return the manifest, or None where there is none that can be read."""
    document = parse_mapping(folder.read(NAME))
    if document.get("schema_version") != SCHEMA_VERSION:
        return None
    try:
        return Manifest.read(document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def stored_version(folder: Folder) -> str | None:
    """The version of dit_dask that wrote the manifest, whatever else it holds; None where there is none."""
    versions_then = parse_mapping(folder.read(NAME)).get("versions")
    return str(versions_then.get("dit_dask")) if isinstance(versions_then, Mapping) else None


def write(folder: Folder, manifest: Manifest) -> None:
    """Replace the manifest, also while other sessions note theirs: none of them overwrites it by what it read before."""
    content = render_json(manifest.document())
    folder.update(NAME, lambda stored: None if stored == content else content)


def note(folder: Folder, manifest: Manifest) -> None:
    """Replace the manifest unless another session has completed this very run meanwhile."""
    content = render_json(manifest.document())
    seen: list[bytes | None] = []

    def change(stored: bytes | None) -> bytes | None:
        if stored == content or parse_mapping(stored).get("status") == COMPLETE:
            return None
        if seen and stored != seen[0]:  # another session's note is as good; unchanged means that our write failed
            return None
        seen.append(stored)
        return content

    folder.update(NAME, change)


def discard(folder: Folder) -> None:
    """Remove a run, its manifest first: what is left of it by a crash must not read as complete."""
    folder.clear(first=NAME)


def agreed_plan(
    folder: Folder,
    make: Callable[[], Mapping[str, TestPlan]],
    is_usable: Callable[[Mapping[str, TestPlan]], bool] = lambda _plans: True,
) -> Mapping[str, TestPlan]:
    """Return the one plan of a run: the first to create it decides for everyone who works on the same run."""
    known = _stored_plan(folder)
    if known and is_usable(known):
        return known
    mine = make()
    document = {test: plan.document() for test, plan in mine.items()}
    content = render_json({"dit_dask": versions()["dit_dask"], "plan": document})
    if folder.create(PLAN, content):
        return mine
    theirs = _stored_plan(folder)
    if not theirs or not is_usable(theirs):  # damaged, or made by another version
        folder.write(PLAN, content)
        return mine
    return theirs


def _stored_plan(folder: Folder) -> dict[str, TestPlan]:
    document = parse_mapping(folder.read(PLAN))
    if document.get("dit_dask") != versions()["dit_dask"]:
        return {}
    try:
        return read_plan(document["plan"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return {}


def read_finished(folder: Folder) -> tuple[Manifest, list[Any]]:
    """Return the manifest and the objects of summary.json of a finished run, or say that it is not one."""
    manifest = read(folder)
    if manifest is None:
        raise InputError(f"{folder.url} is not a run folder: it has no readable {NAME}")
    if not manifest.is_complete:
        raise InputError(f"{folder.url} is not complete: its status is {manifest.status!r}; run it again to resume")
    return manifest, read_summary_objects(folder)


def read_summary_objects(folder: Folder) -> list[Any]:
    """Read the objects of summary.json."""
    try:
        objects: list[Any] = json.loads(folder.read("summary.json") or b"")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{folder.url}: summary.json cannot be read; run it again to mend it") from error
    return objects
