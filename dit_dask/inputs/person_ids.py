"""Columns that look like a person's id and repeat: the rows of such a table are not persons."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.code import missing_cells
from dit_dask.inputs.collapsed import CollapsedRows
from dit_dask.inputs.dialect import PEEKED_BYTES
from dit_dask.inputs.local_pieces import map_ordered
from dit_dask.inputs.partitions import Partition, PartitionReader, read_collapsed
from dit_dask.inputs.read import UNPACK
from dit_dask.inputs.source import EMBEDDED, file_name, source_files
from dit_dask.storage.filesystem import reading

if TYPE_CHECKING:
    import pandas as pd

PERSONS = "client|customer|employee|household|member|participant|patient|person|respondent|student|subject|user|worker"
NUMBERS = "code|id|key|nr|no|num|number|uid|uuid"
PERSON_ID = re.compile(rf"(.*_)?({PERSONS})s?_?({NUMBERS})(_.*)?|id|uid|pid|mrn|ssn|nhs_?({NUMBERS})|e_?mail(_address)?")
SEPARATORS = ",;\t|"


def looks_like_person_id(name: str) -> bool:
    """Whether a column is named as if it told persons apart."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
    return PERSON_ID.fullmatch(words) is not None


def repeated_person_ids(config: Config, frame: pd.DataFrame | None = None) -> list[str]:
    """Name the columns of the source, or of the frame in its place, that look like a person's id and hold one id twice.

    Only columns with such a name are read. A source whose names cannot be looked up has none.
    """
    try:
        names = _column_names(config) if frame is None else [str(name) for name in frame.columns]
        subject = config.checked_schema.subject
        telling = [name for name in dict.fromkeys(names) if looks_like_person_id(name) and name != subject]
        chosen = [name for name in telling if names.count(name) == 1]
        if not chosen:
            return []
        if frame is None:
            return [name for name in chosen if _repeats(config, name)]
    except (InputError, OSError, ValueError):  # the table itself was read: a warning is no reason to refuse it
        return []
    cells = frame.rename(columns=str)
    present = {name: cells[name][~missing_cells(cells, [name], config.data.missing)] for name in chosen}
    return [name for name, ids in present.items() if ids.astype(str).duplicated().any()]


def _repeats(config: Config, name: str) -> bool:
    """Tell whether a column of the source holds an id twice: its parts are read until one does, and kept as 8 bytes an id.

    The source was read before, so nothing is said again of how its files are written.
    """
    repeated = False

    def look(reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        import pandas as pd

        nonlocal repeated
        seen: list[Any] = []
        for part in map_ordered(reader.read, partitions):
            counts = np.bincount(part.codes[0] + 1, part.counts, len(part.cells[0]) + 1)[1:]
            present = (counts > 0) & ~missing_cells(part.cells[0].to_frame(name), [name], config.data.missing)
            seen.append(pd.util.hash_array(part.cells[0][present].astype(str).to_numpy(object), categorize=False))
            repeated = repeated or bool((counts[present] > 1).any())
            if repeated:
                break
        every = np.concatenate(seen)
        repeated = repeated or len(pd.unique(every)) < len(every)
        return part

    read_collapsed(config, [name], look)
    return repeated


def _column_names(config: Config) -> list[str]:
    """The names of the columns of the first file, which has all columns of the schema."""
    if config.data.source == EMBEDDED:
        return []
    _, fs, paths = source_files(config)
    name = file_name(paths[0])

    def read() -> list[str]:
        with fs.open(paths[0], "rb") as file:
            if name.endswith(".parquet"):
                import pyarrow.parquet as pq

                return [str(column) for column in pq.ParquetFile(file).schema_arrow.names]
            opened = next((unpack(file, name) for end, unpack in UNPACK.items() if name.endswith(end)), file)
            content: bytes = opened.read(PEEKED_BYTES)
        return _header_with(content, config.checked_schema.columns)

    return reading(read)


def _header_with(content: bytes, used: Sequence[str]) -> list[str]:
    """The names in the first line, by the separator with which most used columns are there."""
    text = content.decode("utf-8-sig", errors="replace")
    headers = [next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), []) for separator in SEPARATORS]
    return max(headers, key=lambda header: len(set(used) & set(header)))
