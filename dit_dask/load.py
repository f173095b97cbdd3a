"""From files or frames to a Table: the edge where values are checked and become codes."""

import difflib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dit_dask import datasets, seeds
from dit_dask.config import Config, Location
from dit_dask.errors import InputError, unknown
from dit_dask.hierarchy import Hierarchy, flat, missing_leaf, parse
from dit_dask.schema import SHOWN_FROM, Attribute, Schema, Secret
from dit_dask.source import EMBEDDED, file_name, read_text, source_files, table_files
from dit_dask.store import public_url, reading, reason
from dit_dask.table import Rows, collapse

if TYPE_CHECKING:
    import pandas as pd

LONGEST_INTEGER = 1000
INTEGER = r"\s*[+-]?\d+\s*"
DECIMAL = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*"


def load(config: Config, frame: "pd.DataFrame | None" = None, others: Sequence[str] | None = None) -> Rows:
    """Load the table that a config describes, or the given frame in its place; with `others`, keep these and the used cells."""
    rows, read, used = _loaded(config, others or [], frame)
    return rows if others is None else replace(rows, frame=_cells(read.iloc[used], rows))


def load_with(
    config: Config, more: Sequence[str] | None, frame: "pd.DataFrame | None" = None, others: Sequence[str] | None = None
) -> tuple[Rows, "pd.DataFrame"]:
    """Load the table; also return its used rows as read, with more columns of the source (None: all of them).

    Only the schema's columns decide which rows are used; a missing cell of another column is None or NaN.
    """
    rows, read, used = _loaded(config, None if more is None else [*more, *(others or ())], frame)
    kept = rows if others is None else replace(rows, frame=_cells(read.iloc[used], rows))
    return kept, _blanked(read.iloc[used], config.data["missing"])


def _loaded(
    config: Config, more: Sequence[str] | None, frame: "pd.DataFrame | None"
) -> tuple[Rows, "pd.DataFrame", NDArray[np.int64]]:
    quasi = config.schema["quasi_identifiers"]
    secret_name = config.schema["sensitive"]["name"]
    columns = [*quasi, secret_name]
    wanted = None if more is None else list(dict.fromkeys([*columns, *more]))
    files: tuple[str, ...] = ()
    if frame is None:
        frame, files = read_frame(config, wanted)
    frame = frame.rename(columns=str)
    wanted = list(frame.columns) if wanted is None else wanted
    _check_names(list(frame.columns), list(dict.fromkeys([*columns, *wanted])), "data")
    for column in config.data["missing"] if isinstance(config.data["missing"], Mapping) else ():
        if column not in wanted:
            raise unknown("data.missing: column", column, wanted)
    if not len(frame):
        raise InputError(f"data: {_source(config)} has no rows")
    incomplete = _missing(frame, columns, config.data["missing"])
    used = _used_rows(np.flatnonzero(~incomplete), config)
    attributes = []
    codes = np.empty((len(used), len(quasi)), np.int32)
    for place, (name, described) in enumerate(quasi.items()):
        column = frame[name].iloc[used]
        if described["kind"] == "numeric":
            attribute, codes[:, place] = _numeric(name, column)
        else:
            attribute, codes[:, place] = _categorical(name, column, described["hierarchy"], config)
        attributes.append(attribute)
    secret, secret_codes = _secret(frame[secret_name].iloc[used], config)
    table, index = collapse(Schema(tuple(attributes), secret), codes, secret_codes)
    dropped = int(incomplete.sum())
    return Rows(table, index, len(frame), dropped, table.weights[index], files), frame[wanted], used


def _cells(frame: "pd.DataFrame", rows: Rows) -> "pd.DataFrame":
    """The cells as a sanitizer expects them: as they were read, but numbers where text holds numbers."""
    cells = frame.reset_index(drop=True)
    codes = rows.table.codes[rows.index]
    for attribute, code in zip(rows.table.schema.quasi_identifiers, codes.T, strict=True):
        first = cells[attribute.name].iloc[0]
        if attribute.kind == "numeric" and isinstance(first, str) and re.fullmatch(DECIMAL, first):
            cells[attribute.name] = np.array(attribute.levels)[code]
    return cells


def _blanked(frame: "pd.DataFrame", marks: Any) -> "pd.DataFrame":
    """Put None, or NaN in a column of numbers, where a mark stands; number the rows."""
    frame = frame.reset_index(drop=True)
    for column in frame.columns:
        gone = _missing(frame, [column], marks)
        if gone.any():
            cells = frame[column] if frame[column].dtype.kind not in "iub" else frame[column].astype(object)
            frame[column] = cells.mask(gone, None)
    return frame


def load_columns(config: Config, named: Sequence[str]) -> "pd.DataFrame":
    """Load every column of the source, those named among them; rows need not be complete, limit and sample choose of all."""
    frame = read_frame(config, None)[0].rename(columns=str)
    _check_names(list(frame.columns), [*frame.columns, *named], "data")
    if not len(frame):
        raise InputError(f"data: {_source(config)} has no rows")
    return _blanked(frame.iloc[_used_rows(np.arange(len(frame)), config)], config.data["missing"])


def read_table(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> "pd.DataFrame":
    """Read another table that the config names, with the same marks of missing cells; no columns: all of them."""
    frame, _ = _read_source(source, options, columns, config, where)
    if not len(frame):
        raise InputError(f"{where}: {public_url(source)} has no rows")
    return _blanked(frame.rename(columns=str), config.data["missing"])


def read_frame(config: Config, columns: Sequence[str] | None) -> "tuple[pd.DataFrame, tuple[str, ...]]":
    """Read the used columns of every file of the source, in order (no columns: all); also return the URLs that were read."""
    source = config.data["source"]
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    return _joined(*source_files(config), columns, "data.source")


def _read_source(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> "tuple[pd.DataFrame, tuple[str, ...]]":
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    return _joined(*table_files(source, options, config, where), columns, where)


def _joined(
    location: Location, fs: Any, paths: Sequence[str], columns: Sequence[str] | None, where: str
) -> "tuple[pd.DataFrame, tuple[str, ...]]":
    import pandas as pd

    names = tuple(public_url(fs.unstrip_protocol(path)) for path in paths)
    frames = [_read_file(fs, path, columns, (location, where)) for path in paths]
    if len(frames) == 1:
        return frames[0], names
    shared = list(frames[0].columns)
    for frame in frames[1:]:
        _check_names(list(frame.columns), shared, where)
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


def _read_file(fs: Any, path: str, columns: Sequence[str] | None, origin: tuple[Location, str]) -> "pd.DataFrame":
    """Read one file; text stays text, so that nothing is guessed from it."""
    name, (location, where) = file_name(path), origin

    def content() -> "pd.DataFrame":
        with fs.open(path, "rb", compression="gzip" if name.endswith(".gz") else None) as file:
            read = _read_parquet if name.endswith(".parquet") else _read_csv
            return read(file, columns, f"{where}: {name}")

    try:
        return reading(content)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: cannot read {name}: {reason(error, location)}") from error


def _read_csv(file: Any, columns: Sequence[str] | None, where: str) -> "pd.DataFrame":
    import csv
    import io

    from pyarrow import csv as arrow

    header = next(csv.reader(io.StringIO(file.readline().decode("utf-8-sig"))), None)
    if not header:
        raise InputError(f"{where} is empty")
    columns = header if columns is None else columns
    _check_names(header, columns, where)
    file.seek(0)
    uneven: list[Any] = []

    def refuse(row: Any) -> str:
        uneven.append(row)
        return "skip"

    table = arrow.read_csv(
        file,
        parse_options=arrow.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
        read_options=arrow.ReadOptions(use_threads=False),  # only then are rows numbered
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(columns, "string"), include_columns=list(columns), strings_can_be_null=False
        ),
    )
    if uneven:
        row = uneven[0]
        raise InputError(f"{where}, line {row.number}: expected {row.expected_columns} cells; got {row.actual_columns}")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _read_parquet(file: Any, columns: Sequence[str] | None, where: str) -> "pd.DataFrame":
    import pyarrow.parquet as pq

    content = pq.ParquetFile(file)
    columns = content.schema_arrow.names if columns is None else columns
    _check_names(content.schema_arrow.names, columns, where)
    # integer_object_nulls: a null must not turn large integers into floats
    frame: pd.DataFrame = content.read(columns=list(columns)).to_pandas(integer_object_nulls=True, date_as_object=True)
    return frame


def _check_names(names: Sequence[str], columns: Sequence[str], where: str) -> None:
    """Every used column must be there once."""
    for column in columns:
        if column not in names:
            # only a near name is shown: without a header line the names are a person's values
            near = difflib.get_close_matches(column, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (is there a header line?)"
            raise InputError(f"{where}: no column {column!r} among {len(names)}{hint}")
        if list(names).count(column) > 1:
            raise InputError(f"{where}: the column {column!r} is there {list(names).count(column)} times")


def _missing(frame: "pd.DataFrame", columns: Sequence[str], marks: Any) -> NDArray[np.bool_]:
    """Return (rows,): whether a used cell is empty or holds a mark."""
    import pandas as pd

    gone = np.zeros(len(frame), bool)
    for column in columns:
        cells = frame[column]
        gone |= cells.isna().to_numpy(bool)
        mine = {"", *(str(mark) for mark in (marks.get(column, []) if isinstance(marks, Mapping) else marks))}
        if pd.api.types.is_float_dtype(cells.dtype):  # 999 marks 999.0
            gone |= cells.isin([float(mark) for mark in mine if re.fullmatch(DECIMAL, mark)]).to_numpy(bool)
        else:
            gone |= cells.astype(str).isin(mine).to_numpy(bool)
    return gone


def _used_rows(complete: NDArray[np.int64], config: Config) -> NDArray[np.int64]:
    """Choose the rows under audit among the complete ones, in file order."""
    if not len(complete):
        raise InputError(f"data: no complete row: every row of {_source(config)} misses a used value")
    if config.data["limit"] is not None:
        complete = complete[: config.data["limit"]]
    sample = config.data["sample"]
    if sample is not None:
        if sample["rows"] > len(complete):
            raise InputError(f"data.sample.rows must be at most the {len(complete)} complete rows; got {sample['rows']}")
        rng = seeds.stream(sample["seed"], "data.sample")
        complete = np.sort(rng.choice(complete, sample["rows"], replace=False))
    if len(complete) < 2:
        raise InputError("data: at least 2 complete rows are needed to remove one; got 1")
    return complete


def _source(config: Config) -> str:
    source = config.data["source"]
    return public_url(source if isinstance(source, str) else source["latest"])


def _single_type(name: str, column: "pd.Series[Any]") -> None:
    """Refuse an object column that mixes types, which pandas keeps side by side."""
    if column.dtype == object:
        types = sorted({type(cell).__name__ for cell in column})
        if len(types) > 1:
            raise InputError(f"column {name!r} mixes types: {', '.join(types)}; expected one")
        if not isinstance(column.iloc[0], Hashable):
            raise InputError(f"column {name!r} must hold single values; got values of type {types[0]}")


def _numeric(name: str, column: "pd.Series[Any]") -> tuple[Attribute, NDArray[np.int32]]:
    """Code a numeric column by the rank of its values; the numbers themselves only give widths."""
    import pandas as pd

    _single_type(name, column)
    if isinstance(column.iloc[0], bool | np.bool_):
        raise InputError(f"column {name!r} must be numeric; got booleans (use kind: categorical)")
    factors, distinct = pd.factorize(column)
    numbers = _numbers(name, distinct, np.bincount(factors), factors)
    unit = None
    if numbers.dtype.kind == "M":
        unit, numbers = np.datetime_data(numbers.dtype)[0], numbers.view(np.int64)
    levels, inverse = np.unique(numbers, return_inverse=True)
    values = levels if levels.dtype == np.float64 else _offsets(levels)
    attribute = Attribute(name, "numeric", tuple(levels.tolist()), values, unit=unit)
    return attribute, inverse.astype(np.int32)[factors]


def _offsets(levels: NDArray[Any]) -> NDArray[np.float64]:
    """Distances from the smallest level, subtracted exactly before they become floats."""
    return np.array([float(step) for step in (levels.astype(object) - levels.astype(object)[0])])


def _numbers(name: str, distinct: Any, counts: NDArray[np.int64], factors: NDArray[np.int64]) -> NDArray[Any]:
    """Turn the distinct cells of a column into numbers that sort and subtract exactly."""
    import datetime
    import decimal

    import pandas as pd

    cells = pd.Series(distinct)
    first = cells.iloc[0]
    if isinstance(first, str):
        return _parsed(name, cells.astype(str), counts, factors)
    if pd.api.types.is_float_dtype(cells.dtype):
        return _finite(name, cells.to_numpy(np.float64))
    if pd.api.types.is_datetime64_any_dtype(cells.dtype) or isinstance(first, datetime.date):
        return _stamps(cells)
    if isinstance(first, int | np.integer):
        return _exact([int(cell) for cell in cells])
    if isinstance(first, decimal.Decimal):
        return np.array(cells.tolist(), object)
    raise InputError(f"column {name!r} must be numbers or dates; got values of type {type(first).__name__}")


def _stamps(cells: "pd.Series[Any]") -> NDArray[Any]:
    """Dates and times as whole nanoseconds, or microseconds where they reach too far."""
    import pandas as pd

    times = pd.to_datetime(cells)
    try:
        times = times.dt.as_unit("ns")
    except pd.errors.OutOfBoundsDatetime:  # 9999-12-31 and the like
        times = times.dt.as_unit("us")
    stamps: NDArray[Any] = times.astype("int64").to_numpy().view(f"datetime64[{times.dt.unit}]")
    return stamps


def _exact(numbers: Sequence[int]) -> NDArray[Any]:
    """Integers as int64 where they fit, as Python integers where not."""
    fits = all(-(2**63) <= number < 2**63 for number in numbers)
    return np.array(numbers, np.int64 if fits else object)


def _finite(name: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(numbers).all():
        raise InputError(f"column {name!r} must be finite numbers; got an infinite one")
    return numbers + 0.0  # -0.0 and 0.0 are one value


def _parsed(name: str, cells: "pd.Series[str]", counts: NDArray[np.int64], factors: NDArray[np.int64]) -> NDArray[Any]:
    """Read text as integers, decimals or ISO dates: all of one sort, or an error that says where."""
    import pandas as pd

    whole = cells.str.fullmatch(INTEGER).to_numpy(bool)
    if whole.all():
        if cells.str.len().max() > LONGEST_INTEGER:
            raise InputError(f"column {name!r} must be numbers; got one of more than {LONGEST_INTEGER} digits")
        return _exact([int(cell) for cell in cells])
    decimal = cells.str.fullmatch(DECIMAL).to_numpy(bool)
    if decimal.all():
        numbers = np.array([float(cell) for cell in cells])
        if (whole & (np.abs(numbers) >= 2**53)).any():
            raise InputError(f"column {name!r} mixes decimals with integers beyond 2^53, which they cannot represent")
        return _finite(name, numbers)
    if not decimal.any():
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
        if dates.notna().all():
            return _stamps(dates)
        decimal = dates.notna().to_numpy(bool)
    bad = np.flatnonzero(~decimal)
    worst = bad[counts[bad].argmax()]
    row = int(np.flatnonzero(factors == worst)[0])
    shown = f"the text {cells.iloc[worst]!r} in {counts[worst]} rows" if counts[worst] >= SHOWN_FROM else "text"
    raise InputError(
        f"column {name!r} must be numbers or ISO dates; got {shown}, first in used row {row} "
        "(list it under data.missing if it marks missing cells)"
    )


def _labels(name: str, column: "pd.Series[Any]") -> tuple[NDArray[np.int64], list[str], list[Any]]:
    """Return each row's label number, the labels as text and the values they came from."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    _single_type(name, column)
    factors, distinct = pd.factorize(column)
    values = list(distinct)
    labels = [str(value) for value in values]
    if len(set(labels)) < len(labels):
        raise InputError(f"column {name!r} has different values that read the same as text")
    return factors, labels, values


def _categorical(name: str, column: "pd.Series[Any]", path: str | None, config: Config) -> tuple[Attribute, NDArray[np.int32]]:
    where = f"schema.quasi_identifiers.{name}.hierarchy"
    factors, labels, _ = _labels(name, column)
    hierarchy = flat(sorted(labels)) if path is None else _read_hierarchy(name, path, labels, config, where)
    code = {label: position for position, label in enumerate(hierarchy.leaves)}
    attribute = Attribute(name, "categorical", hierarchy.leaves, None, hierarchy)
    return attribute, np.array([code[label] for label in labels], np.int32)[factors]


def _read_hierarchy(name: str, path: str, labels: Sequence[str], config: Config, where: str) -> Hierarchy:
    hierarchy = parse(read_text(path, config, where), public_url(path))
    homeless = missing_leaf(hierarchy, labels)
    if homeless is not None:
        raise InputError(f"{where}: {public_url(path)} has no leaf for the value {homeless!r} of column {name!r}")
    return hierarchy


def _secret(column: "pd.Series[Any]", config: Config) -> tuple[Secret, NDArray[np.int32]]:
    """Fix the order of the sensitive values: as given, else sorted (as numbers where all are numbers)."""
    described = config.schema["sensitive"]
    name = described["name"]
    factors, labels, _ = _labels(name, column)
    if len(labels) == 1:
        raise InputError(f"the sensitive column {name!r} is constant: there is nothing to infer")
    if described["order"] is not None:
        levels = [str(level) for level in described["order"]]
        if len(set(levels)) < len(levels):
            raise InputError("schema.sensitive.order names a value twice")
        for label in labels:
            if label not in levels:
                raise InputError(f"schema.sensitive.order has no place for the value {label!r} of column {name!r}")
    elif all(re.fullmatch(DECIMAL, label) for label in labels):
        levels = sorted(labels, key=lambda label: (float(label), label))
    else:
        levels = sorted(labels)
    hierarchy = None
    if described["hierarchy"] is not None:
        hierarchy = _read_hierarchy(name, described["hierarchy"], levels, config, "schema.sensitive.hierarchy")
    code = {level: position for position, level in enumerate(levels)}
    return Secret(name, tuple(levels), hierarchy), np.array([code[label] for label in labels], np.int32)[factors]
