"""From files to frames: every used column of CSV and Parquet files, as text where the file holds text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.header import read_header
from dit_dask.inputs.quotes import CountedLines, check_quotes
from dit_dask.inputs.source import EMBEDDED, file_name, source_files, table_files
from dit_dask.storage.compression import BoundedGzip
from dit_dask.storage.filesystem import reading, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

if TYPE_CHECKING:
    import pandas as pd


def read_frame(config: Config, columns: Sequence[str] | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the used columns of every file of the source, in order (no columns: all); also return the URLs that were read."""
    source = config.data.source
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    return read_files(*source_files(config), columns, "data.source", is_named=config.data.header)


def read_source(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read another table that the config names; also return the URLs that were read."""
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    return read_files(*table_files(source, options, config, where), columns, where, is_named=config.data.header)


def read_files(
    location: Location, fs: Any, paths: Sequence[str], columns: Sequence[str] | None, where: str, *, is_named: bool = False
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read files of one table, in order; also return their URLs. `is_named`: first lines are names, whatever they look like."""
    import pandas as pd

    names = tuple(public_url(fs.unstrip_protocol(path)) for path in paths)
    read_csv = partial(_read_csv, is_named=is_named)
    frames = [_read_file(fs, path, columns, (location, where), read_csv) for path in paths]
    if len(frames) == 1:
        return frames[0], names
    shared = list(frames[0].columns)
    for frame in frames[1:]:
        check_names(list(frame.columns), shared, where)
    frames = [frame[shared] for frame in frames]
    for column in shared:
        kinds = {frame[column].dtype for frame in frames}
        if len(kinds) > 1:
            if not all(pd.api.types.is_integer_dtype(kind) for kind in kinds):
                raise InputError(
                    f"{where}: the column {column!r} is {' and '.join(sorted(map(str, kinds)))} in different files"
                )
            frames = [frame.astype({column: object}) for frame in frames]  # exact, whatever their widths
    return pd.concat(frames, ignore_index=True), names


def _read_file(
    fs: Any, path: str, columns: Sequence[str] | None, origin: tuple[Location, str], read_csv: Callable[..., pd.DataFrame]
) -> pd.DataFrame:
    """Read one file; text stays text, so that nothing is guessed from it."""
    name, (location, where) = file_name(path), origin

    def content() -> pd.DataFrame:
        with fs.open(path, "rb") as file:
            read = _read_parquet if name.endswith(".parquet") else read_csv
            opened = BoundedGzip(file, f"{where}: {name}") if name.endswith(".gz") else file
            return read(opened, columns, f"{where}: {name}")

    try:
        return reading(content)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: cannot read {name}: {reason(error, location)}") from error


def _read_csv(file: Any, columns: Sequence[str] | None, where: str, *, is_named: bool) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow

    header = read_header(file, where, columns, is_trusted=is_named)
    columns = header if columns is None else columns
    check_names(header, columns, where)
    uneven: list[Any] = []

    def refuse(row: Any) -> str:
        uneven.append(row)
        return "skip"

    counted = CountedLines(file)
    try:
        table = arrow.read_csv(
            counted,
            parse_options=arrow.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            read_options=arrow.ReadOptions(use_threads=False),  # only then are rows numbered
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(columns, "string"), include_columns=list(columns), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        check_quotes(file, len(header), where)  # a better reason, if that is it
        raise
    if counted.lines > table.num_rows + 1:  # some cell has several lines, or lines are empty
        check_quotes(file, len(header), where)
    if uneven:
        row = uneven[0]
        raise InputError(f"{where}, line {row.number}: expected {row.expected_columns} cells; got {row.actual_columns}")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _read_parquet(file: Any, columns: Sequence[str] | None, where: str) -> pd.DataFrame:
    import pyarrow.parquet as pq

    content = pq.ParquetFile(file)
    names = [name for name in content.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", name)]
    columns = names if columns is None else columns
    check_names(names, columns, where)
    # integer_object_nulls: a null must not turn large integers into floats
    frame: pd.DataFrame = content.read(columns=list(columns)).to_pandas(integer_object_nulls=True, date_as_object=True)
    index = [name for name in frame.index.names if name in columns]  # pandas wrote it as a column, and makes it the index again
    return (frame.reset_index(index) if index else frame).reset_index(drop=True)[list(columns)]


def check_names(names: Sequence[str], columns: Sequence[str], where: str) -> None:
    """Every used column must be there once."""
    for column in columns:
        if column not in names:
            # only a near name is shown: without a header line the names are a person's values
            near = difflib.get_close_matches(column, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (is there a header line?)"
            raise InputError(f"{where}: no column {column!r} among {len(names)}{hint}")
        if list(names).count(column) > 1:
            raise InputError(f"{where}: the column {column!r} is there {list(names).count(column)} times")
