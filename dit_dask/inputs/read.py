"""From files to frames: every used column of text, Parquet and Excel files, as text where the file holds text."""

from __future__ import annotations

import csv
import difflib
import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dit_dask.config.data import CsvConfig
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.arrow import to_frame
from dit_dask.inputs.dialect import NAMES, NO_QUOTE, PEEKED_BYTES, Dialect, NumberColumns, Peeked, decode, find_dialect
from dit_dask.inputs.header import read_header
from dit_dask.inputs.quotes import CountedLines, check_quotes
from dit_dask.inputs.source import EMBEDDED, file_name, source_files, table_files
from dit_dask.storage.compression import BoundedGzip, BoundedZstd
from dit_dask.storage.filesystem import reading, reason
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

if TYPE_CHECKING:
    import pandas as pd

LOGGER = logging.getLogger("dit_dask.inputs")
BLOCK_BYTES = 2 * 2**20  # of a text file
UNPACK = {".gz": BoundedGzip, ".zst": BoundedZstd}


@dataclass(frozen=True)
class TextRules:
    """What is known about text files before they are looked at."""

    csv: CsvConfig = field(default_factory=CsvConfig)
    columns: NumberColumns = field(default_factory=NumberColumns)
    is_named: bool = False  # first lines are names, whatever they look like


def read_frame(config: Config, columns: Sequence[str] | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the used columns of every file of the source, in order (no columns: all); also return the URLs that were read."""
    source = config.data.source
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    return read_files(*source_files(config), columns, "data.source", source_rules(config))


def _number_columns(config: Config) -> NumberColumns:
    """Sort the columns of the schema into numbers and texts; labels keep the signs that they are written with."""
    if config.schema is None:
        return NumberColumns()
    numbers = {name for name, attribute in config.schema.quasi_identifiers.items() if attribute.kind == "numeric"}
    numbers |= {member.column for member in config.schema.members if member.bins is not None}
    return NumberColumns(frozenset(numbers), frozenset([*config.schema.columns, *config.schema.subject_columns]) - numbers)


def read_source(
    source: str, options: Mapping[str, Any], columns: Sequence[str] | None, config: Config, where: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read another table that the config names; also return the URLs that were read."""
    if source == EMBEDDED:
        return datasets.census(), (EMBEDDED,)
    # data.csv is about the source: a synthetic table may be written in another way
    rules = replace(source_rules(config), csv=CsvConfig())
    return read_files(*table_files(source, options, config, where), columns, where, rules)


def read_files(
    location: Location, fs: Any, paths: Sequence[str], columns: Sequence[str] | None, where: str, rules: TextRules
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read files of one table, in order; also return their URLs."""
    import pandas as pd

    names = tuple(public_url(fs.unstrip_protocol(path)) for path in paths)
    frames = [_read_file(fs, path, columns, (location, where), rules) for path in paths]
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
    fs: Any, path: str, columns: Sequence[str] | None, origin: tuple[Location, str], rules: TextRules
) -> pd.DataFrame:
    """Read one file; text stays text, so that nothing is guessed from it."""
    name, (location, where) = file_name(path), origin

    def content() -> pd.DataFrame:
        with fs.open(path, "rb") as file:
            if name.endswith(".parquet"):
                return _read_parquet(file, columns, f"{where}: {name}")
            if name.endswith(".xlsx"):
                return read_excel(file, columns, f"{where}: {name}")
            opened = unpacked(file, name, f"{where}: {name}")
            return _read_csv(opened, columns, f"{where}: {name}", for_file(rules, name))

    try:
        return reading(content)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: cannot read {name}: {reason(error, location)}") from error


def look(file: Any, given: CsvConfig, columns: Sequence[str] | None, where: str) -> tuple[Peeked, Dialect]:
    """Read the beginning of a text file, set the file back to its start, and find how it is written."""
    content: bytes = file.read(PEEKED_BYTES)
    file.seek(0)
    peeked, encoding = decode(content, given.encoding, where)
    try:
        return peeked, find_dialect(peeked, encoding, given, columns, where)
    except csv.Error as error:
        raise InputError(f"{where}: the header line is not CSV: {error}") from error


def source_dialect(config: Config) -> Dialect | None:
    """Find how the first file of a source is written; None if it is not text."""
    if config.data.source == EMBEDDED:
        return None
    _, fs, paths = source_files(config)
    name = file_name(paths[0])
    if name.endswith((".parquet", ".xlsx")):
        return None
    with fs.open(paths[0], "rb") as file:
        where = f"data.source: {name}"
        return look(unpacked(file, name, where), for_file(source_rules(config), name).csv, None, where)[1]


def source_rules(config: Config) -> TextRules:
    """What a config says about the text files of its source."""
    return TextRules(config.data.csv or CsvConfig(), _number_columns(config), config.data.header)


def for_file(rules: TextRules, name: str) -> TextRules:
    """A .tsv file has tabs unless the config says otherwise."""
    if re.search(r"\.tsv(\.\w+)?$", name) and rules.csv.separator is None:
        return replace(rules, csv=replace(rules.csv, separator="\t"))
    return rules


def unpacked(file: Any, name: str, where: str) -> Any:
    """The content of a file that may be compressed."""
    return next((unpack(file, where) for end, unpack in UNPACK.items() if name.endswith(end)), file)


def _read_csv(file: Any, columns: Sequence[str] | None, where: str, rules: TextRules) -> pd.DataFrame:
    import pyarrow as pa

    text = open_text(file, columns, where, rules)
    kind = pa.schema([(name, pa.string()) for name in text.columns])
    frame: pd.DataFrame = pa.Table.from_batches(text.blocks(), kind).to_pandas()
    for name in frame.columns:
        frame[name] = text.with_points(frame[name])
    return frame


@dataclass(frozen=True, eq=False)
class OpenedText:
    """A text file whose header and dialect are known."""

    file: Any
    header: Sequence[str]
    columns: Sequence[str]
    dialect: Dialect
    rules: TextRules
    where: str

    def blocks(self) -> Iterator[Any]:
        """Yield record batches of the used columns, as text; what is wrong with the file is found at its end."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        uneven: list[Any] = []

        def refuse(row: Any) -> str:
            uneven.append(row)
            return "skip"

        dialect, columns = self.dialect, list(self.columns)
        is_utf8 = dialect.encoding in ("utf-8", "utf-8-sig")
        counted, rows = CountedLines(self.file), 0
        # one thread: only then are rows numbered
        reading_options = arrow.ReadOptions(
            use_threads=False, encoding="utf8" if is_utf8 else dialect.encoding, block_size=BLOCK_BYTES
        )
        parse_options = arrow.ParseOptions(
            delimiter=dialect.separator,
            quote_char=False if dialect.quote == NO_QUOTE else dialect.quote,
            newlines_in_values=True,
            invalid_row_handler=refuse,
        )
        convert_options = arrow.ConvertOptions(
            column_types=dict.fromkeys(columns, "string"), include_columns=columns, strings_can_be_null=False
        )
        try:
            for block in arrow.open_csv(counted, reading_options, parse_options, convert_options):
                rows += block.num_rows
                yield block
        except (UnicodeError, pa.ArrowInvalid) as error:
            if isinstance(error, UnicodeError) or "UTF8" in str(error):
                raise InputError(f"{self.where} is not {dialect.encoding} text throughout; set data.csv.encoding") from error
            self._check_quotes()  # a better reason, if that is it
            raise
        if counted.lines > rows + 1:  # some cell has several lines, or lines are empty
            self._check_quotes()
        if uneven:
            row = uneven[0]
            raise InputError(
                f"{self.where}, line {row.number}: expected {row.expected_columns} cells; got {row.actual_columns} "
                f"(the separator is {NAMES[dialect.separator]}; data.csv.separator sets another)"
            )

    def with_points(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Write decimal commas of a column as points, where they are."""
        name, is_given = str(cells.name), self.rules.csv.decimal is not None
        if not self.rules.columns.are_checked(name, self.dialect):
            return cells
        distinct = [str(cell) for cell in cells.unique()]
        changed = self.rules.columns.with_points(name, distinct, self.dialect, is_given=is_given, where=self.where)
        return cells.map(lambda cell: changed.get(cell, cell)) if changed else cells

    def _check_quotes(self) -> None:
        """Read the file again, cell by cell."""
        if self.dialect.quote == NO_QUOTE:
            return
        self.file.seek(0)
        encoding = "utf-8-sig" if self.dialect.encoding == "utf-8" else self.dialect.encoding
        text = io.TextIOWrapper(self.file, encoding=encoding, errors="replace", newline="")
        try:
            check_quotes(text, len(self.header), self.where, self.dialect.separator, self.dialect.quote)
        finally:
            text.detach()  # the file is closed by who opened it


def open_text(
    file: Any, columns: Sequence[str] | None, where: str, rules: TextRules, say: Callable[[str], None] = LOGGER.info
) -> OpenedText:
    """Find out how a text file is written, and that it has the used columns; what was found is said once."""
    peeked, dialect = look(file, rules.csv, columns, where)
    header = read_header(peeked, dialect, where, columns, is_trusted=rules.is_named)
    columns = header if columns is None else columns
    known = f"read with {dialect.described()}; data.csv sets them"
    check_names(header, columns, where, f"; {known}")
    told, usual = asdict(rules.csv), asdict(Dialect())
    if any(told[key] is None and value != usual[key] for key, value in asdict(dialect).items()):
        say(f"{where} is {known}")
    return OpenedText(file, header, columns, dialect, rules, where)


def read_excel(file: Any, columns: Sequence[str] | None, where: str) -> pd.DataFrame:
    """Read the first sheet; a column that mixes types becomes text."""
    import pandas as pd

    try:
        frame: pd.DataFrame = pd.read_excel(file, engine="openpyxl", keep_default_na=False, na_values=[""])
    except ImportError:
        raise InputError(f"{where}: Excel files need openpyxl: pip install 'dit_dask[excel]', or save it as CSV") from None
    frame = frame.rename(columns=str)
    columns = list(frame.columns) if columns is None else columns
    check_names(list(frame.columns), columns, where)
    frame = frame[list(columns)]
    for name in columns:
        cells = frame[name].dropna()
        if cells.dtype == object and len({type(cell) for cell in cells}) > 1:
            frame = frame.assign(**{name: frame[name].map(str, na_action="ignore")})
    return frame


def _read_parquet(file: Any, columns: Sequence[str] | None, where: str) -> pd.DataFrame:
    import pyarrow as pa

    content, columns = open_parquet(file, columns, where)
    table = content.read(columns=list(columns))
    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, column.name, table.column(place).cast(column.type.value_type))
    return to_frame(table)[list(columns)]


def open_parquet(file: Any, columns: Sequence[str] | None, where: str, coded: Sequence[str] = ()) -> tuple[Any, Sequence[str]]:
    """Open a Parquet file, and check that it has the used columns; some of them are read as the numbers of a dictionary."""
    import pyarrow.parquet as pq

    content = pq.ParquetFile(file, read_dictionary=list(coded) or None)
    names = [name for name in content.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", name)]
    columns = names if columns is None else columns
    check_names(names, columns, where)
    return content, columns


def check_names(names: Sequence[str], columns: Sequence[str], where: str, note: str = "") -> None:
    """Every used column must be there once."""
    for column in columns:
        if column not in names:
            # only a near name is shown: without a header line the names are a person's values
            near = difflib.get_close_matches(column, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else " (is there a header line?)"
            raise InputError(f"{where}: no column {column!r} among {len(names)}{hint}{note}")
        if list(names).count(column) > 1:
            raise InputError(f"{where}: the column {column!r} is there {list(names).count(column)} times")
