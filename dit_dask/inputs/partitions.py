"""The parts in which a source is read: row groups of Parquet files, blocks of text files; no part is more than a few blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from dit_dask.config.document import Config
from dit_dask.errors import DitError, InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.collapsed import CollapsedRows, Merger, collapse_blocks, collapse_frame, rewrite
from dit_dask.inputs.local_pieces import map_ordered
from dit_dask.inputs.read import (
    LOGGER,
    OpenedText,
    TextRules,
    for_file,
    open_parquet,
    open_text,
    read_excel,
    source_rules,
    unpacked,
)
from dit_dask.inputs.source import EMBEDDED, file_name, source_files
from dit_dask.storage import scratch
from dit_dask.storage.filesystem import filesystem, reading, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

Result = TypeVar("Result")

BLOCK_ROWS = 1_000_000  # that are in memory as they were read
PARTITION_ROWS = 4_000_000
SCRATCH_BYTES = 8  # of a row at the most: its index, and the one that it is merged from
WHERE = "data.source"


@dataclass(frozen=True)
class Partition:
    """A file, or some row groups of one; only row groups say how many rows they have. `stamp` tells if the file has changed."""

    path: str = field(repr=False)  # a web address may hold a token, and Dask logs the arguments of a failed task
    groups: tuple[int, ...] | None = None
    rows: int | None = None
    stamp: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class PartitionReader:
    """Reads parts of a source, seen in some columns; `cells_wanted`: also the cells of single rows, so that all come here."""

    location: Location
    columns: tuple[str, ...]
    rules: TextRules
    beside: tuple[str, ...] = ()
    where: str = WHERE
    cells_wanted: bool = False

    @property
    def read_columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.columns, *self.beside]

    def partitions(self, path: str) -> list[Partition]:
        """Cut a file into parts, and check that it has the columns."""
        if not file_name(path).endswith(".parquet"):  # a web address may have more behind the name
            return [Partition(path)]

        def sizes(file: Any, where: str) -> list[int]:
            content = open_parquet(file, self.read_columns, where)[0].metadata
            return [content.row_group(number).num_rows for number in range(content.num_row_groups)]

        found: list[Partition] = []
        for number, size in enumerate(self._open(path, sizes)):
            last = found[-1] if found else None
            if last is None or (last.rows or 0) + size > PARTITION_ROWS:
                found.append(Partition(path, (number,), size))
            else:
                found[-1] = Partition(path, (*(last.groups or ()), number), (last.rows or 0) + size)
        return found or [Partition(path, (), 0)]

    def read(self, partition: Partition) -> CollapsedRows:
        """Read a part and collapse it; it is read again, much later, if the worker that keeps its rows is lost."""
        read = _read_parquet if partition.groups is not None else _read_excel if _is_excel(partition) else _read_text
        try:
            found = self._open(partition.path, lambda file, where: read(self, partition, file, where))
        except InputError as error:
            self.check_unchanged({partition.path: partition.stamp}, error)  # a better reason, if that is it
            raise
        self.check_unchanged({partition.path: partition.stamp})
        return found

    def check_unchanged(self, stamps: Mapping[str, tuple[Any, ...] | None], cause: Exception | None = None) -> None:
        """Refuse files that are not what they were when their stamps were taken."""
        fs, _ = filesystem(self.location, self.where.removesuffix(".source"))
        for path, stamp in stamps.items():
            if stamp is not None and look(fs, path, self.location) != stamp:
                raise InputError(f"{self.where}: {file_name(path)} changed while it was read; run the audit again") from cause

    def _open(self, path: str, read: Callable[[Any, str], Result]) -> Result:
        """Read from a file; wait a while for a storage that does not answer."""
        where = f"{self.where}: {file_name(path)}"

        def content() -> Result:
            fs, _ = filesystem(self.location, self.where.removesuffix(".source"))
            with fs.open(path, "rb") as file:
                return read(file, where)

        try:
            return reading(content)
        except DitError:
            raise
        except Exception as error:
            raise InputError(f"{self.where}: cannot read {file_name(path)}: {reason(error, self.location)}") from error


def _is_excel(partition: Partition) -> bool:
    return file_name(partition.path).endswith(".xlsx")


def _read_parquet(reader: PartitionReader, partition: Partition, file: Any, where: str) -> CollapsedRows:
    import pyarrow as pa

    content, columns = open_parquet(file, reader.read_columns, where)
    kinds = {column.name: column.type for column in content.schema_arrow}
    texts = [name for name in columns if pa.types.is_string(kinds[name]) or pa.types.is_large_string(kinds[name])]
    content, _ = open_parquet(file, columns, where, texts)
    merger = Merger(where, into_one=True)
    blocks = content.iter_batches(BLOCK_ROWS, row_groups=list(partition.groups or ()), columns=list(columns), use_threads=False)
    first = next(blocks, None) if partition.groups else None
    if first is None:
        return collapse_blocks(content.schema_arrow.empty_table().select(list(columns)), reader.columns, reader.beside)
    for block in chain([first], blocks):
        merger.add(collapse_blocks(pa.Table.from_batches([block]), reader.columns, reader.beside))
    return merger.merged()


def _read_text(reader: PartitionReader, partition: Partition, file: Any, where: str) -> CollapsedRows:
    import pyarrow as pa

    name = file_name(partition.path)
    notes: list[str] = []  # a worker has nobody to say them to
    text = open_text(unpacked(file, name, where), reader.read_columns, where, for_file(reader.rules, name), notes.append)
    merger, waiting, rows = Merger(where, into_one=True), [], 0
    for block in text.blocks():
        waiting.append(block)
        rows += block.num_rows
        if rows >= BLOCK_ROWS:
            merger.add(collapse_blocks(pa.Table.from_batches(waiting), reader.columns, reader.beside))
            waiting, rows = [], 0
    kind = pa.schema([(column, pa.string()) for column in reader.read_columns])
    merger.add(collapse_blocks(pa.Table.from_batches(waiting, kind), reader.columns, reader.beside))
    merged = merger.merged()
    beside = tuple(_with_points(text, further) for further in merged.beside)
    return replace(_with_points(text, merged), beside=beside, notes=tuple(notes))


def _with_points(text: OpenedText, rows: CollapsedRows) -> CollapsedRows:
    for place, cells in enumerate(rows.cells):
        pointed = text.with_points(cells)
        if pointed is not cells:
            rows = rewrite(rows, place, pointed)
    return rows


def _read_excel(reader: PartitionReader, _partition: Partition, file: Any, where: str) -> CollapsedRows:
    return collapse_frame(read_excel(file, reader.read_columns, where), reader.columns, reader.beside)


Gather = Callable[[PartitionReader, Sequence[Partition]], CollapsedRows]


def gather_here(reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
    """Read the parts in threads of this process and put them together, in their order."""
    check_scratch(partitions)
    merger = Merger(reader.where)
    for part in map_ordered(reader.read, partitions):
        merger.add(say_notes(part))
    return merger.merged()


def say_notes(part: CollapsedRows) -> CollapsedRows:
    """Say how a part was read; return it without what has been said."""
    for note in part.notes:
        LOGGER.info(note)
    return replace(part, notes=())


def source_bytes(config: Config) -> int:
    """The size of all files of the source."""
    if config.data.source == EMBEDDED:
        return 0
    location, fs, paths = source_files(config)
    return sum(look(fs, path, location)[0] or 0 for path in paths)


def check_scratch(partitions: Sequence[Partition]) -> None:
    """Refuse a table whose index does not fit into the scratch folder, where it is known how many rows there are."""
    rows = sum(partition.rows or 0 for partition in partitions)
    needed, free = rows * SCRATCH_BYTES, scratch.free_bytes()
    if needed >= scratch.IN_MEMORY_BYTES and needed > free:
        raise InputError(
            f"scratch: the index of {rows:,} rows needs {needed / 1e6:,.0f} MB of {scratch.folder()}, which has "
            f"{free / 1e6:,.0f} MB; set TMPDIR to a folder with more, or use fewer rows"
        )


def read_collapsed(
    config: Config, columns: Sequence[str], gather: Gather = gather_here, beside: Sequence[str] | None = None
) -> tuple[CollapsedRows, tuple[str, ...]]:
    """Read all parts of the source and put them together; also return the URLs that were read.

    With further columns beside them, be it none, the cells of single rows are wanted, and no rows stay where they are read.
    """
    further = tuple(beside or ())
    if config.data.source == EMBEDDED:
        return collapse_frame(datasets.census(), columns, further), (EMBEDDED,)
    location, fs, paths = source_files(config)
    stamps = {path: look(fs, path, location) for path in paths}
    reader = PartitionReader(location, tuple(columns), source_rules(config), further, cells_wanted=beside is not None)
    try:
        found = zip(stamps.values(), map_ordered(reader.partitions, paths), strict=True)
        read = gather(reader, [replace(partition, stamp=stamp) for stamp, cut in found for partition in cut])
    except InputError as error:
        reader.check_unchanged(stamps, error)
        raise
    reader.check_unchanged(stamps)
    return read, tuple(public_url(fs.unstrip_protocol(path)) for path in paths)


def look(fs: Any, path: str, location: Location) -> tuple[Any, ...]:
    """Return the size of a file, and what else changes when it is written again."""

    def find() -> tuple[Any, ...]:
        fs.invalidate_cache()
        found = fs.info(path)
        return tuple(found.get(key) for key in ("size", "mtime", "ETag", "etag", "LastModified", "generation"))

    try:
        return reading(find)
    except FileNotFoundError:
        return (None,)
    except Exception as error:
        raise InputError(f"{WHERE}: cannot read {file_name(path)}: {reason(error, location)}") from error
