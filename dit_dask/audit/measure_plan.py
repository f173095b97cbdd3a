"""From the measures of a config to single measurements: each measure on the table, or on every release of the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask import seeds
from dit_dask.audit.build import Test, expand, given, measure_id
from dit_dask.config.constraints import Component
from dit_dask.config.document import Config
from dit_dask.config.registry import Context
from dit_dask.engines import Procedure
from dit_dask.errors import InputError
from dit_dask.inputs.load import read_table
from dit_dask.measures import MEASURES, kind_of
from dit_dask.measures.base import Measure, MeasureEntry, MeasureInput, MeasureResult, Source
from dit_dask.sanitizers.raw import Raw
from dit_dask.storage.redaction import redacted
from dit_dask.values.release import Release
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ReleaseSource:
    """A sanitizer of the run, by its first test; the original is published as it is."""

    parameters: Mapping[str, Any] | None
    test: Test | None

    def release(self, rows: Rows) -> Release:
        """Publish the table, as the test of this sanitizer does."""
        if self.test is None or not isinstance(self.test.procedure, Procedure):
            return Raw().release(rows.table, seeds.stream(0))
        return self.test.procedure.full(self.test.rows.table)


ORIGINAL = ReleaseSource(None, None)


@dataclass(frozen=True, eq=False)
class Measurement:
    """One measure on one table; `tables` are places in the shared_inputs."""

    id: str
    name: str
    parameters: Mapping[str, Any]
    measure: Measure
    tables: Mapping[str, int]
    release_source: ReleaseSource | None

    def light(self) -> Measurement:
        """The same without the table of its test, which need not travel with every task."""
        return self if self.release_source is None else replace(self, release_source=replace(self.release_source, test=None))

    def entry(self, finding: MeasureResult) -> MeasureEntry:
        """The object in measures.json."""
        release = None if self.release_source is None else self.release_source.parameters
        return MeasureEntry(
            self.name,
            self.id,
            redacted(self.parameters),
            redacted(release),
            finding.value,
            finding.by_value,
            finding.records,
            finding.more,
            list(finding.columns),
        )


@dataclass(frozen=True, eq=False)
class SharedInputs:
    """What all measurements share, sent to the workers once."""

    frame: pd.DataFrame
    rows: Rows
    tables: Sequence[pd.DataFrame]
    seed: int

    def evidence(self, measurement: Measurement, release: Release | None = None) -> MeasureInput:
        """What one measurement is shown."""
        tables = {name: self.tables[place] for name, place in measurement.tables.items()}
        return MeasureInput(self.frame, self.rows, tables, release, self.seed, measurement.id)


@dataclass(frozen=True, eq=False)
class MeasurePlan:
    """All measurements of a run with their shared_inputs; `digest` covers whatever they read beside the table under audit."""

    shared_inputs: SharedInputs
    measurements: Sequence[Measurement]
    digest: str


def check_measures(config: Config) -> list[dict[str, Any]]:
    """Expand every sweep and check every point; needs no data."""
    spec, points = Component(MEASURES.records()), []
    for index, raw in enumerate(config.measures):
        where = f"measures[{index}]"
        record = spec.record(raw, where)
        written = raw if isinstance(raw, Mapping) else {"name": raw}
        points += [spec.check(point, where) | {"where": where} for point in expand(written, record, where)]
    if not points and not config.tests:
        raise InputError("tests: at least one test or one measure is needed; got none")
    if config.gates and not config.tests:
        raise InputError("gates: they judge tests, and this config has none")
    return points


def columns_of(points: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The columns that measures look at, or None for all of the source."""
    wanted: dict[str, None] = {}
    for point in points:
        columns = kind_of(point["name"]).columns(point)
        if columns is None:
            return None
        wanted |= dict.fromkeys(columns)
    return list(wanted)


def release_sources(tests: Sequence[Test]) -> list[ReleaseSource]:
    """The original and each distinct sanitizer of the tests that publishes a table; noisy counts do not."""
    found: dict[str, ReleaseSource] = {}
    for test in tests:
        procedure, parameters = test.procedure, test.parameters["sanitizer"]
        if isinstance(procedure, Procedure) and not isinstance(procedure.sanitizer, Raw):
            found.setdefault(json.dumps(parameters, default=str), ReleaseSource(parameters, test))
    return [ORIGINAL, *found.values()]


def build_measure_plan(
    config: Config, rows: Rows, frame: pd.DataFrame, tests: Sequence[Test], read: Callable[[str, str], str]
) -> MeasurePlan:
    """Build every measurement against the loaded table, and read the other tables they ask for."""
    sources, measurements = list[Source](), list[Measurement]()
    tables: list[pd.DataFrame] = []
    for point in check_measures(config):
        kind, where, places = kind_of(point["name"]), point["where"], {}
        for key, source in kind.tables(point).items():
            if source not in sources:
                sources.append(source)
                tables.append(read_table(source.url, source.storage_options, source.columns, config, f"{where}.{key}"))
            places[key] = sources.index(source)
        parameters = {key: value for key, value in given(point).items() if value is not None}

        fields, of_releases = kind.parameters.fields, kind.of_releases(point)
        telling = {key: value for key, value in parameters.items() if key == "name" or value != fields[key].default}
        for release_source in release_sources(tests) if of_releases else [None]:
            identity = measure_id(telling, release_source.parameters if release_source else None, original=of_releases)
            if any(other.id == identity for other in measurements):
                raise InputError(f"{where} repeats another measure: {identity}")
            context = Context(rows.table.schema, rows.used, config.seed, identity, where, read)
            built = kind.build(point, context)
            measurements.append(Measurement(identity, point["name"], parameters, built, places, release_source))
    shared_inputs = SharedInputs(frame, rows, tables, config.seed)
    return MeasurePlan(shared_inputs, measurements, _digest(shared_inputs, measurements))


def _digest(shared_inputs: SharedInputs, measurements: Sequence[Measurement]) -> str:
    import pandas as pd

    content = hashlib.sha256()
    for frame in (shared_inputs.frame, *shared_inputs.tables):
        content.update(repr(list(frame.columns)).encode())
        for column in frame.columns:
            cells = frame[column]
            texts = cells.astype(str).where(cells.notna(), "\0") if cells.dtype == object else cells
            content.update(pd.util.hash_pandas_object(texts, index=False).to_numpy().tobytes())
    parameters = [_without_options(measurement.parameters) for measurement in measurements]
    content.update(json.dumps(parameters, sort_keys=True, default=str).encode())
    return content.hexdigest()


def _without_options(value: Any) -> Any:
    """Leave out how storage is opened: a new key changes no result."""
    if isinstance(value, Mapping):
        return {key: _without_options(item) for key, item in value.items() if key != "storage_options"}
    return [_without_options(item) for item in value] if isinstance(value, list) else value
