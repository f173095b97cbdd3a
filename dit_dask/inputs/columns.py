"""The names of a source's columns, without reading its rows."""

from __future__ import annotations

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.header import read_header
from dit_dask.inputs.read import for_file, look, read_frame, source_rules, unpacked
from dit_dask.inputs.source import EMBEDDED, file_name, source_files
from dit_dask.storage.filesystem import reading, reason


def source_columns(config: Config) -> list[str]:
    """The columns of the first file of the source, in its order."""
    if config.data.source == EMBEDDED:
        return list(datasets.census().columns)
    location, fs, paths = source_files(config)
    name = file_name(paths[0])
    where = f"data.source: {name}"
    if name.endswith(".xlsx"):
        return list(read_frame(config, None)[0].columns)

    def header() -> list[str]:
        with fs.open(paths[0], "rb") as file:
            if name.endswith(".parquet"):
                import pyarrow.parquet as pq

                return [str(each) for each in pq.read_schema(file).names if not each.startswith("__index_level_")]
            rules = for_file(source_rules(config), name)
            peeked, dialect = look(unpacked(file, name, where), rules.csv, None, where)
            used = None if config.schema is None else config.schema.columns
            return list(read_header(peeked, dialect, where, used, is_trusted=rules.is_named))

    try:
        return reading(header)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: cannot read its columns: {reason(error, location)}") from error
