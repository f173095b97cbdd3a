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
from dit_dask.inputs.sensitive import encode_sensitive, join_members
from dit_dask.inputs.subject import check_ids
from dit_dask.storage import scratch
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Bools, Codes, Ints, Positions, RowNumbers, blocks, count_values, first_positions
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.schema import Schema
from dit_dask.values.table import Rows, collapse, count_persons

if TYPE_CHECKING:
    import pandas as pd


def code_rows(read: CollapsedRows, config: Config, files: tuple[str, ...], *, in_place: bool = True) -> Rows:
    """Choose the rows under audit and code them; nothing here is as long as the table but what is in scratch files.

    In place, `read` is of no use afterwards.
    """
    schema = config.checked_schema
    if not len(read.index):
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
    for place, each in enumerate(schema.secrets):
        secret, secret_codes = join_members(each, members)
        whole = Schema(tuple(attributes), secret, schema.subject)
        table, record = collapse(whole, codes, secret_codes, person, used.rows)
        index = used.index_of(record, in_place=in_place and place + 1 == len(schema.secrets))
        loaded.append(Rows(table, index, len(read.index), dropped, count_persons(table), files, None, used.source_row, doubts))
    return replace(loaded[0], further=tuple(loaded[1:]))


@dataclass(frozen=True, eq=False)
class UsedRows:
    """The rows under audit: chosen[m] are the combinations that some have, rows[m] how many, index[n] that of each."""

    read: CollapsedRows
    chosen: Ints
    rows: Ints
    index: Codes
    source_row: Positions
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
        return first_positions(self.index, self.read.combinations)[self.chosen]

    def index_of(self, record: Ints, *, in_place: bool) -> Codes:
        """Return (used rows,): the record of each row's combination; in place, in the array of the combinations."""
        of_combination = np.zeros(self.read.combinations, np.int32)
        of_combination[self.chosen] = record
        found = self.index if in_place else scratch.empty(len(self.index), np.int32)
        for block in blocks(len(found)):
            found[block] = of_combination[self.index[block]]
        return found


def _missing_places(read: CollapsedRows, place: int, config: Config) -> Bools:
    """Return (cells + 1,): whether each cell of a column is missing; the last stands for empty ones."""
    name = read.names[place]
    return np.append(missing_cells(read.cells[place].to_frame(name), [name], config.data.missing), True)


def _use(read: CollapsedRows, is_complete: Bools, missing: Mapping[str, Bools], config: Config) -> tuple[UsedRows, int]:
    """Choose the rows under audit; also return how many are incomplete."""
    counts = count_values(read.index, read.combinations)
    complete = int(counts[is_complete].sum())
    chosen = choose_rows(complete, config)
    source: Positions = RowNumbers(len(read.index))
    index = read.index
    if chosen is not None or complete < len(read.index):
        index, source = _take(read.index, is_complete, chosen, complete)
        counts = count_values(index, read.combinations)
    present = np.flatnonzero(counts)
    return UsedRows(read, present, counts[present], index, source, missing), len(read.index) - complete


def _take(index: Codes, is_complete: Bools, chosen: Ints | slice | None, complete: int) -> tuple[Codes, Ints]:
    """Return the combinations and the positions of the chosen ones among the complete rows."""
    if chosen is None:
        chosen = slice(0, complete)
    size = chosen.stop if isinstance(chosen, slice) else len(chosen)
    taken, source = scratch.empty(size, np.int32), scratch.empty(size, np.int64)
    seen = done = 0
    for block in blocks(len(index)):
        inside = np.flatnonzero(is_complete[index[block]])
        if isinstance(chosen, slice):
            picked = inside[: max(0, chosen.stop - seen)]
        else:
            picked = inside[chosen[slice(*np.searchsorted(chosen, (seen, seen + len(inside))))] - seen]
        source[done : done + len(picked)] = picked + block.start
        taken[done : done + len(picked)] = index[block][picked]
        seen, done = seen + len(inside), done + len(picked)
    return taken, source


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
    places, first = used.places(name), np.full(len(cells), len(used.index), np.int64)
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
