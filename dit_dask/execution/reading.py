"""Reading a source in parts, on workers or in threads of this process; rows that workers have read stay with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dit_dask.execution.cluster_session import call_on_all
from dit_dask.execution.progress import Counting, Progress, Silent
from dit_dask.execution.runner import TaskRunner
from dit_dask.inputs.collapsed import CollapsedRows, Merger
from dit_dask.inputs.local_pieces import LocalPieces, threads
from dit_dask.inputs.partitions import WHERE, Partition, PartitionReader, check_scratch, say_notes
from dit_dask.storage.filesystem import is_local
from dit_dask.values.pieces import RowPiece

if TYPE_CHECKING:
    from distributed import Client

    from dit_dask.execution.session import Task, TaskSession

FEWEST_ROWS = 50_000  # of a part whose rows stay with the worker that read it: a task for each use of fewer would take longer


@dataclass(frozen=True, eq=False)
class WorkerPieces:
    """Pieces whose rows are kept by the workers that made them; what a lost one had is read and made again by another."""

    runner: TaskRunner
    handles: tuple[Any, ...]
    sizes: tuple[int, ...]

    def convert(self, function: Callable[..., RowPiece], arguments: Sequence[tuple[Any, ...]]) -> WorkerPieces:
        """Make other pieces where these are."""

        def work(session: TaskSession) -> WorkerPieces:
            made = [
                session.submit(function, handle, *own, key=f"rows-{place:05d}", description=f"{WHERE}, rows", wanted=False)
                for place, (handle, own) in enumerate(zip(self.handles, arguments, strict=True))
            ]
            return WorkerPieces(self.runner, tuple(made), tuple(_collect(session, len, made, [()] * len(made))))

        return self.runner.run(work)

    def collect(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Bring here what a function makes of each piece; None where it has no arguments."""
        return self.runner.run(lambda session: _collect(session, function, self.handles, arguments))

    def join(self, others: Sequence[WorkerPieces]) -> WorkerPieces:
        """These pieces and those of others."""
        every = (self, *others)
        handles = tuple(handle for each in every for handle in each.handles)
        return WorkerPieces(self.runner, handles, tuple(size for each in every for size in each.sizes))


def _collect(
    session: TaskSession, function: Callable[..., Any], handles: Sequence[Any], arguments: Sequence[tuple[Any, ...] | None]
) -> list[Any]:
    found: list[Any] = [None] * len(handles)
    places: dict[Task, int] = {}
    for place, (handle, own) in enumerate(zip(handles, arguments, strict=True)):
        if own is not None:
            key = f"about-rows-{place:05d}"
            places[session.submit(function, handle, *own, key=key, description=f"{WHERE}, rows")] = place
    for task in session.completed():
        result = session.result(task)  # raises what a task raised on which these depend
        found[places[task]] = result
    return found


@dataclass(frozen=True, eq=False)
class Gatherer:
    """Has the parts of a source read: on the workers of a client or, without one, in threads of this process."""

    client: Client | None = None
    progress: Progress = field(default_factory=Silent)

    def __call__(self, reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        """Read all parts and put them together, in their order."""
        client = self._workers_for(reader, partitions)
        runner = TaskRunner(client, progress=self.progress, threads=threads())
        stays = client is not None and not reader.cells_wanted and _are_large(partitions)
        if not stays:
            check_scratch(partitions)

        def work(session: TaskSession) -> CollapsedRows:
            merger = Merger(WHERE)
            with Counting(self.progress, len(partitions), 0, "parts of the source read"):
                for part in _in_order(self._read(runner, session, reader, partitions, stays=stays)):
                    merger.add(part)
            return merger.merged()

        return runner.run(work)

    def _read(
        self, runner: TaskRunner, session: TaskSession, reader: PartitionReader, partitions: Sequence[Partition], *, stays: bool
    ) -> Iterator[tuple[int, CollapsedRows]]:
        """Yield the parts with their places, as they are read."""
        reads: dict[int, Task] = {}
        found: dict[Task, int] = {}
        for place, partition in enumerate(partitions):
            key, about = f"read-source-{place:05d}", f"{WHERE}, part {place}"
            read = session.submit(reader.read, partition, key=key, description=about, retries=0, wanted=not stays)
            if stays:
                reads[place] = read
                read = session.submit(without_rows, read, key=f"{key}-cells", description=about, retries=0)
            found[read] = place
        for task in session.completed():
            part, place = session.result(task), found.pop(task)  # what nobody holds is gone from the workers
            if stays:
                about = f"{WHERE}, part {place}"
                kept = session.submit(piece_of, reads.pop(place), key=f"keep-{place:05d}", description=about, wanted=False)
                part = replace(part, pieces=WorkerPieces(runner, (kept,), (int(part.counts.sum()),)))
            yield place, say_notes(part)
            self.progress.advance(1)

    def _workers_for(self, reader: PartitionReader, partitions: Sequence[Partition]) -> Client | None:
        """The client, if all its workers see the same files as this process."""
        if self.client is None or not partitions:
            return None
        if not is_local(reader.location.url):
            return self.client
        stamps = partial(_stamps_of, sorted({partition.path for partition in partitions}))
        expected = stamps()
        return self.client if all(found == expected for found in call_on_all(self.client, stamps)) else None


def _are_large(partitions: Sequence[Partition]) -> bool:
    """Tell whether parts have enough rows to stay with the workers; of text nobody knows."""
    rows = [partition.rows for partition in partitions if partition.rows is not None]
    return sum(rows) >= FEWEST_ROWS * len(rows)


def _in_order(parts: Iterator[tuple[int, CollapsedRows]]) -> Iterator[CollapsedRows]:
    waiting, following = dict[int, CollapsedRows](), 0
    for place, part in parts:
        waiting[place] = part
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def without_rows(part: CollapsedRows) -> CollapsedRows:
    """On a worker: all of a part but what is as long as it."""
    return replace(part, pieces=LocalPieces(()))


def piece_of(part: CollapsedRows) -> RowPiece:
    """On a worker: the rows of a part that was read here."""
    (piece,) = part.pieces.handles
    found: RowPiece = piece
    return found


def _stamps_of(paths: Sequence[str]) -> list[tuple[int, float]] | None:
    """On a worker: sizes and times of files; None if one is not there."""
    try:
        return [((found := os.stat(path)).st_size, found.st_mtime) for path in paths]
    except OSError:
        return None
