"""The keys of `data`: where a table is, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dit_dask.config.constraints import Anything, Choice, Field, Flag, Integer, ListOf, MapOf, OneOf, Record, Text

Mark: TypeAlias = str | int | float
STORAGE_OPTIONS = Field(
    MapOf(Anything()),
    {},
    description="passed to the filesystem; ${NAME} reads the environment",
    secret=True,
    affects_result=False,
)
MARK = OneOf([((str, int, float), Anything())], "a text or a number")
DROP_ROWS, OWN_CATEGORY = "drop", "category"
SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Latest:
    """A source that is whatever a glob or a pointer file means today."""

    latest: str


@dataclass(frozen=True)
class Sample:
    """A seeded sample of rows."""

    rows: int
    seed: int


@dataclass(frozen=True)
class CsvConfig:
    """How the text files of a source are written; what is not given is found by looking at the file."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    quote: str | None = None


@dataclass(frozen=True)
class DataConfig:
    """The keys of `data`."""

    source: str | Latest = field(repr=False)  # a URL may hold a password
    storage_options: Mapping[str, Any] = field(repr=False)
    missing: Sequence[Mark] | Mapping[str, Sequence[Mark]]
    limit: int | None
    sample: Sample | None
    csv: CsvConfig | None = None
    missing_as: str = DROP_ROWS
    header: bool = False

    @property
    def url(self) -> str:
        """The source as it was written."""
        return self.source if isinstance(self.source, str) else self.source.latest

    def marks(self, column: str) -> set[str]:
        """The texts that mark a missing cell of a column; the empty cell is always one."""
        given = self.missing.get(column, []) if isinstance(self.missing, Mapping) else self.missing
        return {"", *(str(mark) for mark in given)}


LATEST = Record(
    {"latest": Field(Text(), description="a glob, whose last name counts, or a small file that names the newest one")}, Latest
)
CSV = Record(
    {
        "separator": Field(Choice(SEPARATORS), None, description="of cells: a comma, a semicolon, a tab or a bar"),
        "encoding": Field(Text(), None, description="such as utf-8, utf-16, cp1252 or latin-1"),
        "decimal": Field(Choice((".", ",")), None, description="the decimal sign of numbers"),
        "quote": Field(Choice(('"', "'", "none")), None, description="around cells that hold a separator"),
    },
    CsvConfig,
)
DATA = Record(
    {
        "source": Field(
            OneOf([(str, Text()), (dict, LATEST)], "a path, a URL, or {latest: URL}"),
            description="path or fsspec URL of .csv, .tsv (also .gz, .zst), .parquet or .xlsx files; globs; dit://census; "
            "or {latest: URL}",
        ),
        "storage_options": STORAGE_OPTIONS,
        "missing": Field(
            OneOf([(list, ListOf(MARK)), (dict, MapOf(ListOf(MARK)))], "a list of marks, or a mapping from columns to lists"),
            [],
            description="marks of missing cells, for all columns or by column; empty cells are always missing",
        ),
        "limit": Field(Integer(1), None, description="use the first N complete rows"),
        "sample": Field(
            Record({"rows": Field(Integer(1)), "seed": Field(Integer(0), 0)}, Sample),
            None,
            description="use a seeded sample of complete rows",
        ),
        "csv": Field(CSV, None, description="how text files are written; found by looking unless given", only_if_set=True),
        "missing_as": Field(
            Choice((DROP_ROWS, OWN_CATEGORY)),
            DROP_ROWS,
            description="rows with a missing cell are dropped, or the cell is a category of its own (not of numbers)",
            only_if_set=True,
        ),
        "header": Field(
            Flag(),
            False,
            description="the first line of CSV files has names, even if it looks like a row of data",
            affects_result=False,
        ),
    },
    DataConfig,
)
