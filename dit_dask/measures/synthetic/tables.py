"""The tables of a run as frames that can be compared: the original, a synthetic one, and a holdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.constraints import Choice, Field, MapOf, Number, OneOf
from dit_dask.errors import InputError
from dit_dask.inputs.counted import CountedRows
from dit_dask.measures.base import OTHER_TABLE, MeasureInput, Source
from dit_dask.measures.synthetic.columns import Column, align, format_label, parse_text
from dit_dask.measures.synthetic.sequences import Events, Sequences, read_sequences
from dit_dask.values.arrays import Positions, RowNumbers
from dit_dask.values.release import Ranges, Release, Sets
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Codes

SYNTHETIC = Field(
    OTHER_TABLE,
    None,
    description="the synthetic table; without it every release of the run that consists of records is measured",
)
COLUMNS = Field(
    MapOf(Choice(("numeric", "categorical")), 1),
    None,
    description="columns to compare and their kinds; those of the schema by default",
)
HOLDOUT = Field(
    OneOf([(str, OTHER_TABLE), (dict, OTHER_TABLE), ((int, float), Number(0))], "a path, a URL, a mapping, or a fraction"),
    description="records that the synthesizer has not seen, or the fraction of the table to set aside",
)


@dataclass(frozen=True)
class Roles:
    """How tables are made: the columns' kinds (none: the schema's), the fraction used as holdout, what makes rows events."""

    kinds: tuple[tuple[str, str], ...] = ()
    fraction: float | None = None
    events: Events | None = None

    def columns(self, rows: Rows) -> dict[str, str]:
        """Return the kinds of the columns to compare."""
        from_schema = {attribute.name: attribute.kind for attribute in rows.table.schema.quasi_identifiers}
        kinds = dict(self.kinds) or {**from_schema, **dict.fromkeys(rows.columns_of_secrets, "categorical")}
        subject = None if self.events is None else self.events.subject
        return {name: kind for name, kind in kinds.items() if name != subject}


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables with typed cells, the original without a holdout that is a fraction of it, and how many rows were incomplete.

    `positions` are those of the original's rows among the used rows. Where rows are events, the tables have a row for each
    subject, `kinds` are those of their columns, `events` has the sequences by role, and there are no positions.
    """

    rows: CountedRows
    synthetic: pd.DataFrame
    holdout: pd.DataFrame | None
    kinds: Mapping[str, str]
    dropped: int
    positions: Positions
    events: Mapping[str, Sequences] = field(default_factory=dict)

    @cached_property
    def original(self) -> pd.DataFrame:
        """The original's rows one by one."""
        return self.rows.expand()

    def align(self) -> tuple[Column, ...]:
        """The columns of the original, equal rows once, and of the synthetic table."""
        frames = {"original": self.rows.frame, "synthetic": self.synthetic}
        return align(frames, kinds=self.kinds, counts={"original": self.rows.counts})


@dataclass(frozen=True, eq=False)
class InputKey:
    """Compares inputs by identity: all pieces of a measure on a worker share them, so that tables are prepared once there."""

    inputs: MeasureInput

    def _parts(self) -> tuple[object, ...]:
        inputs = self.inputs
        return (inputs.cells, inputs.release, inputs.measure, inputs.seed, *inputs.tables.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputKey) or len(self._parts()) != len(other._parts()):
            return False
        return all(
            left is right or (isinstance(left, str | int) and left == right)
            for left, right in zip(self._parts(), other._parts(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((id(self.inputs.cells), self.inputs.measure))


def list_tables(parameters: Mapping[str, Any]) -> dict[str, Source]:
    """Return the other tables that a measure's parameters name."""
    columns = None if parameters["columns"] is None else list_columns(parameters)
    named = {key: parameters.get(key) for key in ("synthetic", "holdout")}
    return {key: Source.of(value, columns) for key, value in named.items() if isinstance(value, str | Mapping)}


@lru_cache(maxsize=2)
def prepare_tables(key: InputKey, roles: Roles) -> Tables | None:
    """Prepare the tables; None where the release does not consist of records."""
    inputs = key.inputs
    schema = inputs.rows.table.schema
    kinds = roles.columns(inputs.rows if inputs.release is None else replace(inputs.rows, further=()))
    needed = [*(attribute.name for attribute in schema.quasi_identifiers), *inputs.rows.columns_of_secrets]
    by_role = {"original": inputs.cells} | {role: CountedRows.of(table) for role, table in inputs.tables.items()}
    if inputs.release is not None:
        by_role["original"] = with_published_secrets(inputs)
        records = list_records(inputs.release, inputs)
        if records is None:
            return None
        by_role["synthetic"] = CountedRows.of(records)
    dropped, tables = 0, dict[str, CountedRows]()
    positions: Positions = RowNumbers(0)
    sequences: dict[str, Sequences] = {}
    read = [*kinds, *(roles.events.columns if roles.events is not None else ())]
    for role, rows in by_role.items():
        checked, where = [name for name in needed if name in kinds], f"{inputs.measure}: {role}"
        missing = [name for name in read if name not in rows.frame.columns]
        if missing:
            raise InputError(f"{where}: no column {missing[0]!r} among {rows.frame.shape[1]}")
        complete = rows.frame[checked].notna().all(axis=1).to_numpy(bool)[rows.index]
        dropped += int(np.count_nonzero(~complete))
        if role == "original":
            positions = RowNumbers(len(rows)) if complete.all() else np.flatnonzero(complete)
        used = rows if complete.all() else rows.only(complete)
        tables[role] = _convert_rows(used, kinds, where)
        if roles.events is not None:
            sequences[role] = read_sequences(used.expand(), tables[role].expand(), roles.events, inputs.seed, where)
    if sequences:
        flat_kinds = {f"{name}.{step}": kind for step in (1, 2) for name, kind in kinds.items()}
        flat = {role: one.flat for role, one in sequences.items()}
        original = CountedRows.of(flat["original"])
        return Tables(original, flat["synthetic"], None, flat_kinds, dropped, RowNumbers(0), sequences)
    original, holdout = tables["original"], tables.get("holdout")
    if roles.fraction is not None:
        in_holdout = choose_holdout(len(original), roles.fraction, inputs)
        original, holdout = original.only(~in_holdout), original.only(in_holdout)
        positions = positions[~in_holdout]
    known = None if holdout is None else holdout.expand()
    return Tables(original, tables["synthetic"].frame, known, kinds, dropped, positions)


def _convert_rows(rows: CountedRows, kinds: Mapping[str, str], where: str) -> CountedRows:
    """Convert the cells of the columns to compare; an error says which rows are wrong, and so looks at all of them."""
    chosen = replace(rows, frame=rows.frame[list(kinds)])
    try:
        return replace(rows, frame=convert_cells(chosen.frame, kinds, where))
    except InputError:
        convert_cells(chosen.expand(), kinds, where)
        raise


def choose_holdout(rows: int, fraction: float, inputs: MeasureInput) -> Bools:
    """Choose a random fraction of the rows, the same in all measures of a run."""
    order = seeds.stream(inputs.seed, "measure", "holdout").permutation(rows)
    in_holdout = np.zeros(rows, bool)
    in_holdout[order[: round(fraction * rows)]] = True
    return in_holdout


def list_records(release: Release, inputs: MeasureInput) -> pd.DataFrame | None:
    """Return the records of a release that publishes single values, with the cells of the table; None if it has sets."""
    import pandas as pd

    codes = single_values(release.published)
    if codes is None:
        return None
    group, secret = np.nonzero(release.counts)
    repeats = release.counts[group, secret]
    group, secret = np.repeat(group, repeats), np.repeat(secret, repeats)
    columns: dict[str, Any] = {}
    for position, attribute in enumerate(release.schema.quasi_identifiers):
        cells = np.array(attribute.levels, object)
        first = np.full(len(cells), inputs.rows.used)
        np.minimum.at(first, inputs.rows.table.codes[:, position], inputs.rows.first_rows)
        used = np.flatnonzero(first < inputs.rows.used)
        own = inputs.cells.frame[attribute.name].to_numpy(object)  # a date's level is a number, its cell is a date
        cells[used] = own[inputs.cells.index[first[used]]]
        columns[attribute.name] = pd.Series(cells[codes[group, position]])
    for member, code in release.schema.sensitive.codes_of(secret.astype(np.int32)):
        columns[member.name] = np.array(member.levels, object)[code]
    return pd.DataFrame(columns)


def with_published_secrets(inputs: MeasureInput) -> CountedRows:
    """The cells of the table, but bins or derived values where the sensitive attribute has these: releases publish them."""
    table, frame = inputs.rows.table, inputs.cells.frame
    record = np.asarray(inputs.rows.index)[inputs.cells.first]  # equal cells have equal codes
    for secret, codes in table.schema.sensitive.codes_of(table.secret[record]):
        cells = frame[secret.name].map(format_label, na_action="ignore") if secret.name in frame else None
        if cells is None or not set(cells.dropna()) <= set(secret.levels):
            frame = frame.assign(**{secret.name: np.array(secret.levels, object)[codes]})
    return inputs.cells if frame is inputs.cells.frame else replace(inputs.cells, frame=frame)


def single_values(values: Ranges | Sets) -> Codes | None:
    """Return (classes, d) codes where every published value is a single one, else None."""
    if isinstance(values, Ranges):
        return values.low if (values.low == values.high).all() else None
    if not all((sets.sum(axis=1) == 1).all() for sets in values.sets):
        return None
    columns = [sets.argmax(axis=1)[value] for sets, value in zip(values.sets, values.value.T, strict=True)]
    return np.column_stack(columns).astype(np.int32)


def convert_cells(frame: pd.DataFrame, kinds: Mapping[str, str], where: str) -> pd.DataFrame:
    """Convert text cells to the type of their column's kind; other cells stay as they are."""
    import pandas as pd

    columns = {}
    for name, kind in kinds.items():
        cells = frame[name]
        if isinstance(cells.dtype, pd.CategoricalDtype):  # texts of a source that was read in parts
            cells = cells.astype(cells.cat.categories.dtype)
        is_text = cells.map(lambda cell: isinstance(cell, str), na_action="ignore").eq(True)
        if kind == "categorical":
            columns[name] = cells.map(format_label, na_action="ignore").astype(object)
        elif is_text.any():
            columns[name] = parse_text(cells.astype(object), f"{where}: column {name!r}")
        else:
            columns[name] = cells
    return pd.DataFrame(columns)


def parse_roles(parameters: Mapping[str, Any], where: str) -> Roles:
    """Read the kinds and the holdout fraction from a measure's parameters."""
    holdout = parameters.get("holdout")
    fraction = holdout if isinstance(holdout, int | float) else None
    if fraction is not None and not 0 < fraction < 1:
        raise InputError(f"{where}.holdout must be a path, a URL, or a fraction between 0 and 1; got {fraction!r}")
    return Roles(tuple((parameters["columns"] or {}).items()), fraction)


def list_columns(parameters: Mapping[str, Any]) -> Sequence[str]:
    """Return the columns of the source that a measure needs beside the schema's."""
    events = parameters.get("events") or {}
    return list(dict.fromkeys([*(parameters["columns"] or ()), *(name for name in events.values() if name is not None)]))


def list_identifiers(parameters: Mapping[str, Any]) -> Sequence[str]:
    """Return the column that tells whose event a row is, unless it is compared too."""
    events = parameters.get("events")
    return [] if events is None or events["subject"] in (parameters["columns"] or ()) else [events["subject"]]
