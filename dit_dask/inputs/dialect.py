"""How a text file writes its table: separator, encoding, decimal sign and quotes, found by looking at its beginning."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dit_dask.config.data import SEPARATORS, CsvConfig
from dit_dask.errors import InputError, quote
from dit_dask.inputs.quotes import check_quotes
from dit_dask.values.numbers import DECIMAL

PEEKED_BYTES = 2**20
PEEKED_ROWS = 500
MOST_UNEVEN = 0.1  # of the lines: a separator that cuts more of them unevenly is not the file's
NO_QUOTE = "none"
NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'"}
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
COMMA_DECIMAL = r"\s*[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?\s*"
GROUPED = r"\s*[+-]?\d{1,3}(?:[.,]\d{3})+\s*"  # 1,234 may be a thousand or a little more than one


@dataclass(frozen=True)
class Dialect:
    """How a file is written."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    quote: str = '"'

    def rows(self, text: str, *, strict: bool = False) -> Iterator[list[str]]:
        """Read lines of cells, without empty lines; strictly, a quote that is not closed is an error."""
        lines = io.StringIO(text, newline="")
        reader = csv.reader(
            lines,
            delimiter=self.separator,
            quotechar=None if self.quote == NO_QUOTE else self.quote,
            quoting=csv.QUOTE_NONE if self.quote == NO_QUOTE else csv.QUOTE_MINIMAL,
            strict=strict,
        )
        return (row for row in reader if row)

    def described(self) -> str:
        """The dialect in words."""
        quotes = {'"': "", NO_QUOTE: ", no quotes"}.get(self.quote, f", quotes {self.quote}")
        return f"separator {NAMES[self.separator]}, encoding {self.encoding}, decimal sign {self.decimal!r}{quotes}"


@dataclass(frozen=True)
class Peeked:
    """The beginning of a file: its text, and whether more follows."""

    text: str
    is_cut: bool

    def rows(self, dialect: Dialect, *, strict: bool = False) -> list[list[str]]:
        """The first lines of cells; the last one of a cut text may be cut itself.

        An error below the header ends them, unless strictly: it is found again when the table is read.
        """
        rows: list[list[str]] = []
        try:
            rows.extend(islice(dialect.rows(self.text, strict=strict and not self.is_cut), PEEKED_ROWS + 1))
        except csv.Error:
            if strict or not rows:
                raise
        return rows[:-1] if self.is_cut and 1 < len(rows) <= PEEKED_ROWS else rows


def decode(content: bytes, given: str | None, where: str) -> tuple[Peeked, str]:
    """Decode the beginning of a file by the given encoding, or by the one that it seems to have; also return its name."""
    is_cut = len(content) == PEEKED_BYTES
    encoding = given or _find_encoding(content, where, is_cut=is_cut)
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        text = decoder.decode(content, final=not is_cut)
    except LookupError:
        raise InputError(f"data.csv.encoding must be the name of an encoding; got {quote(encoding)}") from None
    except UnicodeError as error:
        raise InputError(f"{where} is not {encoding} text; set data.csv.encoding") from error
    return Peeked(text.removeprefix("\ufeff"), is_cut), encoding


def _find_encoding(content: bytes, where: str, *, is_cut: bool) -> str:
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return encoding
    if b"\0" in content:
        odd, even = content[1::2].count(0), content[::2].count(0)
        if odd and even:
            raise InputError(f"{where} holds zero bytes, as no text does; set data.csv.encoding if it is text")
        return "utf-16-le" if odd else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content, final=not is_cut)
    except UnicodeDecodeError:
        return "cp1252"  # latin-1 with letters in place of control characters
    return "utf-8"


def find_dialect(peeked: Peeked, encoding: str, given: CsvConfig, columns: Sequence[str] | None, where: str) -> Dialect:
    """Find what is not given; where two readings are equally good, say which key decides."""
    quotes = [given.quote] if given.quote else ['"', "'"]
    separators = [given.separator] if given.separator else list(SEPARATORS)
    candidates = [Dialect(separator, encoding, quote=sign) for sign in quotes for separator in separators]
    fitting = [dialect for dialect in candidates if _fits(peeked, dialect)]
    if given.quote is None:
        fitting = _by_quote(peeked, fitting, where)
    named = [dialect for dialect in fitting if _names(peeked, dialect, columns)]
    if len(fitting) > 1 and len(named) != 1:  # none has the columns, or several have
        found = " or ".join(dict.fromkeys(NAMES[dialect.separator] for dialect in fitting))
        raise InputError(f"{where}: the separator may be {found}; set data.csv.separator")
    widest = max(candidates, key=lambda dialect: _header_width(peeked, dialect))
    chosen = (named or fitting or [widest])[0]
    rows = peeked.rows(chosen)
    lines = peeked.rows(replace(chosen, quote=NO_QUOTE))
    if given.quote is None and _spans_lines(peeked, chosen) and all(len(line) == len(lines[0]) for line in lines):
        _check_quotes(peeked, chosen, where)
        raise InputError(f"{where}: quotes may be around several lines or be part of the cells; set data.csv.quote")
    decimal = given.decimal or _find_decimal(rows[1:])
    return Dialect(chosen.separator, encoding, decimal, chosen.quote)


def _spans_lines(peeked: Peeked, dialect: Dialect) -> bool:
    """Tell whether quotes are around several lines."""
    rows = peeked.rows(dialect)
    return len(rows) != len(peeked.rows(replace(dialect, quote=NO_QUOTE))) or any(
        "\n" in cell or "\r" in cell for row in rows for cell in row
    )


def _check_quotes(peeked: Peeked, dialect: Dialect, where: str) -> None:
    """Refuse a quote that is not closed."""
    columns = _header_width(peeked, dialect)
    check_quotes(io.StringIO(peeked.text, newline=""), columns, where, dialect.separator, dialect.quote)


def _header_width(peeked: Peeked, dialect: Dialect) -> int:
    try:
        return len(next(dialect.rows(peeked.text), []))
    except csv.Error:
        return 0


def _fits(peeked: Peeked, dialect: Dialect) -> bool:
    """Tell whether a separator cuts the header and nearly all lines into the same number of cells, two or more."""
    try:
        header, *rows = peeked.rows(dialect, strict=True) or [[]]
    except csv.Error:
        return False
    uneven = sum(len(row) != len(header) for row in rows)
    return len(header) > 1 and uneven <= MOST_UNEVEN * len(rows)


def _names(peeked: Peeked, dialect: Dialect, columns: Sequence[str] | None) -> bool:
    return columns is not None and set(columns) <= set(peeked.rows(dialect)[0])


def _by_quote(peeked: Peeked, fitting: Sequence[Dialect], where: str) -> list[Dialect]:
    """Keep one dialect a separator."""
    kept = []
    for separator in dict.fromkeys(dialect.separator for dialect in fitting):
        by_quote = {dialect.quote: dialect for dialect in fitting if dialect.separator == separator}
        double, single = by_quote.get('"'), by_quote.get("'")
        if double is None and single is not None and not _has_quoted_cells(peeked, single):
            swallowing = replace(single, quote='"')
            if _spans_lines(peeked, swallowing):
                _check_quotes(peeked, swallowing, where)
        is_single = double is None or (single is not None and _has_single_quotes(peeked, double, single, where))
        kept.append(by_quote["'" if is_single else '"'])
    return kept


def _has_single_quotes(peeked: Peeked, double: Dialect, single: Dialect, where: str) -> bool:
    """Tell whether single quotes are around the names, doubled, or needed for even lines; refuse a file with both quotes."""
    rows = peeked.rows(double)
    if any(len(row) != len(rows[0]) for row in peeked.rows(single)):
        return False
    if all(re.fullmatch(r"'.*'", name, re.DOTALL) for name in rows[0]):
        return True
    if '"' in peeked.text and re.search(rf'(?:^|[\n\r]|{re.escape(double.separator)})"', peeked.text):
        if _has_quoted_cells(peeked, single):
            raise InputError(f"{where}: cells are in single and in double quotes; set data.csv.quote")
        return False
    is_doubled = "'" in peeked.text and any(re.fullmatch(r"(?s)'.*''.*'", cell) for row in rows for cell in row)
    return is_doubled or any(len(row) != len(rows[0]) for row in rows)


def _has_quoted_cells(peeked: Peeked, dialect: Dialect) -> bool:
    """Tell whether quotes are around some cell of one line."""
    separator, quote = re.escape(dialect.separator), dialect.quote
    quoted = rf"(?:^|[\n\r]|{separator}){quote}[^\n\r]*{quote}(?:$|[\n\r]|{separator})"
    return quote in peeked.text and re.search(quoted, peeked.text) is not None


def _find_decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return a comma if columns of numbers have one and none has a point; groups of three digits decide nothing."""
    width = max(map(len, rows), default=0)
    signs, is_number = set(), re.compile(f"{COMMA_DECIMAL}|{DECIMAL}").fullmatch
    for place in range(width):
        cells = [row[place] for row in rows if place < len(row) and row[place].strip()]
        numbers = [cell for cell in cells if is_number(cell)]
        if 2 * len(numbers) >= len(cells):  # the others may be marks of missing cells
            signs |= {sign for cell in numbers for sign in ",." if sign in cell and not re.fullmatch(GROUPED, cell)}
    return "," if signs == {","} else "."


@dataclass(frozen=True)
class NumberColumns:
    """Which columns are read as numbers and which as text; the others are numbers if all their cells are."""

    numbers: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def are_checked(self, name: str, dialect: Dialect) -> bool:
        """Tell whether the cells of a column may be numbers that are written in another way."""
        return name not in self.texts and (name in self.numbers or dialect.decimal == ",")

    def with_points(
        self, name: str, distinct: Sequence[str], dialect: Dialect, *, is_given: bool, where: str
    ) -> dict[str, str]:
        """Return the cells of a column that have a decimal comma, and how they are written with a point.

        Refuse numbers whose points or groups contradict the decimal sign.
        """
        if name in self.numbers:
            _refuse_groups(name, distinct, dialect, where, is_given=is_given)
        if dialect.decimal != "," or not (name in self.numbers or _are_numbers(distinct)):
            return {}
        return {cell: cell.replace(",", ".") for cell in distinct if re.fullmatch(COMMA_DECIMAL, cell)}


def _are_numbers(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if cell.strip()]
    return any("," in cell for cell in given) and all(re.fullmatch(COMMA_DECIMAL, cell) for cell in given)


def _refuse_groups(name: str, cells: Sequence[str], dialect: Dialect, where: str, *, is_given: bool) -> None:
    pointed = [cell for cell in cells if "." in cell and re.fullmatch(DECIMAL, cell)]
    if pointed and dialect.decimal == ",":
        raise InputError(
            f"{where}: column {name!r} has numbers with a point, and the decimal sign is ','; set data.csv.decimal, "
            "or remove the points if they group thousands"
        )
    may_be_groups = dialect.separator == ";" and not is_given and 0 < len(pointed) < len(cells)
    if may_be_groups and all(re.fullmatch(GROUPED, cell) and not cell.strip("+- ").startswith("0") for cell in pointed):
        raise InputError(
            f"{where}: column {name!r} has numbers whose points may be decimal signs or group thousands; set data.csv.decimal"
        )
