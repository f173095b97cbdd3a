"""The history of an output: every complete run in one index.json, and what has risen since the run before."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Any

from dit_dask import manifest
from dit_dask.errors import InputError, RunError, unknown
from dit_dask.report import columns, number
from dit_dask.store import Folder

NAME = "index.json"
SCHEMA_VERSION = 1
ROUNDING = 1e-9  # another machine may round the last digits differently; nothing else makes an exact delta move
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Rise:
    """A test whose delta is larger than in the run before, by more than noise explains."""

    name: str
    test: str
    run: str
    date: str
    before: float | str
    after: float | str


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
            series = [one["run"] for one in runs if _series(one) == _series(mine)]
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
        output.amend(NAME, change)
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


def named(runs: Sequence[Entry], name: str | None) -> list[Entry]:
    """Keep the runs of one name."""
    known = {one["name"] for one in runs}
    if name is not None and name not in known:
        raise unknown("--name", name, known)
    return [one for one in runs if name in (None, one["name"])]


def rises(runs: Sequence[Entry]) -> list[Rise]:
    """Compare each run with the one before it of the same name and audit."""
    found = []
    for before, after in _neighbours(runs):
        for test in before["tests"].keys() & after["tests"].keys():
            old, new = before["tests"][test], after["tests"][test]
            if is_rise(old, new):
                found.append(Rise(after["name"], test, after["run"], after["date"], old["delta"], new["delta"]))
    return sorted(found, key=lambda rise: (rise.name, rise.date, rise.test))


def is_rise(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Tell whether delta rose by more than rounding or, where it is estimated, beyond both intervals."""
    if None in (old["delta"], new["delta"]):
        return False
    most = float(old.get("interval", [old["delta"]])[-1])
    least = float(new.get("interval", [new["delta"]])[0])
    if math.isinf(most):
        return False
    return least > most + ROUNDING * max(1.0, abs(most))


def _neighbours(runs: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    ordered = sorted(runs, key=_series)  # stable: within a series the order of completion stays
    return [pair for _, group in groupby(ordered, key=_series) for pair in pairwise(group)]


def _series(run: Entry) -> tuple[str, str]:
    return run["name"], run["audit"]


def document(runs: Sequence[Entry]) -> dict[str, Any]:
    """The runs and their rises, for --json."""
    return {"runs": list(runs), "rises": [asdict(rise) for rise in rises(runs)]}


def text(runs: Sequence[Entry]) -> str:
    """Lay out the trend of every test, oldest first; a rise is marked."""
    flagged = {(rise.run, rise.date, rise.test) for rise in rises(runs)}
    lines = [["test", "name", "date", "run", "rows", "delta", "change", ""]]
    for _, group in groupby(sorted(runs, key=_series), key=_series):
        series = list(group)
        for test in dict.fromkeys(test for one in series for test in one["tests"]):
            last = math.nan
            for one in (one for one in series if test in one["tests"]):
                shown = one["tests"][test]["delta"]
                delta = math.nan if shown is None else float(shown)
                change = 0.0 if delta == last else delta - last
                mark = "ROSE" if (one["run"], one["date"], test) in flagged else ""
                figures = (number(one["rows"]), number(shown), number(None if math.isnan(change) else change))
                lines.append([test, one["name"], one["date"], one["run"], *figures, mark])
                last = delta
    return columns(lines)
