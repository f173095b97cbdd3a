"""From the points of a config to tests on the loaded table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.audit.grammar import redact_test
from dit_dask.audit.identity import hashed_id, secret_key, test_id, test_ids, without_secret
from dit_dask.audit.procedures import PROCEDURES
from dit_dask.audit.test import Test
from dit_dask.config.components import ComponentConfig
from dit_dask.config.document import Config, RecordSample, TestConfig
from dit_dask.config.registry import Context
from dit_dask.encoders.names import BEFORE, NAMES
from dit_dask.encoders.quantiles import with_quantiles
from dit_dask.engines import choose
from dit_dask.engines.noisy_counts import binned
from dit_dask.errors import InputError
from dit_dask.sanitizers import SANITIZERS
from dit_dask.values.arrays import RowNumbers
from dit_dask.values.pieces import recode_index
from dit_dask.values.table import Rows, count_persons

if TYPE_CHECKING:
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Positions

ReadText = Callable[[str, str], str]


def build_tests(config: Config, rows: Rows, read: ReadText) -> list[Test]:
    """Build every test against the loaded table; `read` opens a file that the config names."""
    builders: dict[str | None, _Builder] = {}
    shared = _Shared(secret_key(rows), tuple(rows.columns_of_secrets), {})
    tests: list[Test] = []
    documents = [point.identity() for point in config.points]
    for point, parameters, identity in zip(config.points, documents, test_ids(documents), strict=True):
        if point.sensitive not in builders:
            builders[point.sensitive] = _Builder(config, rows.about(point.sensitive), read, shared)
        for other in tests:
            if other.parameters == parameters:
                raise InputError(f"{point.where} repeats another test: {identity}")
            if other.id == identity:
                identity = test_id(parameters, names_adversary=True)
        if identity in {other.id for other in tests}:
            identity = hashed_id(identity, parameters)
        tests.append(builders[point.sensitive].build(point, identity))
    return tests


def rebuild_test(config: Config, test: Test, rows: Rows, read: ReadText) -> Test:
    """Build the same test on other rows of the same sensitive attribute, which are binned already where it has bins.

    Bands of an attribute that these rows do not have are left out.
    """
    point, parameters = test.config, dict(test.config.sanitizer.parameters)
    names = {attribute.name for attribute in rows.table.schema.quasi_identifiers}
    if parameters.get("bins"):
        parameters["bins"] = {}
    if parameters.get("bands"):
        parameters["bands"] = {name: widths for name, widths in parameters["bands"].items() if name in names}
    point = replace(point, sanitizer=replace(point.sanitizer, parameters=parameters))
    shared = _Shared(secret_key(rows), tuple(rows.columns_of_secrets), {})
    return _Builder(config, rows, read, shared).build(point, test.id)


@dataclass(frozen=True)
class _Shared:
    """What the builders of all sensitive attributes share: a key, their columns, external sanitizers by their keys."""

    key: bytes
    columns: tuple[str, ...]
    external: dict[str, ExternalSanitizer]


class _Builder:
    """Builds the tests on one sensitive attribute; equal tables and sanitizers are made once, so that they travel once."""

    def __init__(self, config: Config, rows: Rows, read: ReadText, shared: _Shared) -> None:
        self._config, self._rows, self._read, self._shared = config, rows, read, shared
        self._binned: dict[str, Rows] = {"{}": rows}
        self._recoded: dict[tuple[int, str], Rows] = {}
        self._sanitizers: dict[str, Any] = {}
        self._row_by_row: dict[int, Rows] = {}

    def build(self, point: TestConfig, identity: str) -> Test:
        """Build one test."""
        rows, where = self._recode(point), point.where
        folder, parameters = self._config.folder, point.identity()
        name = without_secret(identity, parameters)  # so that a list draws the same numbers as one config for each
        schema, seed, columns, persons = rows.table.schema, self._config.seed, self._shared.columns, rows.table.persons
        context = Context(schema, rows.used, persons, seed, name, where, self._read, folder, rows.frame, columns, rows.table)
        kind = PROCEDURES[SANITIZERS[point.sanitizer.name].procedure]
        procedure = kind.build(point, context, self._sanitizer(point, context))
        engine, reason = choose(point.engine, procedure, where)
        audited = _audited_rows(point.records, rows, where)
        shown = redact_test(parameters, self._shared.key)
        recoded = None if rows is self._rows else rows
        rows = recoded or self._bin(point)
        test = Test(identity, point, parameters, procedure, engine, reason, rows, audited, None, shown, recoded)
        if test.external is None:
            return test
        test = replace(test, rows=self._single_rows(rows))
        if test.external is None or test.external.match is None:
            return test
        return test.with_external(replace(test.external, whole=test.rows.table))

    def _recode(self, point: TestConfig) -> Rows:
        """The rows that are sanitised: those of the table, or one table for all tests with the same quantiles before that."""
        key = recode_key(point.encoder)
        if key is None:
            return self._rows
        if key not in self._recoded:
            self._recoded[key] = recode_rows(self._rows, *key)
        return self._recoded[key]

    def _bin(self, point: TestConfig) -> Rows:
        """One table for all tests with the same bins."""
        rows, bins = self._rows, point.sanitizer.parameters.get("bins", {})
        key = json.dumps(bins, sort_keys=True, default=str)
        if key not in self._binned:
            table, place = binned(rows.table, bins, f"{point.where}.sanitizer.bins")
            index = recode_index(rows.index, place, table.distinct)
            found = Rows(table, index, rows.read, rows.dropped, table.weights, source_row=rows.source_row)
            self._binned[key] = replace(found, left_out=rows.left_out)
        return self._binned[key]

    def _single_rows(self, rows: Rows) -> Rows:
        if id(rows) not in self._row_by_row:
            self._row_by_row[id(rows)] = rows.row_by_row()
        return self._row_by_row[id(rows)]

    def _sanitizer(self, point: TestConfig, context: Context) -> Any:
        component, recoded = point.sanitizer, recode_key(point.encoder)
        key = json.dumps([component.keys, recoded], sort_keys=True, default=str)
        if key not in self._sanitizers:
            built: Any = SANITIZERS[component.name].build(component.keys, context)
            if SANITIZERS[component.name].sees_rows:  # the same calls serve all sensitive attributes
                if recoded is not None and not built.is_callable:
                    raise InputError(
                        f"{context.where}.encoder: {BEFORE} changes the table before it is sanitised; "
                        f"{component.name} releases are of the table as it is"
                    )
                built = self._shared.external.setdefault(key, built).about(context.schema)
            self._sanitizers[key] = built
        return self._sanitizers[key]


def recode_key(encoder: ComponentConfig | None) -> tuple[int, str] | None:
    """How many quantiles an encoder makes before the table is sanitised, and how they are cut; None if it makes none."""
    if encoder is None or NAMES.get(encoder.name, ("",))[0] != BEFORE:
        return None
    return encoder.parameters["quantiles"], encoder.parameters["cut"]


def recode_rows(rows: Rows, quantiles: int, cut: str) -> Rows:
    """The rows with quantiles instead of continuous attributes, in the frame, too, where sanitizers see it."""
    table, place = with_quantiles(rows.table, quantiles, cut)
    index, frame = recode_index(rows.index, place, table.distinct), rows.frame
    if frame is not None:
        pairs = zip(rows.table.schema.quasi_identifiers, table.schema.quasi_identifiers, table.codes.T, strict=True)
        labels = {new.name: np.array(new.levels, object)[codes[index]] for old, new, codes in pairs if old is not new}
        frame = frame.assign(**labels)
    found = Rows(table, index, rows.read, rows.dropped, count_persons(table), rows.files, frame, rows.source_row)
    return replace(found, left_out=rows.left_out)


def key_columns(match: Any) -> list[str]:
    """The column by which rows are found in a release alone, if there is one."""
    return [match["key"]] if isinstance(match, Mapping) else []


def external_columns(config: Config) -> list[str] | None:
    """The columns that external sanitizers see beside those of the schema; None where no test has one."""
    components = [point.sanitizer for point in config.tests]
    external = [component.parameters for component in components if SANITIZERS[component.name].sees_rows]
    seen = [[*parameters["columns"], *key_columns(parameters.get("match"))] for parameters in external]
    return list(dict.fromkeys(itertools.chain(*seen))) if seen else None


def _audited_rows(records: str | RecordSample | Sequence[int], rows: Rows, where: str) -> Positions:
    """Return the ascending positions of the rows to test; a sample has all rows of so many persons."""
    used = rows.used
    if isinstance(records, str):
        return RowNumbers(used)
    if isinstance(records, RecordSample):
        persons, kind = rows.table.persons, "rows" if rows.table.subject is None else "persons"
        if records.sample > persons:
            raise InputError(f"{where}.records.sample must be at most the {persons} used {kind}; got {records.sample}")
        rng = seeds.stream(records.seed, "records.sample")
        chosen = np.sort(rng.choice(persons, records.sample, replace=False))
        return chosen if rows.person is None else np.flatnonzero(np.isin(rows.person, chosen))
    if max(records) >= used:
        raise InputError(f"{where}.records must be positions below the {used} used rows; got {max(records)}")
    positions = np.unique(records)
    if len(positions) < len(records):
        raise InputError(f"{where}.records names a row twice")
    return positions if rows.person is None else np.flatnonzero(np.isin(rows.person, rows.person[positions]))
