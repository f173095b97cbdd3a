"""The index of an output: every complete run, in one index.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dit_dask.audit.manifest import Manifest, now
from dit_dask.audit.statistics import Figure, by_name, number_of, plain
from dit_dask.audit.summary import TestSummary
from dit_dask.config.constraints import result_document
from dit_dask.config.data import DATA
from dit_dask.config.schema import SCHEMA
from dit_dask.errors import InputError, RunError
from dit_dask.storage.documents import render_json
from dit_dask.storage.folder import Folder
from dit_dask.storage.redaction import without_digests

NAME = "index.json"
SCHEMA_VERSION = 1
KEYS = ("date", "name", "audit", "run", "fingerprint", "rows")


@dataclass(frozen=True)
class TestFigures:
    """What the index keeps of a test: the statistics that the table lists for history; an estimated delta has an interval."""

    __test__ = False

    figures: Mapping[str, Figure]
    interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, summary: TestSummary) -> TestFigures:
        """Take the figures from a summary."""
        kept = [(one, key) for one in by_name().values() for key in one.shown.get("history", ())]
        figures = {one.label(key): summary.figure(one.name, key) for one, key in kept}
        return cls(figures, None if summary.simulation is None else summary.simulation.delta_interval)

    @property
    def delta(self) -> Figure:
        """The largest distance."""
        return self.figures.get("delta")

    def document(self) -> dict[str, Any]:
        """As in index.json."""
        interval = {} if self.interval is None else {"interval": list(self.interval)}
        others = {label: plain(value) for label, value in self.figures.items() if label != "delta"}
        return {"delta": plain(self.delta), **interval, **others}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> TestFigures:
        """The inverse of `document`."""
        ends = document.get("interval")
        figures = {label: number_of(value) for label, value in document.items() if label != "interval"}
        return cls(figures, None if ends is None else (float(ends[0]), float(ends[1])))


@dataclass(frozen=True)
class IndexEntry:
    """A complete run; `audit` is the same for all data audited in the same way."""

    date: str
    name: str
    audit: str
    run: str
    fingerprint: str
    rows: int
    tests: Mapping[str, TestFigures]
    more: Mapping[str, Any] = field(default_factory=dict)  # what another version wrote

    @property
    def series(self) -> tuple[str, str]:
        """What makes two runs comparable: name and audit."""
        return self.name, self.audit

    def document(self) -> dict[str, Any]:
        """As in index.json."""
        tests = {test: figures.document() for test, figures in self.tests.items()}
        return {name: getattr(self, name) for name in KEYS} | {"tests": tests} | dict(self.more)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> IndexEntry:
        """The inverse of `document`."""
        known = {name: document[name] for name in KEYS}
        tests = {test: TestFigures.read(kept) for test, kept in document["tests"].items()}
        return cls(**known, tests=tests, more={key: value for key, value in document.items() if key not in (*KEYS, "tests")})


def describe_run(folder: Folder, manifest: Manifest, summaries: Sequence[TestSummary]) -> IndexEntry:
    """Describe a complete run by its manifest and summaries."""
    config = manifest.config
    asked = {key: config[key] for key in ("data", "schema", "tests", "seed")}
    asked |= {"data": result_document(DATA, config["data"]), "schema": result_document(SCHEMA, config["schema"])}
    comparable = without_digests(asked)  # digests of secrets have a key that follows from the data
    if comparable != asked:
        comparable["ids"] = sorted(one.test for one in summaries)
    return IndexEntry(
        manifest.timings.finished or "",
        config["name"],
        hashlib.sha256(json.dumps(comparable, sort_keys=True).encode()).hexdigest()[:12],
        folder.name,
        manifest.input.digest,
        manifest.input.used,
        {one.test: TestFigures.of(one) for one in summaries},
    )


def append(output: Folder, mine: IndexEntry) -> None:
    """Enter a complete run, once; data that came back after other data is entered again, at the date of its return."""
    entered: IndexEntry | None = None

    def change(content: bytes | None) -> bytes | None:
        nonlocal entered
        known = _runs(content, output)
        runs = [replace(one, tests=mine.tests) if one.run == mine.run else one for one in known]  # some may be withheld now
        if entered is None:
            series = [one.run for one in runs if one.series == mine.series]
            if series[-1:] == [mine.run]:
                return None if runs == known else _render(runs)
            returned = mine.run in series
            entered = replace(mine, date=now()) if returned else mine
        if entered in runs:
            return None
        return _render([*runs, entered])

    try:
        output.update(NAME, change)
    except RunError as error:
        raise RunError(f"the run is complete, but is not in the index: {error}; the same command tries again") from error


def _render(runs: Sequence[IndexEntry]) -> bytes:
    return render_json({"schema_version": SCHEMA_VERSION, "runs": [one.document() for one in runs]})


def read(output: Folder) -> list[IndexEntry]:
    """Return the entries of an output, in the order in which their runs were completed."""
    content = output.read(NAME)
    if content is None:
        raise InputError(f"{output.url} has no {NAME}: no run has been completed there")
    return _runs(content, output)


def _runs(content: bytes | None, output: Folder) -> list[IndexEntry]:
    if content is None:
        return []
    try:
        document = json.loads(content)
        runs = [IndexEntry.read(one) for one in document["runs"]] if document["schema_version"] == SCHEMA_VERSION else None
    except (ValueError, KeyError, TypeError, AttributeError):
        runs = None
    if runs is None:
        raise RunError(f"{output.url}/{NAME} is not an index that this version can read; move it away to begin a new one")
    return runs
