"""Rows in pieces that are kept where they were read, and what is known of all of them without bringing them here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dit_dask.values.arrays import (
    Codes,
    Ints,
    Positions,
    RowNumbers,
    blocks,
    count_values,
    first_positions,
    join_numbers,
    stretch_of,
)

HASHED_ROWS = 65_536  # of which each block has a digest of its own, wherever a piece begins
NUMBER, ROW = "number", "row"


@dataclass(frozen=True, eq=False)
class RowPiece:
    """Consecutive rows: the number of each, that of its combination or of its record, and its position in the source."""

    number: Ints | Codes
    row: Positions

    def __len__(self) -> int:
        return len(self.number)

    def __sizeof__(self) -> int:  # Dask runs tasks where their largest arguments are
        return self.number.nbytes + (self.row.nbytes if isinstance(self.row, np.ndarray) else 0)

    def cut(self, rows: slice) -> RowPiece:
        """Some consecutive rows; a view."""
        return RowPiece(self.number[rows], stretch_of(self.row, rows))


class RowPieces(Protocol):
    """Pieces of rows in their order, in this process or on workers."""

    @property
    def sizes(self) -> Sequence[int]:
        """How many rows each has."""
        ...

    @property
    def handles(self) -> Sequence[Any]:
        """What stands for each as an argument of a task."""
        ...

    def convert(self, function: Callable[..., RowPiece], arguments: Sequence[tuple[Any, ...]]) -> RowPieces:
        """Make other pieces, which stay where these are; the function gets a piece and its arguments."""
        ...

    def collect(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Bring here what a function makes of each piece and its arguments; None where it has no arguments."""
        ...

    def join(self, others: Sequence[Any]) -> RowPieces:
        """These pieces and those of others of the same kind."""
        ...


@dataclass(frozen=True, eq=False)
class PieceColumn:
    """What pieces that are kept elsewhere know of each row, as an array would: rows are brought here when they are asked for.

    `recoded` are other numbers in place of those that the pieces have; there are `size` different ones.
    """

    pieces: RowPieces
    column: str
    size: int
    recoded: Ints | Codes | None = None

    @cached_property
    def starts(self) -> Ints:
        """Return (pieces + 1,): the first row of each, and behind the last one."""
        return np.cumsum([0, *self.pieces.sizes])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found: NDArray[Any] = self[:]
        return found if dtype is None else found.astype(dtype, copy=False)

    def __getitem__(self, chosen: Any) -> Any:
        if isinstance(chosen, slice):
            rows = range(*chosen.indices(len(self)))
            if not len(rows):
                return np.empty(0, np.int64)
            low, high = min(rows[0], rows[-1]), max(rows[0], rows[-1]) + 1
            found = self._recode(self._stretch(low, high))
            return found if rows.step == 1 else found[np.asarray(rows) - low]
        places = np.asarray(chosen)
        if places.dtype == bool:
            places = np.flatnonzero(places)
        if ((places < 0) | (places >= len(self))).any():
            raise IndexError(f"row numbers must be below {len(self)}")
        flat = np.atleast_1d(places)
        order = np.argsort(flat, kind="stable")
        ends = np.searchsorted(flat[order], self.starts)
        spans = [flat[order[low:high]] - start for (low, high), start in zip(pairwise(ends), self.starts, strict=False)]
        parts = self.pieces.collect(take_rows, [(span, self.column) if len(span) else None for span in spans])
        taken = np.empty(len(flat), np.int64)
        taken[order] = np.concatenate([part for part in parts if part is not None] or [taken])
        return self._recode(taken).reshape(places.shape)[()]

    def _recode(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers if self.recoded is None else self.recoded[numbers]

    def spans(self, start: int, stop: int) -> list[tuple[int, slice]]:
        """The pieces that have some consecutive rows, and where those are in each."""
        first = int(np.searchsorted(self.starts, start, "right")) - 1
        found = []
        for place in range(first, len(self.starts) - 1):
            low, high = (int(np.clip(row - self.starts[place], 0, self.pieces.sizes[place])) for row in (start, stop))
            if low < high:
                found.append((place, slice(low, high)))
            if self.starts[place + 1] >= stop:
                break
        return found

    def _stretch(self, start: int, stop: int) -> NDArray[Any]:
        wanted = dict(self.spans(start, stop))
        arguments = [(wanted[place], self.column) if place in wanted else None for place in range(len(self.pieces.sizes))]
        return np.concatenate([part for part in self.pieces.collect(read_rows, arguments) if part is not None])

    def recode(self, codes: Ints | Codes, size: int) -> PieceColumn:
        """The same with codes[m] in place of each number m."""
        return PieceColumn(self.pieces, self.column, size, codes if self.recoded is None else codes[self.recoded])

    @cached_property
    def figures(self) -> IndexFigures:
        """What is known of all rows; asked for once."""
        if self.recoded is None:
            return join_figures(
                self.pieces.collect(describe_piece, [(int(start),) for start in self.starts[:-1]]), self.size, len(self)
            )
        base = PieceColumn(self.pieces, self.column, len(self.recoded)).figures
        first = np.full(self.size, len(self), np.int64)
        np.minimum.at(first, self.recoded, base.first)
        return IndexFigures(first, base.digest + hashlib.sha256(np.ascontiguousarray(self.recoded, np.int64).data).digest())


RowIndex: TypeAlias = Ints | Codes | PieceColumn
SourceRows: TypeAlias = Positions | PieceColumn


def read_rows(piece: RowPiece, rows: slice, column: str) -> NDArray[Any]:
    """Return a column of some consecutive rows of a piece."""
    return piece.number[rows] if column == NUMBER else np.asarray(stretch_of(piece.row, rows))


def take_rows(piece: RowPiece, places: Ints, column: str) -> NDArray[Any]:
    """Return a column of some rows of a piece."""
    found: NDArray[Any] = piece.number[places] if column == NUMBER else piece.row[places]
    return found


def cut_piece(piece: RowPiece, rows: slice) -> RowPiece:
    """Some consecutive rows of a piece."""
    return piece.cut(rows)


def join_pieces(pieces: Sequence[RowPiece]) -> RowPiece:
    """Consecutive pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    row = join_numbers([piece.row for piece in pieces])
    number = np.concatenate([piece.number for piece in pieces])
    return RowPiece(number, np.concatenate([np.asarray(piece.row) for piece in pieces]) if row is None else row)


class IndexFigures(NamedTuple):
    """first[m] is the first row that has each number, or how many rows there are; a digest of all numbers in their order."""

    first: Ints
    digest: bytes


class PieceFigures(NamedTuple):
    """Of a piece: its numbers with the first row of each, the digests of whole blocks, and the rows before and after these."""

    numbers: Codes
    first: Ints
    head: bytes
    digests: bytes
    tail: bytes


def first_rows(piece: RowPiece, start: int) -> tuple[Codes, Ints]:
    """Return the numbers of a piece that begins at a row, and the first row of each."""
    found = first_positions(piece.number, int(piece.number.max(initial=-1)) + 1)
    numbers = np.flatnonzero(found < len(piece))
    return numbers.astype(np.int32), found[numbers] + start


def count_numbers(piece: RowPiece) -> tuple[Codes, Ints]:
    """Return the numbers of a piece, and how many rows have each."""
    counts = count_values(piece.number, int(piece.number.max(initial=-1)) + 1)
    numbers = np.flatnonzero(counts)
    return numbers.astype(np.int32), counts[numbers]


def describe_piece(piece: RowPiece, start: int) -> PieceFigures:
    """Find the first rows and the digests of a piece that begins at a row."""
    return PieceFigures(*first_rows(piece, start), *_hash_blocks(piece.number, start))


def _hash_blocks(numbers: Ints | Codes, start: int) -> tuple[bytes, bytes, bytes]:
    first = min(-start % HASHED_ROWS, len(numbers))  # of a block that no other piece has rows of
    whole = (len(numbers) - first) // HASHED_ROWS
    digests = [
        hashlib.sha256(_bytes_of(numbers[row : row + HASHED_ROWS])).digest()
        for row in range(first, first + whole * HASHED_ROWS, HASHED_ROWS)
    ]
    return _bytes_of(numbers[:first]), b"".join(digests), _bytes_of(numbers[first + whole * HASHED_ROWS :])


def _bytes_of(numbers: Ints | Codes) -> bytes:
    return np.ascontiguousarray(numbers, np.int32).tobytes()


def join_figures(pieces: Sequence[PieceFigures], size: int, rows: int) -> IndexFigures:
    """Put together what is known of consecutive pieces of so many rows; the cut into pieces does not matter."""
    first = np.full(size, rows, np.int64)
    content, begun = hashlib.sha256(), b""
    width = HASHED_ROWS * np.dtype(np.int32).itemsize
    for piece in reversed(pieces):
        first[piece.numbers] = piece.first
    for piece in pieces:
        begun += piece.head
        if len(begun) == width:
            content.update(hashlib.sha256(begun).digest())
            begun = b""
        content.update(piece.digests)
        begun += piece.tail
    content.update(hashlib.sha256(begun).digest())
    return IndexFigures(first, content.digest())


def figures_of(index: RowIndex, size: int) -> IndexFigures:
    """What is known of all rows."""
    if isinstance(index, PieceColumn):
        return index.figures
    parts = [describe_piece(RowPiece(index[block], RowNumbers(0)), block.start) for block in blocks(len(index))]
    return join_figures(parts, size, len(index))


def choose_pieces(index: RowIndex, row: SourceRows, rows: slice) -> tuple[list[Any], list[slice]]:
    """Return what stands for the pieces that have consecutive rows, and where these are in each; none is brought here."""
    if isinstance(index, PieceColumn):
        spans = index.spans(rows.start, rows.stop)
        return [index.pieces.handles[place] for place, _ in spans], [cut for _, cut in spans]
    return [RowPiece(index[rows], stretch_of(as_positions(row), rows))], [slice(None)]


def as_positions(rows: SourceRows) -> Positions:
    """Bring positions here if they are elsewhere."""
    return np.asarray(rows) if isinstance(rows, PieceColumn) else rows


def recode_index(index: RowIndex, codes: Ints | Codes, size: int) -> RowIndex:
    """Put codes[m] in place of each number m."""
    return index.recode(codes, size) if isinstance(index, PieceColumn) else codes[index]
