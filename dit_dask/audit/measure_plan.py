"""From the measures of a config to single measurements: each measure on the table, or on every release of the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dit_dask import seeds
from dit_dask.audit.grammar import measure_component, redact_measure
from dit_dask.audit.identity import measure_id, secret_key
from dit_dask.audit.other_audit import OpenAudit, OpenedAudit
from dit_dask.audit.test import Test
from dit_dask.config.constraints import result_document
from dit_dask.config.document import Config, MeasureConfig
from dit_dask.config.registry import Context
from dit_dask.engines.controls import RAW
from dit_dask.errors import InputError
from dit_dask.inputs.counted import CountedRows
from dit_dask.inputs.load import read_table
from dit_dask.measures import kind_of
from dit_dask.measures.base import (
    COMMON_KEYS,
    AuditSource,
    DividedMeasure,
    Measure,
    MeasureEntry,
    MeasureInput,
    MeasureKind,
    MeasureResult,
    ReleaseOrigin,
    SanitizerInput,
    Source,
)
from dit_dask.sanitizers import is_randomised
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.arrays import blocks
from dit_dask.values.release import Release
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ReleaseSource:
    """A sanitizer of the run, by its first test on a sensitive attribute; the original is published as it is."""

    parameters: Mapping[str, Any] | None = field(repr=False)
    test: Test | None
    shown_parameters: Mapping[str, Any] | None = None  # without secrets
    secret: str | None = None
    is_random: bool = False  # kept where the test is left behind

    def release(self, rows: Rows) -> Release:
        """Publish the table, as the test of this sanitizer does."""
        if self.test is None:
            return Raw().release(rows.about(self.secret).table, seeds.stream(0))
        return self.test.procedure.publish(self.test.rows.table)


@dataclass(frozen=True, eq=False)
class Measurement:
    """One measure on one table; `tables` and `audits` are places in the shared_inputs."""

    id: str
    name: str
    parameters: Mapping[str, Any] = field(repr=False)  # Dask logs the arguments of a failed task
    measure: Measure = field(repr=False)
    tables: Mapping[str, int]
    release_source: ReleaseSource | None
    shown_parameters: Mapping[str, Any] = field(default_factory=dict)  # without secrets
    audits: Mapping[str, int] = field(default_factory=dict)
    sanitises: bool = False
    of_sanitizer: bool = False  # it sanitises itself, and needs no release

    @property
    def sanitizer_input(self) -> SanitizerInput | None:
        """The sanitizer of a measure that sanitises itself."""
        test = None if self.release_source is None else self.release_source.test
        return SanitizerInput(test.procedure, test.rows) if self.of_sanitizer and test is not None else None

    @property
    def writes_records(self) -> bool:
        """Whether figures of single records are asked for."""
        return bool(self.parameters.get("records", False))

    def light(self) -> Measurement:
        """The same without the table of its test, which need not travel with every task, unless it sanitises itself."""
        if self.release_source is None or self.sanitises:
            return self
        return replace(self, release_source=replace(self.release_source, test=None))

    def entry(self, result: MeasureResult) -> MeasureEntry:
        """The object in measures.json."""
        release = self.release_source
        return MeasureEntry(
            self.name,
            self.id,
            self.shown_parameters,
            None if release is None else release.shown_parameters,
            result.value,
            result.by_value,
            result.records,
            result.more,
            list(result.columns) if self.writes_records else [],
        )


@dataclass(frozen=True, eq=False)
class SharedInputs:
    """What all measurements share, sent to the workers once."""

    cells: CountedRows
    rows: Rows
    tables: Sequence[pd.DataFrame]
    seed: int
    audits: Sequence[ReleaseOrigin] = ()

    def inputs(self, measurement: Measurement, release: Release | SanitizerInput | None = None) -> MeasureInput:
        """What one measurement is shown."""
        tables = {name: self.tables[place] for name, place in measurement.tables.items()}
        if isinstance(release, SanitizerInput):
            return MeasureInput(self.cells, release.rows, tables, None, self.seed, measurement.id, procedure=release.procedure)
        source = measurement.release_source
        rows = self.rows if source is None else self.rows.about(source.secret)
        test = None if source is None or not measurement.sanitises else source.test
        origin = None if test is None else ReleaseOrigin(self.cells, test.rows, test.procedure)
        is_random = source is not None and source.is_random
        audits = {name: self.audits[place] for name, place in measurement.audits.items()}
        return MeasureInput(self.cells, rows, tables, release, self.seed, measurement.id, origin, audits, is_random)


@dataclass(frozen=True, eq=False)
class MeasurePlan:
    """All measurements of a run with their shared_inputs; `digest` covers whatever they read beside the table under audit."""

    shared_inputs: SharedInputs
    measurements: Sequence[Measurement]
    digest: str

    @property
    def cells(self) -> int:
        """How much there is to look at: the cells of all tables, as often as each measurement goes through them."""
        inputs = self.shared_inputs
        cells = inputs.cells.frame.size + sum(table.size for table in inputs.tables)
        return cells * sum(_passes(one.measure, len(inputs.cells.frame)) for one in self.measurements)


def _passes(measure: Measure, rows: int) -> int:
    """How often a measure goes through the table: as it says itself, else once, or once a row where all pairs may be."""
    stated: int | None = getattr(measure, "passes", None)
    return stated if stated is not None else rows if isinstance(measure, DividedMeasure) else 1


def columns_of(measures: Sequence[MeasureConfig]) -> list[str] | None:
    """The columns that measures look at, or None for all of the source."""
    wanted: dict[str, None] = {}
    for point in measures:
        columns = kind_of(point.measure.name).columns(point.measure.keys)
        if columns is None:
            return None
        wanted |= dict.fromkeys(columns)
    return list(wanted)


def release_sources(tests: Sequence[Test], secret: str | None = None) -> list[ReleaseSource]:
    """The original and each distinct sanitizer of the tests that publishes this table; noisy counts publish none."""
    found: dict[str, ReleaseSource] = {}
    for test in tests:
        parameters = test.parameters["sanitizer"]
        if test.procedure.publishes_release and test.recoded is None and test.config.sensitive == secret:
            is_random = test.repeats > 1 or is_randomised(getattr(test.procedure, "sanitizer", None))
            source = ReleaseSource(parameters, test, test.shown_parameters["sanitizer"], secret, is_random)
            found.setdefault(json.dumps(parameters, default=str), source)
    return [ReleaseSource(None, None, secret=secret), *found.values()]


def sanitizers_under_attack(tests: Sequence[Test], secret: str | None, where: str) -> list[ReleaseSource]:
    """Each distinct sanitizer of the tests, noisy counts and published tables too; the raw table is no sanitizer."""
    found: dict[str, ReleaseSource] = {}
    for test in tests:
        parameters = test.parameters["sanitizer"]
        if parameters["name"] != RAW and test.recoded is None and test.config.sensitive == secret:
            source = ReleaseSource(parameters, test, test.shown_parameters["sanitizer"], secret)
            found.setdefault(json.dumps(parameters, default=str), source)
    if not found:
        raise InputError(f"{where} attacks the sanitizers of the tests, and no test has one that it can attack")
    return list(found.values())


def _secrets_of(point: MeasureConfig, config: Config) -> Sequence[str | None]:
    """The sensitive attributes that a measure of releases is about: all of a list, or the one that it names as target."""
    listed = config.checked_schema.listed
    target = point.measure.keys.get("target")
    return (target,) if target in listed else listed or (None,)


class _OtherInputs:
    """The tables and audits that measures ask for beside the table under audit, each opened once."""

    def __init__(self, config: Config, open_audit: OpenAudit) -> None:
        self._config, self._open_audit = config, open_audit
        self._sources: list[Source] = []
        self._opened: dict[tuple[str, tuple[str, ...]], OpenedAudit] = {}
        self.tables: list[pd.DataFrame] = []
        self.origins: list[ReleaseOrigin] = []

    def read_tables(self, sources: Mapping[str, Source], where: str) -> dict[str, int]:
        """Return the places of the tables that a measure names."""
        for key, source in sources.items():
            if source not in self._sources:
                self._sources.append(source)
                table = read_table(source.url, source.storage_options, source.columns, self._config, f"{where}.{key}")
                self.tables.append(table)
        return {key: self._sources.index(source) for key, source in sources.items()}

    def open_audits(
        self, sources: Mapping[str, AuditSource], sanitizer: Mapping[str, Any] | None, secret: str, where: str
    ) -> dict[str, int]:
        """Return the places of the releases of other audits that a measure names, for a release of this one."""
        places = {}
        for key, source in sources.items():
            opened = (source.path, source.columns)
            if opened not in self._opened:
                self._opened[opened] = self._open_audit(source, where)
            places[key] = len(self.origins)
            self.origins.append(self._opened[opened].choose_origin(source, sanitizer, secret, where))
        return places

    def document(self) -> list[dict[str, Any]]:
        """What identifies the other audits."""
        return [one.document() for one in self._opened.values()]


def build_measure_plan(
    config: Config,
    rows: Rows,
    cells: CountedRows,
    tests: Sequence[Test],
    read: Callable[[str, str], str],
    open_audit: OpenAudit,
) -> MeasurePlan:
    """Build every measurement against the loaded table, and read the other tables and audits they ask for."""
    measurements, others = list[Measurement](), _OtherInputs(config, open_audit)
    digest_key = secret_key(rows)
    known = {secret: release_sources(tests, secret) for secret in config.checked_schema.listed or (None,)}
    for point in config.measures:
        name, keys, where = point.measure.name, point.measure.keys, point.where
        kind = kind_of(name)
        if config.checked_schema.subject in set(kind.columns(keys) or ()) - set(kind.identifiers(keys)):
            raise InputError(f"{where} names {config.checked_schema.subject!r}, which is schema.subject: an id is never shown")
        places = others.read_tables(kind.tables(keys), where)
        parameters = {key: _drop_nulls(value) for key, value in keys.items() if value is not None}
        of_releases = kind.of_releases(keys)
        telling = _telling(parameters, kind)
        for release_source in _choose_sources(point, config, tests, known):
            secret = release_source.secret if release_source else None
            sanitizer = release_source.parameters if release_source else None
            identity = measure_id(telling, sanitizer, secret, original=of_releases)
            if any(other.id == identity for other in measurements):
                raise InputError(f"{where} repeats another measure: {identity}")
            table = rows.about(secret).table
            secrets = tuple(rows.columns_of_secrets)
            context = Context(table.schema, rows.used, table.persons, config.seed, identity, where, read, secrets=secrets)
            built = kind.build(keys, context)
            shown = redact_measure(parameters, digest_key) | ({} if secret is None else {"sensitive": secret})
            audits = others.open_audits(kind.audits(keys), sanitizer, table.schema.sensitive.name, where)
            made = Measurement(
                identity, name, parameters, built, places, release_source, shown, audits, kind.sanitises, kind.of_sanitizers
            )
            measurements.append(made)
    shared_inputs = SharedInputs(cells, rows, others.tables, config.seed, others.origins)
    return MeasurePlan(shared_inputs, measurements, _digest(shared_inputs, measurements, others.document()))


def _telling(parameters: Mapping[str, Any], kind: MeasureKind) -> dict[str, Any]:
    """The parameters that tell one measure from another of its name."""
    own = {key: value for key, value in parameters.items() if key not in COMMON_KEYS}
    return {key: value for key, value in own.items() if key == "name" or value != kind.parameters.fields[key].default}


def _choose_sources(
    point: MeasureConfig, config: Config, tests: Sequence[Test], known: Mapping[str | None, Sequence[ReleaseSource]]
) -> Sequence[ReleaseSource | None]:
    """The releases or sanitizers that a measure is taken of; None stands for the table itself."""
    kind = kind_of(point.measure.name)
    if kind.of_sanitizers:
        secrets = _secrets_of(point, config)
        return [source for secret in secrets for source in sanitizers_under_attack(tests, secret, point.where)]
    if not kind.of_releases(point.measure.keys):
        return [None]
    sources = [source for secret in _secrets_of(point, config) for source in known[secret]]
    chosen = [source for source in sources if source.test is not None or not kind.sanitises]
    if not chosen:
        raise InputError(f"{point.where}: {point.measure.name} is of releases, and no test of this config publishes one")
    return chosen


def _digest(shared_inputs: SharedInputs, measurements: Sequence[Measurement], audits: Sequence[Mapping[str, Any]]) -> str:
    import pandas as pd

    content = hashlib.sha256()
    for rows in (shared_inputs.cells, *map(CountedRows.of, shared_inputs.tables)):
        content.update(repr(list(rows.frame.columns)).encode())
        for column in rows.frame.columns:
            cells = rows.frame[column]
            texts = cells.astype(str).where(cells.notna(), "\0") if cells.dtype == object else cells
            hashes = pd.util.hash_pandas_object(texts, index=False).to_numpy()
            for block in blocks(len(rows)):  # of all rows, in their order
                content.update(hashes[rows.index[block]].data)
    component = measure_component()
    parameters = [result_document(component, measurement.parameters) for measurement in measurements]
    content.update(json.dumps(parameters, sort_keys=True, default=str).encode())
    if audits:
        content.update(json.dumps(audits, sort_keys=True, default=str).encode())
    return content.hexdigest()


def _drop_nulls(value: Any) -> Any:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, Mapping) else value
