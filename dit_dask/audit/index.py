"""The index of an output: every complete run, in one index.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dit_dask.audit import manifest
from dit_dask.errors import InputError, RunError
from dit_dask.storage.folder import Folder

NAME = "index.json"
SCHEMA_VERSION = 1
Entry = Mapping[str, Any]


def entry(folder: Folder, document: Mapping[str, Any], summary: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe a complete run by its manifest and summary; `audit` is the same for all data audited in the same way."""
    config = document["config"]
    asked = {key: config[key] for key in ("data", "schema", "tests", "seed")}
    asked["data"] = {key: value for key, value in config["data"].items() if key != "storage_options"}
    return {
        "date": document["timings"]["finished"],
        "name": config["name"],
        "audit": hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12],
        "run": folder.name,
        "fingerprint": document["input"]["digest"],
        "rows": document["input"]["used"],
        "tests": {test["test"]: _figures(test) for test in summary},
    }


def _figures(test: Mapping[str, Any]) -> dict[str, Any]:
    interval = {"interval": test["delta_interval"]} if "delta_interval" in test else {}
    return {"delta": test["delta"], **interval, "mean": test["mean"]}


def append(output: Folder, mine: Entry) -> None:
    """Enter a complete run, once; data that came back after other data is entered again, at the date of its return."""
    entered: dict[str, Any] = {}

    def change(content: bytes | None) -> bytes | None:
        runs = _runs(content, output)
        if not entered:
            series = [one["run"] for one in runs if series_of(one) == series_of(mine)]
            if series[-1:] == [mine["run"]]:
                return None
            entered.update(mine)
            if mine["run"] in series:
                entered["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        if entered in runs:
            return None
        document = {"schema_version": SCHEMA_VERSION, "runs": [*runs, entered]}
        return (manifest.dumps(document) + "\n").encode()

    try:
        output.update(NAME, change)
    except RunError as error:
        raise RunError(f"the run is complete, but is not in the index: {error}; the same command tries again") from error


def read(output: Folder) -> list[dict[str, Any]]:
    """Return the entries of an output, in the order in which their runs were completed."""
    content = output.read(NAME)
    if content is None:
        raise InputError(f"{output.url} has no {NAME}: no run has been completed there")
    return _runs(content, output)


def _runs(content: bytes | None, output: Folder) -> list[dict[str, Any]]:
    if content is None:
        return []
    try:
        document = json.loads(content)
        is_ours = document["schema_version"] == SCHEMA_VERSION and isinstance(document["runs"], list)
    except (ValueError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise RunError(f"{output.url}/{NAME} is not an index that this version can read; move it away to begin a new one")
    runs: list[dict[str, Any]] = document["runs"]
    return runs


def series_of(run: Entry) -> tuple[str, str]:
    """What makes two runs comparable: name and audit."""
    return run["name"], run["audit"]
