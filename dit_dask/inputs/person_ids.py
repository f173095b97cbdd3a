"""Columns that look like a person's id and repeat: the rows of such a table are not persons."""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.code import missing_cells
from dit_dask.inputs.dialect import PEEKED_BYTES
from dit_dask.inputs.read import UNPACK, read_frame
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
        cells = (_read_again(config, chosen) if frame is None else frame).rename(columns=str)
    except (InputError, OSError, ValueError):  # the table itself was read: a warning is no reason to refuse it
        return []
    present = {name: cells[name][~missing_cells(cells, [name], config.data.missing)] for name in chosen}
    return [name for name, ids in present.items() if ids.astype(str).duplicated().any()]


def _read_again(config: Config, columns: Sequence[str]) -> pd.DataFrame:
    """Read columns of a source that was read before, without saying again how it is written."""
    logger = logging.getLogger("dit_dask.inputs")
    logger.addFilter(_refuse)
    try:
        return read_frame(config, columns)[0]
    finally:
        logger.removeFilter(_refuse)


def _refuse(_: logging.LogRecord) -> bool:
    return False


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
