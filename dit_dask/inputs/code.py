"""From cells to codes: which rows are used, the values of each attribute, and the distinct records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.data import DROP_ROWS
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.collapsed import CollapsedRows
from dit_dask.inputs.encode import Column
from dit_dask.inputs.kinds import encode_attribute, has_scale
from dit_dask.inputs.local_pieces import LocalPieces, as_one, keep_rows
from dit_dask.inputs.sensitive import encode_sensitive, join_members
from dit_dask.inputs.subject import check_ids
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Bools, Codes, Ints, RowNumbers
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.pieces import NUMBER, ROW, PieceColumn, RowIndex, RowPieces, SourceRows, count_numbers, first_rows
from dit_dask.values.schema import Schema
from dit_dask.values.table import Rows, collapse, count_persons

if TYPE_CHECKING:
    import pandas as pd


def code_rows(read: CollapsedRows, config: Config, files: tuple[str, ...]) -> Rows:
    """Choose the rows under audit and code them; nothing here is as long as the table but the pieces."""
    schema = config.checked_schema
    if not read.rows:
        raise InputError(f"data: {source_name(config)} has no rows")
    kept = _category_columns(config)
    missing = {name: _missing_places(read, place, config) for place, name in enumerate(read.names)}
    is_complete = np.ones(read.combinations, bool)
    for name in schema.columns:
        if name not in kept:
            is_complete &= ~missing[name][read.codes[read.names.index(name)]]
    used, dropped = _use(read, is_complete, missing, config)
    attributes, codes = [], np.empty((used.combinations, len(schema.quasi_identifiers)), np.int32)
    for position, (name, described) in enumerate(schema.quasi_identifiers.items()):
        attribute, cell_codes = encode_attribute(used.column(name), described, config)
        codes[:, position] = used.spread(name, cell_codes, len(attribute.levels) - 1)
        attributes.append(attribute)
    members = {}
    for one in schema.members:
        secret, cell_codes = encode_sensitive(used.column(one.column), one, config)
        members[one.name] = secret, used.spread(one.column, cell_codes, len(secret.levels) - 1)
    person, doubts = (None, ()) if schema.subject is None else _number_persons(used, schema.subject)
    loaded = []
    for each in schema.secrets:
        secret, secret_codes = join_members(each, members)
        whole = Schema(tuple(attributes), secret, schema.subject)
        table, record = collapse(whole, codes, secret_codes, person, used.rows)
        index, source_row = used.index_of(record, table.distinct)
        loaded.append(Rows(table, index, read.rows, dropped, count_persons(table), files, None, source_row, doubts))
    return replace(loaded[0], further=tuple(loaded[1:]))


@dataclass(frozen=True, eq=False)
class UsedRows:
    """The rows under audit: chosen[m] are the combinations that some have, rows[m] how many; `maps` as in CollapsedRows.

    The rows of piece p are shifted by starts[p] to be positions in the source.
    """

    read: CollapsedRows
    chosen: Ints
    rows: Ints
    pieces: RowPieces
    maps: Sequence[Codes | None]
    starts: Sequence[int]
    missing: Mapping[str, Bools]

    @property
    def combinations(self) -> int:
        """How many combinations some used row has."""
        return len(self.chosen)

    def places(self, name: str) -> Codes:
        """Return (combinations,): the place of each one's cell of a column, -1 where it is empty."""
        codes: Codes = self.read.codes[self.read.names.index(name)][self.chosen]
        return codes

    def column(self, name: str) -> Column:
        """The cells of a column that used rows have."""
        counts, is_missing = self.counts(name)
        if not counts.any():
            raise InputError(f"column {name!r} has no value in any used row")
        cells, present = self.read.cells[self.read.names.index(name)], np.flatnonzero(counts)
        own = cells if len(present) == len(cells) else cells.iloc[present].reset_index(drop=True)

        def first_row(wanted: Bools) -> int:
            chosen = np.zeros(len(cells) + 1, bool)
            chosen[present[wanted]] = True
            return self.first_row(chosen[self.places(name)])

        return Column(name, own, counts[present], bool(is_missing.any()), first_row)

    def counts(self, name: str) -> tuple[Ints, Bools]:
        """Return how many used rows have each cell of a column, and (combinations,) whether the cell is missing."""
        places, cells = self.places(name), self.read.cells[self.read.names.index(name)]
        is_missing = self.missing[name][places]
        counts = np.bincount(places[~is_missing], self.rows[~is_missing], len(cells)).astype(np.int64)
        return counts, is_missing

    def spread(self, name: str, codes: Codes, missing: int) -> Codes:
        """Return (combinations,) the codes of the cells of `column(name)`; a missing cell has a code of its own."""
        counts, _ = self.counts(name)
        of_cell = np.full(len(counts) + 1, missing, np.int32)
        of_cell[np.flatnonzero(counts)] = codes
        return of_cell[self.places(name)]

    def first_row(self, wanted: Bools) -> int:
        """The first used row that has one of some combinations."""
        return int(self.first_rows[wanted].min())

    @cached_property
    def first_rows(self) -> Ints:
        """Return (combinations,): the first used row that has each."""
        if self.pieces is self.read.pieces:
            return self.read.first[self.chosen]
        found = np.full(self.read.combinations, sum(self.pieces.sizes), np.int64)
        begins = np.cumsum([0, *self.pieces.sizes])[:-1].tolist()
        for numbers, first in reversed(self.pieces.collect(first_rows, [(begin,) for begin in begins])):
            found[numbers] = first
        return found[self.chosen]

    def index_of(self, record: Ints, size: int) -> tuple[RowIndex, SourceRows]:
        """Return the record of each row's combination, and the row's position in the source, wherever the pieces are."""
        of_combination = np.zeros(self.read.combinations, np.int32)
        of_combination[self.chosen] = record
        codes = [of_combination if own is None else of_combination[own] for own in self.maps]
        pieces = self.pieces.convert(keep_rows, list(zip(codes, self.starts, strict=True)))
        is_whole = sum(pieces.sizes) == self.read.rows
        if isinstance(pieces, LocalPieces):
            piece = as_one(pieces.handles)
            return piece.number, RowNumbers(len(piece)) if is_whole else piece.row
        index = PieceColumn(pieces, NUMBER, size)
        return index, RowNumbers(len(index)) if is_whole else replace(index, column=ROW)


def _missing_places(read: CollapsedRows, place: int, config: Config) -> Bools:
    """Return (cells + 1,): whether each cell of a column is missing; the last stands for empty ones."""
    name = read.names[place]
    return np.append(missing_cells(read.cells[place].to_frame(name), [name], config.data.missing), True)


def _use(read: CollapsedRows, is_complete: Bools, missing: Mapping[str, Bools], config: Config) -> tuple[UsedRows, int]:
    """Choose the rows under audit; also return how many are incomplete."""
    complete = int(read.counts[is_complete].sum())
    chosen = choose_rows(complete, config)
    pieces, maps, counts = read.pieces, read.maps, read.counts
    starts: Sequence[int] = np.cumsum([0, *pieces.sizes])[:-1].tolist()
    if complete < read.rows:
        numbers = np.where(is_complete, np.arange(read.combinations, dtype=np.int32), np.int32(-1))
        codes = [numbers if own is None else numbers[own] for own in maps]
        pieces = pieces.convert(keep_rows, list(zip(codes, starts, strict=True)))
        maps, starts = (None,) * len(maps), [0] * len(starts)
    if chosen is not None:
        spans = zip(np.cumsum([0, *pieces.sizes]).tolist(), pieces.sizes, maps, starts, strict=False)
        arguments = [(own, start, _within(chosen, first, size)) for first, size, own, start in spans]
        pieces = pieces.convert(keep_rows, arguments)
        maps, starts = (None,) * len(maps), [0] * len(starts)
    if pieces is not read.pieces:
        counts = np.zeros(read.combinations, np.int64)
        for present, rows in pieces.collect(count_numbers, [()] * len(maps)):
            counts[present] += rows
    present = np.flatnonzero(counts)
    return UsedRows(read, present, counts[present], pieces, maps, starts, missing), read.rows - complete


def _within(chosen: Ints | slice, first: int, size: int) -> Ints | slice:
    """Those of the chosen rows that are in a piece of so many rows, counted from its first."""
    if isinstance(chosen, slice):
        return slice(0, int(np.clip(chosen.stop - first, 0, size)))
    return chosen[slice(*np.searchsorted(chosen, (first, first + size)))] - first


def choose_rows(complete: int, config: Config) -> Ints | slice | None:
    """Choose of so many complete rows, in file order: their numbers, the first so many, or None for all."""
    if not complete:
        raise InputError(f"data: no complete row: every row of {source_name(config)} misses a used value")
    limit, sample = config.data.limit, config.data.sample
    size = limited = complete if limit is None else min(limit, complete)
    if sample is not None:
        if sample.rows > size:
            raise InputError(f"data.sample.rows must be at most the {size} complete rows; got {sample.rows}")
        size = sample.rows
    if size < 2:
        raise InputError("data: at least 2 complete rows are needed to remove one; got 1")
    if sample is not None:
        return np.sort(seeds.stream(sample.seed, "data.sample").choice(limited, size, replace=False))
    return None if size == complete else slice(0, size)


def _number_persons(used: UsedRows, name: str) -> tuple[Ints | None, tuple[str, ...]]:
    """Return (combinations,) the persons, in the order in which they first appear, or None where nobody has several rows."""
    counts, is_missing = used.counts(name)
    cells = used.read.cells[used.read.names.index(name)]
    if is_missing.any():
        column = Column(name, cells, counts, True, used.first_row)
        check_ids(column, int(used.rows[is_missing].sum()), lambda: used.first_row(is_missing))
    repeated, doubts = check_ids(used.column(name), 0, lambda: 0)
    if not repeated:
        return None, doubts
    places, first = used.places(name), np.full(len(cells), sum(used.pieces.sizes), np.int64)
    np.minimum.at(first, places, used.first_rows)
    present = np.flatnonzero(counts)
    number = np.zeros(len(cells), np.int64)
    number[present[np.argsort(first[present])]] = np.arange(len(present))
    return number[places], doubts


def _category_columns(config: Config) -> set[str]:
    """The columns whose missing cells are a category; numbers, orders and dates on a scale have no place for one."""
    if config.data.missing_as == DROP_ROWS:
        return set()
    schema = config.checked_schema
    on_trees = {name for name, described in schema.quasi_identifiers.items() if not has_scale(described)}
    return on_trees | {member.column for member in schema.members} - (set(schema.quasi_identifiers) - on_trees)


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


def source_name(config: Config) -> str:
    """The source as messages may show it."""
    return public_url(config.data.url)
