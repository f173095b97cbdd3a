"""Rows as they were read, each distinct combination of cells once; what was read apart is merged in any grouping."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.inputs.arrow import to_frame
from dit_dask.inputs.local_pieces import LocalPieces, renumber
from dit_dask.storage import scratch
from dit_dask.values.arrays import Codes, Ints, Positions, RowNumbers, count_values
from dit_dask.values.pieces import RowPiece, RowPieces
from dit_dask.values.table import LARGEST_KEY, rank_rows

if TYPE_CHECKING:
    import pandas as pd

FAN_IN = 8
FEWEST_HASHED = 100_000  # rows that are worth loading a kernel


@dataclass(frozen=True, eq=False)
class CollapsedRows:
    """For each column its distinct cells; for each combination the place of its cell or -1, its rows, and the first of them.

    The pieces are all that is as long as the table. A row's number in a piece stands for the combination that `maps` has for
    it, or is that of the combination where this is None. Cells may be listed that no row has. `beside` has further columns of
    the same rows, each alone, so that they make no more combinations. `notes` say how a part was read, if nobody has heard it.
    """

    names: tuple[str, ...]
    cells: tuple[pd.Series[Any], ...]
    codes: tuple[Codes, ...]
    counts: Ints
    first: Ints
    pieces: RowPieces
    maps: tuple[Codes | None, ...] = (None,)
    beside: tuple[CollapsedRows, ...] = ()
    notes: tuple[str, ...] = ()

    def __sizeof__(self) -> int:  # Dask runs tasks where their largest arguments are
        return sum(map(sys.getsizeof, (*self.pieces.handles, *self.codes, self.counts, self.first, *self.beside)))

    @property
    def combinations(self) -> int:
        """How many there are."""
        return len(self.codes[0])

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(self.pieces.sizes)


def collapse_frame(frame: pd.DataFrame, names: Sequence[str], beside: Sequence[str] = ()) -> CollapsedRows:
    """Collapse the rows of a frame, seen in some columns, with others beside them."""
    pairs = [_number_cells(frame[name]) for name in names]
    collapsed = _collapse(names, [cells for _, cells in pairs], [codes for codes, _ in pairs], len(frame))
    return replace(collapsed, beside=tuple(collapse_frame(frame, [name]) for name in beside))


def collapse_blocks(content: Any, names: Sequence[str], beside: Sequence[str] = ()) -> CollapsedRows:
    """Collapse the rows of an Arrow table, seen in some columns, with others beside them."""
    import pyarrow as pa

    codes, cells = [], []
    for name in names:
        column = content.column(name)
        if _is_plain(column.type):
            coded = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            places = [np.asarray(chunk.indices.fill_null(-1)).astype(np.int32, copy=False) for chunk in coded.chunks]
            first = coded.chunk(0).dictionary if coded.num_chunks else pa.array([], column.type)
            place = np.concatenate(places) if places else np.empty(0, np.int32)
            distinct = _to_series(name, first, content.schema.metadata)
            if pa.types.is_dictionary(column.type) or pa.types.is_floating(column.type):  # which may list equal values
                number, distinct = _number_cells(distinct)
                place = np.append(number, np.int32(-1))[place]
            codes.append(place)
            cells.append(distinct)
        else:
            place, distinct = _number_cells(_to_series(name, column, content.schema.metadata))
            codes.append(place)
            cells.append(distinct)
    collapsed = _collapse(names, cells, codes, content.num_rows)
    return replace(collapsed, beside=tuple(collapse_blocks(content, [name]) for name in beside))


def _is_plain(kind: Any) -> bool:
    """Tell whether the cells of an Arrow column are single values that Arrow can number."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind) or pa.types.is_interval(kind))


def _to_series(name: str, values: Any, metadata: Any) -> pd.Series[Any]:
    import pyarrow as pa

    return to_frame(pa.table({name: values}).replace_schema_metadata(metadata))[name]


def _number_cells(column: pd.Series[Any]) -> tuple[Codes, pd.Series[Any]]:
    """Number the cells of a column in the order in which they first appear, -1 where there is none."""
    import pandas as pd

    if column.dtype != object:
        if pd.api.types.is_float_dtype(column.dtype):
            column = column + 0.0  # -0.0 and 0.0 are one value, and read the same whichever row comes first
        places, known = pd.factorize(column)
        return places.astype(np.int32), pd.Series(known, name=column.name)
    present = column.notna().to_numpy(bool)
    cells = column[present]
    kinds = {type(cell) for cell in cells}
    if any(not issubclass(kind, Hashable) for kind in kinds):
        first = next(type(cell) for cell in cells if not isinstance(cell, Hashable))
        raise InputError(f"column {str(column.name)!r} must hold single values; got values of type {first.__name__}")
    if len(kinds) > 1:  # 1 and True are equal, and not the same
        cells = pd.Series([(type(cell).__name__, cell) for cell in cells], dtype=object)
    numbers, distinct = pd.factorize(cells)
    codes: Codes = np.full(len(column), -1, np.int32)
    codes[present] = numbers
    single = [cell for _, cell in distinct] if len(kinds) > 1 else distinct
    return codes, pd.Series(single, dtype=object, name=column.name)


def _collapse(names: Sequence[str], cells: Sequence[pd.Series[Any]], codes: Sequence[Codes], rows: int) -> CollapsedRows:
    index = scratch.empty(rows, np.int32)
    first = number_rows(codes, index)
    counts, pieces = count_values(index, len(first)), LocalPieces((RowPiece(index, RowNumbers(rows)),))
    return CollapsedRows(
        tuple(names), tuple(cells), tuple(column[first] for column in codes), counts, first.astype(np.int64), pieces
    )


def number_rows(columns: Sequence[Codes], number: Codes) -> Codes:
    """Write to number[n] which distinct row each is, in the order in which they first appear; return the first row of each.

    Codes are -1 where there is no cell.
    """
    if len(number) < FEWEST_HASHED:
        rank, first_of_rank = rank_rows([column + 1 for column in columns])
        order = np.argsort(first_of_rank)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        number[:] = place[rank]
        return first_of_rank[order].astype(np.int32)
    from dit_dask.kernels.combinations import extend_keys, number_keys

    keys, first, size = np.zeros(len(number), np.int64), np.empty(len(number), np.int32), 1
    for column in columns:
        levels = int(column.max(initial=-1)) + 2
        if size * levels > LARGEST_KEY:  # the rows so far are fewer than their possible keys
            size = number_keys(keys, number, first)
            keys[:] = number
        extend_keys(keys, column, levels)
        size *= levels
    found = number_keys(keys, number, first)
    return first[:found].copy()


def rewrite(rows: CollapsedRows, place: int, cells: pd.Series[Any]) -> CollapsedRows:
    """Write the cells of a column in another way, in which some may be equal."""
    number, known = _number_cells(cells)
    codes = np.append(number, np.int32(-1))[rows.codes[place]]
    every, written = list(rows.codes), list(rows.cells)
    every[place], written[place] = codes, known
    return replace(rows, cells=tuple(written), codes=tuple(every))


def merge(parts: Sequence[CollapsedRows], where: str) -> CollapsedRows:
    """Put rows that were read apart together, in their order; no row is looked at."""
    if len(parts) == 1:
        return parts[0]
    names = parts[0].names
    cells, codes = [], []
    for place, name in enumerate(names):
        known, numbers = _merge_cells(name, [part.cells[place] for part in parts], where)
        cells.append(known)
        codes.append(np.concatenate([number[part.codes[place]] for number, part in zip(numbers, parts, strict=True)]))
    combination = np.empty(len(codes[0]), np.int32)
    chosen = number_rows(codes, combination)
    counts = np.bincount(combination, np.concatenate([part.counts for part in parts]), len(chosen)).astype(np.int64)
    starts, ends = np.cumsum([0, *(part.rows for part in parts)]), np.cumsum([0, *(part.combinations for part in parts)])
    first = np.concatenate([part.first + start for part, start in zip(parts, starts, strict=False)])[chosen]
    maps = []
    for part, (start, stop) in zip(parts, pairwise(ends), strict=True):
        merged = combination[start:stop]
        maps += [merged if own is None else merged[own] for own in part.maps]
    pieces = parts[0].pieces.join([part.pieces for part in parts[1:]])
    beside = tuple(merge(further, where) for further in zip(*(part.beside for part in parts), strict=True))
    columns = tuple(column[chosen] for column in codes)
    return CollapsedRows(names, tuple(cells), columns, counts, first, pieces, tuple(maps), beside)


def as_one_piece(rows: CollapsedRows) -> CollapsedRows:
    """The same with the combination of every row in one array, in a scratch file if it is large."""
    if len(rows.maps) > 1:
        index, start = scratch.empty(rows.rows, np.int32), 0
        for piece, own in zip(rows.pieces.handles, rows.maps, strict=True):
            renumber(piece.number, own, index[start : start + len(piece)])
            start += len(piece)
        rows = replace(rows, pieces=LocalPieces((RowPiece(index, RowNumbers(len(index))),)), maps=(None,))
    return replace(rows, beside=tuple(map(as_one_piece, rows.beside)))


def frame_of(rows: CollapsedRows, chosen: Positions | None = None) -> pd.DataFrame:
    """The cells of all columns in some rows, or in all of them."""
    import pandas as pd

    positions = RowNumbers(rows.rows) if chosen is None else chosen
    names = [name for group in (rows, *rows.beside) for name in group.names]
    return pd.DataFrame({name: cells_of(rows, name, positions) for name in names})


def cells_of(rows: CollapsedRows, name: str, chosen: Positions) -> pd.Series[Any]:
    """The cells of a column in some rows: texts as categories, in a few bytes a cell, others as they were read."""
    import pandas as pd

    group = next(one for one in (rows, *rows.beside) if name in one.names)
    place = group.names.index(name)
    cells = group.cells[place]
    codes = group.codes[place].astype(np.min_scalar_type(-len(cells) - 1))
    number, start = np.empty(group.rows, codes.dtype), 0
    for piece, own in zip(group.pieces.handles, group.maps, strict=True):
        number[start : start + len(piece)] = (codes if own is None else codes[own])[piece.number]
        start += len(piece)
    if len(chosen) < len(number):
        number = number[np.asarray(chosen)]
    if pd.api.types.is_string_dtype(cells.dtype):
        return pd.Series(pd.Categorical.from_codes(number, categories=pd.Index(cells)), name=name)
    if cells.dtype.kind in "iub" and (number < 0).any():  # an empty cell must not turn large integers into floats
        cells = cells.astype(object)
    taken = pd.api.extensions.take(cells.array, number, allow_fill=True)
    return pd.Series(taken, name=name)


def _merge_cells(name: str, parts: Sequence[pd.Series[Any]], where: str) -> tuple[pd.Series[Any], list[Codes]]:
    """Return the distinct cells of all parts, and for each part the places of its cells, with -1 as the last."""
    import pandas as pd

    filled = [part for part in parts if len(part)] or parts[:1]  # a part without a value has no type
    kinds = {part.dtype for part in filled}
    if len(kinds) > 1:
        if not all(_are_integers(part) for part in filled):
            raise InputError(f"{where}: the column {name!r} is {' and '.join(sorted(map(str, kinds)))} in different files")
        filled = [part.astype(object) for part in filled]  # exact, whatever their widths
    every = filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=True).rename(name)
    place, known = _number_cells(every)
    ends = np.cumsum([0, *(len(part) for part in parts)])
    absent = np.full(1, -1, np.int32)
    return known, [np.append(place[start:stop], absent) for start, stop in pairwise(ends)]


def _are_integers(cells: pd.Series[Any]) -> bool:
    """Tell whether cells are integers of one width, or of several that were merged before."""
    import pandas as pd

    return pd.api.types.is_integer_dtype(cells.dtype) or (cells.dtype == object and all(type(cell) is int for cell in cells))


class Merger:
    """Puts parts together as they come, in their order: never many at once, and each combination a few times only.

    `into_one`: their rows, too, so that no more than a few pieces are there.
    """

    def __init__(self, where: str, *, into_one: bool = False) -> None:
        self._where, self._into_one = where, into_one
        self._levels: list[list[CollapsedRows]] = []

    def add(self, part: CollapsedRows) -> None:
        """Take the next part."""
        level = 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            self._levels[level].append(part)
            if len(self._levels[level]) < FAN_IN:
                return
            part = self._merge(self._levels[level])
            self._levels[level] = []
            level += 1

    def merged(self) -> CollapsedRows:
        """All parts together."""
        parts = [part for level in reversed(self._levels) for part in level]
        self._levels = []
        return self._merge(parts)

    def _merge(self, parts: Sequence[CollapsedRows]) -> CollapsedRows:
        merged = merge(parts, self._where)
        return as_one_piece(merged) if self._into_one else merged
