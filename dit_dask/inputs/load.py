"""From a config to a table: which rows are used, and their codes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError, unknown
from dit_dask.inputs.code import choose_rows, code_rows, missing_cells, source_name
from dit_dask.inputs.collapsed import collapse_frame, frame_of
from dit_dask.inputs.columns import source_columns
from dit_dask.inputs.partitions import Gather, gather_here, read_collapsed
from dit_dask.inputs.read import check_names, read_frame, read_source
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Ints
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.pieces import as_positions
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd


def load(
    config: Config, frame: pd.DataFrame | None = None, others: Sequence[str] | None = None, gather: Gather = gather_here
) -> Rows:
    """Load the table that a config describes, or the given frame in its place; with `others`, keep these and the used cells.

    Where no cell is kept, `gather` has the parts of the source read, and may keep the rows where they are read.
    """
    if frame is None and others is None:
        return _read_rows(config, gather)
    rows, read, used = _load(config, others or [], frame)
    return rows if others is None else rows.with_frame(_original_cells(read.iloc[used], rows, config))


def load_with(
    config: Config,
    more: Sequence[str] | None,
    frame: pd.DataFrame | None = None,
    others: Sequence[str] | None = None,
    gather: Gather = gather_here,
) -> tuple[Rows, pd.DataFrame]:
    """Load the table; also return its used rows as read, with more columns of the source (None: all of them).

    Only the schema's columns decide which rows are used; a missing cell of another column is None or NaN. Texts of a source
    are categories unless a sanitizer sees them.
    """
    if frame is None and others is None:
        return _read_with(config, more, gather)
    rows, read, used = _load(config, None if more is None else [*more, *(others or ())], frame)
    kept = rows if others is None else rows.with_frame(_original_cells(read.iloc[used], rows, config))
    return kept, blank_missing(read.iloc[used], config.data.missing)


def load_columns(config: Config, named: Sequence[str]) -> pd.DataFrame:
    """Load every column of the source, those named among them; rows need not be complete, limit and sample choose of all.

    Texts are categories, so that a table of millions of rows takes a few bytes a cell.
    """
    names = source_columns(config)
    check_names(names, [*names, *named], "data")
    read, _ = read_collapsed(config, names[:1], beside=names[1:])
    if not read.rows:
        raise InputError(f"data: {source_name(config)} has no rows")
    chosen = choose_rows(read.rows, config)
    rows = np.arange(chosen.stop) if isinstance(chosen, slice) else chosen
    return blank_missing(frame_of(read, rows), config.data.missing)


def read_table(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> pd.DataFrame:
    """Read another table that the config names, with the same marks of missing cells; no columns: all of them."""
    frame, _ = read_source(source, options, columns, config, where)
    if not len(frame):
        raise InputError(f"{where}: {public_url(source)} has no rows")
    return blank_missing(frame.rename(columns=str), config.data.missing)


def _load(config: Config, more: Sequence[str] | None, frame: pd.DataFrame | None) -> tuple[Rows, pd.DataFrame, Ints]:
    """Load the rows, and the cells of more columns as they were read, with the positions of the used ones."""
    schema = config.checked_schema
    needed = list(dict.fromkeys([*schema.columns, *schema.subject_columns]))
    wanted = None if more is None else list(dict.fromkeys([*needed, *more]))
    files: tuple[str, ...] = ()
    if frame is None:
        frame, files = read_frame(config, wanted)
    frame = frame.rename(columns=str)
    wanted = list(frame.columns) if wanted is None else wanted
    check_names(list(frame.columns), list(dict.fromkeys([*needed, *wanted])), "data")
    check_marked(config, wanted)
    rows = code_rows(collapse_frame(frame, needed), config, files)
    return rows, frame[wanted], np.asarray(rows.source_row)


def _read_rows(config: Config, gather: Gather) -> Rows:
    """Load the rows in parts, of which no cell is kept as it was read."""
    schema = config.checked_schema
    needed = list(dict.fromkeys([*schema.columns, *schema.subject_columns]))
    read, files = read_collapsed(config, needed, gather)
    check_marked(config, needed)
    return code_rows(read, config, files)


def _read_with(config: Config, more: Sequence[str] | None, gather: Gather) -> tuple[Rows, pd.DataFrame]:
    """Load the rows in parts, and their cells as numbers of the distinct ones."""
    schema = config.checked_schema
    needed = list(dict.fromkeys([*schema.columns, *schema.subject_columns]))
    wanted = list(dict.fromkeys([*needed, *more])) if more is not None else source_columns(config)
    read, files = read_collapsed(config, needed, gather, [name for name in wanted if name not in needed])
    check_marked(config, wanted)
    rows = code_rows(read, config, files)
    return rows, blank_missing(frame_of(read, as_positions(rows.source_row))[wanted], config.data.missing)


def check_marked(config: Config, columns: Sequence[str]) -> None:
    """Refuse marks of missing cells for columns that nobody reads."""
    for column in config.data.missing if isinstance(config.data.missing, Mapping) else ():
        if column not in columns:
            raise unknown("data.missing: column", column, columns)


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
