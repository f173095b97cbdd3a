"""Rows of a table with their cells as they were read, equal rows once: what measures and `dit risk` count."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.code import choose_rows, code_rows, source_name
from dit_dask.inputs.collapsed import CollapsedRows, as_one_piece, frame_of, number_rows
from dit_dask.inputs.columns import source_columns
from dit_dask.inputs.load import blank_missing, check_marked, load_with
from dit_dask.inputs.partitions import Gather, gather_here, read_collapsed
from dit_dask.inputs.read import check_names
from dit_dask.storage import scratch
from dit_dask.values.arrays import Bools, Codes, Ints, Positions, RowNumbers, blocks, count_values, first_positions
from dit_dask.values.pieces import as_positions
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd

MOST_DISTINCT = 0.25  # of the rows: what has more distinct cells is kept apart, or it would make nearly every row distinct


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows that stand for others: index[n] is the row of `frame` that has the cells of each row of the table.

    They are in the order in which they first appear. Rows of a frame of Python stand each for itself.
    """

    frame: pd.DataFrame
    index: Codes

    @classmethod
    def of(cls, frame: pd.DataFrame) -> CountedRows:
        """Rows of a frame, each for itself."""
        return cls(frame, np.arange(len(frame), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def is_collapsed(self) -> bool:
        """Whether any row stands for several."""
        return len(self.frame) < len(self.index)

    @cached_property
    def counts(self) -> Ints:
        """Return (rows of the frame,): how many rows each stands for."""
        return count_values(self.index, len(self.frame))

    @cached_property
    def first(self) -> Ints:
        """Return (rows of the frame,): the first row that each stands for."""
        return first_positions(self.index, len(self.frame))

    def expand(self) -> pd.DataFrame:
        """All rows."""
        return self.frame.iloc[self.index].reset_index(drop=True) if self.is_collapsed else self.frame

    def only(self, kept: Bools) -> CountedRows:
        """Some of the rows of the table."""
        if not self.is_collapsed:
            return CountedRows.of(self.frame[kept].reset_index(drop=True))
        index = np.empty(int(np.count_nonzero(kept)), np.int32)
        first = number_rows([self.index[kept]], index)
        return CountedRows(self.frame.iloc[self.index[kept][first]].reset_index(drop=True), index)


def collapse_rows(read: CollapsedRows, chosen: Positions, marks: Any) -> CountedRows:
    """Collapse some of the rows that were read as one piece, seen in all columns, also those beside."""
    index = scratch.empty(len(chosen), np.int32)
    first = np.zeros(0, np.int32)
    for place, group in enumerate((read, *read.beside)):
        (piece,) = group.pieces.handles
        codes = piece.number if len(chosen) == len(piece) else _take(piece.number, chosen)
        first = number_rows([index, codes] if place else [codes], index)
    return CountedRows(blank_missing(frame_of(read, np.asarray(chosen[first])), marks), index)


def _take(codes: Codes, chosen: Positions) -> Codes:
    taken = scratch.empty(len(chosen), np.int32)
    for block in blocks(len(taken)):
        taken[block] = codes[chosen[block]]
    return taken


def load_counted(
    config: Config,
    more: Sequence[str] | None,
    frame: pd.DataFrame | None = None,
    others: Sequence[str] | None = None,
    gather: Gather = gather_here,
) -> tuple[Rows, CountedRows]:
    """Load what `load_with` does; equal rows of a source are collapsed where nothing else needs them one by one."""
    if frame is not None or others is not None:
        rows, cells = load_with(config, more, frame, others)
        return rows, CountedRows.of(cells)
    schema = config.checked_schema
    needed = list(dict.fromkeys([*schema.columns, *schema.subject_columns]))
    wanted = list(dict.fromkeys([*needed, *more])) if more is not None else source_columns(config)
    read, files = read_collapsed(config, needed, gather, [name for name in wanted if name not in needed])
    check_marked(config, wanted)
    read = as_one_piece(read)
    rows = code_rows(read, config, files)
    counted = collapse_rows(read, as_positions(rows.source_row), config.data.missing)
    return rows, replace(counted, frame=counted.frame[wanted])


def load_all_counted(config: Config, named: Sequence[str], without: Container[str]) -> tuple[list[str], list[CountedRows]]:
    """Load the columns of the source, those named among them; also return their names, in order.

    The rows are seen in the columns of the schema and those of few distinct cells together, and in each other one alone. They
    need not be complete; limit and sample choose of all.
    """
    every = source_columns(config)
    check_names(every, [*every, *named], "data")
    names = [name for name in every if name not in without]
    if not names:
        raise InputError("risk needs at least one column; every column is left out")
    own = [] if config.schema is None else [name for name in names if name in config.schema.columns]
    together = own or names[:1]  # an audit of the schema needs these together, too
    read = as_one_piece(read_collapsed(config, together, beside=[name for name in names if name not in together])[0])
    rows = read.rows
    if not rows:
        raise InputError(f"data: {source_name(config)} has no rows")
    chosen = choose_rows(rows, config)
    positions: Positions = chosen if isinstance(chosen, np.ndarray) else RowNumbers(rows if chosen is None else chosen.stop)
    groups = [replace(read, beside=()), *read.beside]
    few = [group for group in groups if group.combinations <= MOST_DISTINCT * len(positions)]
    apart = [group for group in groups if group.combinations > MOST_DISTINCT * len(positions)]
    if few:
        apart.insert(0, replace(few[0], beside=tuple(few[1:])))
    return names, [collapse_rows(group, positions, config.data.missing) for group in apart]
