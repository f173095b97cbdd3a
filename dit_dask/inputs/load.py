"""From a config to a table: which rows are used, and their codes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.data import DROP_ROWS
from dit_dask.config.document import Config
from dit_dask.errors import InputError, unknown
from dit_dask.inputs.encode import Column
from dit_dask.inputs.kinds import encode_attribute, has_scale
from dit_dask.inputs.read import check_names, read_frame, read_source
from dit_dask.inputs.sensitive import encode_sensitive, join_members
from dit_dask.inputs.subject import Persons, number_persons
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Bools, Ints
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.schema import Schema
from dit_dask.values.table import Rows, collapse, count_persons

if TYPE_CHECKING:
    import pandas as pd


def load(config: Config, frame: pd.DataFrame | None = None, others: Sequence[str] | None = None) -> Rows:
    """Load the table that a config describes, or the given frame in its place; with `others`, keep these and the used cells."""
    rows, read, used = _load(config, others or [], frame)
    return rows if others is None else rows.with_frame(_original_cells(read.iloc[used], rows, config))


def load_with(
    config: Config, more: Sequence[str] | None, frame: pd.DataFrame | None = None, others: Sequence[str] | None = None
) -> tuple[Rows, pd.DataFrame]:
    """Load the table; also return its used rows as read, with more columns of the source (None: all of them).

    Only the schema's columns decide which rows are used; a missing cell of another column is None or NaN.
    """
    rows, read, used = _load(config, None if more is None else [*more, *(others or ())], frame)
    kept = rows if others is None else rows.with_frame(_original_cells(read.iloc[used], rows, config))
    return kept, blank_missing(read.iloc[used], config.data.missing)


def load_columns(config: Config, named: Sequence[str]) -> pd.DataFrame:
    """Load every column of the source, those named among them; rows need not be complete, limit and sample choose of all.

    Texts are categories, so that a table of millions of rows takes a few bytes a cell.
    """
    frame = read_frame(config, None, is_coded=True)[0].rename(columns=str)
    check_names(list(frame.columns), [*frame.columns, *named], "data")
    if not len(frame):
        raise InputError(f"data: {source_name(config)} has no rows")
    chosen = select_rows(np.arange(len(frame)), config)
    return blank_missing(frame if len(chosen) == len(frame) else frame.iloc[chosen], config.data.missing)


def read_table(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> pd.DataFrame:
    """Read another table that the config names, with the same marks of missing cells; no columns: all of them."""
    frame, _ = read_source(source, options, columns, config, where)
    if not len(frame):
        raise InputError(f"{where}: {public_url(source)} has no rows")
    return blank_missing(frame.rename(columns=str), config.data.missing)


def _load(config: Config, more: Sequence[str] | None, frame: pd.DataFrame | None) -> tuple[Rows, pd.DataFrame, Ints]:
    schema = config.checked_schema
    columns = schema.columns
    wanted = None if more is None else list(dict.fromkeys([*columns, *schema.subject_columns, *more]))
    files: tuple[str, ...] = ()
    if frame is None:
        frame, files = read_frame(config, wanted)
    frame = frame.rename(columns=str)
    wanted = list(frame.columns) if wanted is None else wanted
    check_names(list(frame.columns), list(dict.fromkeys([*columns, *schema.subject_columns, *wanted])), "data")
    for column in config.data.missing if isinstance(config.data.missing, Mapping) else ():
        if column not in wanted:
            raise unknown("data.missing: column", column, wanted)
    if not len(frame):
        raise InputError(f"data: {source_name(config)} has no rows")
    missing = {column: missing_cells(frame, [column], config.data.missing) for column in columns}
    kept = _category_columns(config)
    incomplete = np.zeros(len(frame), bool)
    for column in columns:
        incomplete |= missing[column] & (column not in kept)
    used = select_rows(np.flatnonzero(~incomplete), config)
    used_columns = {name: Column(name, frame[name].iloc[used], np.arange(len(used)), missing[name][used]) for name in columns}
    attributes = []
    codes = np.empty((len(used), len(schema.quasi_identifiers)), np.int32)
    for position, (name, described) in enumerate(schema.quasi_identifiers.items()):
        attribute, codes[:, position] = encode_attribute(used_columns[name], described, config)
        attributes.append(attribute)
    members = {one.name: encode_sensitive(used_columns[one.column], one, config) for one in schema.members}
    persons = Persons(None) if schema.subject is None else _find_persons(frame, schema.subject, used, config)
    dropped = int(incomplete.sum())
    loaded = []
    for one in schema.secrets:
        secret, secret_codes = join_members(one, members)
        table, index = collapse(Schema(tuple(attributes), secret, schema.subject), codes, secret_codes, persons.person)
        counts = count_persons(table)[index]
        loaded.append(Rows(table, index, len(frame), dropped, counts, files, source_row=used, doubts=persons.doubts))
    return replace(loaded[0], further=tuple(loaded[1:])), frame[wanted], used


def _find_persons(frame: pd.DataFrame, subject: str, used: Ints, config: Config) -> Persons:
    missing = missing_cells(frame, [subject], config.data.missing)[used]
    return number_persons(frame[subject].iloc[used], missing)


def _category_columns(config: Config) -> set[str]:
    """The columns whose missing cells are a category; numbers, orders and dates on a scale have no place for one."""
    if config.data.missing_as == DROP_ROWS:
        return set()
    schema = config.checked_schema
    on_trees = {name for name, described in schema.quasi_identifiers.items() if not has_scale(described)}
    return on_trees | {member.column for member in schema.members} - (set(schema.quasi_identifiers) - on_trees)


def _original_cells(frame: pd.DataFrame, rows: Rows, config: Config) -> pd.DataFrame:
    """The cells as a sanitizer expects them: as they were read, but numbers where text holds numbers."""
    cells = frame.reset_index(drop=True)
    codes = rows.table.codes[rows.index]
    for attribute, code in zip(rows.table.schema.quasi_identifiers, codes.T, strict=True):
        first = cells[attribute.name].iloc[0]
        if attribute.kind == "numeric" and isinstance(first, str) and re.fullmatch(DECIMAL, first):
            cells[attribute.name] = np.array(attribute.levels)[code]
    changed = {one.name for one in config.checked_schema.members if one.bins is not None or one.map is not None}
    for each in rows.by_secret.values():
        for secret, code in each.table.schema.sensitive.codes_of(each.table.secret[each.index]):
            if secret.name in changed:  # a sanitizer gets what the audit is about
                cells[secret.name] = np.array(secret.levels, object)[code]
    return cells


def blank_missing(frame: pd.DataFrame, marks: Any) -> pd.DataFrame:
    """Put None, or NaN in a column of numbers, where a mark stands; number the rows."""
    frame = frame.reset_index(drop=True)
    for column in frame.columns:
        is_missing = missing_cells(frame, [column], marks)
        if is_missing.any():
            cells = frame[column] if frame[column].dtype.kind not in "iub" else frame[column].astype(object)
            frame[column] = cells.mask(is_missing, None)
    return frame


def missing_cells(frame: pd.DataFrame, columns: Sequence[str], marks: Any) -> Bools:
    """Return (rows,): whether a used cell is empty or holds a mark."""
    import pandas as pd

    is_missing = np.zeros(len(frame), bool)
    for column in columns:
        cells = frame[column]
        is_missing |= cells.isna().to_numpy(bool)
        own_marks = {"", *(str(mark) for mark in (marks.get(column, []) if isinstance(marks, Mapping) else marks))}
        if isinstance(cells.dtype, pd.CategoricalDtype):
            marked = [*cells.cat.categories.astype(str).isin(own_marks), True]  # the last is of empty cells
            is_missing |= np.array(marked)[cells.cat.codes.to_numpy()]
        elif pd.api.types.is_float_dtype(cells.dtype):  # 999 marks 999.0
            is_missing |= cells.isin([float(mark) for mark in own_marks if re.fullmatch(DECIMAL, mark)]).to_numpy(bool)
        else:
            is_missing |= cells.astype(str).isin(own_marks).to_numpy(bool)
    return is_missing


def select_rows(complete: Ints, config: Config) -> Ints:
    """Choose the rows under audit among the complete ones, in file order."""
    if not len(complete):
        raise InputError(f"data: no complete row: every row of {source_name(config)} misses a used value")
    if config.data.limit is not None:
        complete = complete[: config.data.limit]
    sample = config.data.sample
    if sample is not None:
        if sample.rows > len(complete):
            raise InputError(f"data.sample.rows must be at most the {len(complete)} complete rows; got {sample.rows}")
        rng = seeds.stream(sample.seed, "data.sample")
        complete = np.sort(rng.choice(complete, sample.rows, replace=False))
    if len(complete) < 2:
        raise InputError("data: at least 2 complete rows are needed to remove one; got 1")
    return complete


def source_name(config: Config) -> str:
    """The source as messages may show it."""
    return public_url(config.data.url)
