"""Pieces of rows in this process, what is made of a piece, and a few threads that do it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dit_dask.storage import scratch
from dit_dask.values.arrays import Codes, Ints, RowNumbers, blocks, join_numbers
from dit_dask.values.pieces import RowPiece

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class LocalPieces:
    """Pieces whose rows are here, in scratch files if they are large."""

    handles: tuple[RowPiece, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many rows each has."""
        return tuple(map(len, self.handles))

    def convert(self, function: Callable[..., RowPiece], arguments: Sequence[tuple[Any, ...]]) -> LocalPieces:
        """Make other pieces."""
        return LocalPieces(tuple(self.collect(function, arguments)))

    def collect(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Return what a function makes of each piece; None where it has no arguments."""
        pairs = list(zip(self.handles, arguments, strict=True))
        return list(map_ordered(lambda pair: None if pair[1] is None else function(pair[0], *pair[1]), pairs))

    def join(self, others: Sequence[LocalPieces]) -> LocalPieces:
        """These pieces and those of others."""
        return LocalPieces((*self.handles, *(piece for other in others for piece in other.handles)))


def as_one(pieces: Sequence[RowPiece]) -> RowPiece:
    """Consecutive pieces as one, in a scratch file if it is large."""
    if len(pieces) == 1:
        return pieces[0]
    size, start, row = sum(map(len, pieces)), 0, join_numbers([piece.row for piece in pieces])
    number, positions = scratch.empty(size, np.int32), scratch.empty(size if row is None else 0, np.int64)
    for piece in pieces:
        own = slice(start, start + len(piece))
        number[own] = piece.number
        if row is None:
            positions[own] = piece.row
        start = own.stop
    return RowPiece(number, positions if row is None else row)


def keep_rows(piece: RowPiece, codes: Ints | Codes | None, start: int, chosen: Ints | slice | None = None) -> RowPiece:
    """Put codes[m] in place of each number m, without the rows where that is -1, or with the chosen rows only.

    Positions in the source are shifted by `start`; without codes the numbers stay.
    """
    kept = chosen
    if codes is not None and codes.min(initial=0) < 0:
        inside = [np.flatnonzero(codes[piece.number[block]] >= 0) + block.start for block in blocks(len(piece))]
        kept = np.concatenate(inside) if inside else None
    if kept is not None:
        piece = RowPiece(piece.number[kept], piece.row[kept])
    row, number = piece.row, scratch.empty(len(piece), np.int32)
    renumber(piece.number, codes, number)
    return RowPiece(number, RowNumbers(len(row), row.first + start) if isinstance(row, RowNumbers) else row + start)


def renumber(number: Ints | Codes, codes: Ints | Codes | None, found: Codes) -> None:
    """Write codes[m] for each number m, or the number itself; in blocks, and without Python's lock."""
    for block in blocks(len(number)):
        if codes is None:
            found[block] = number[block]
        else:
            np.take(codes, number[block], out=found[block], mode="clip")


def threads() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_ordered(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Apply a function to items in a few threads, yield the results in order, and work only a little ahead."""
    if len(items) == 1:
        yield function(items[0])
        return
    count = threads()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
