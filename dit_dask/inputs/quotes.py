"""Quotes of a CSV file that are opened and not closed: the rows after them would silently become one cell."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

from dit_dask.errors import InputError

MOST_LINES = 1000  # of one cell


class CountedLines:
    """A file that counts its lines while it is read."""

    def __init__(self, file: Any) -> None:
        self._file, self._newlines, self._last = file, 0, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all that are left."""
        content: bytes = self._file.read(size)
        self._newlines += content.count(b"\n")
        self._last = content[-1:] or self._last
        return content

    @property
    def lines(self) -> int:
        """How many lines were read; the last one may have no newline."""
        return self._newlines + (self._last not in (b"", b"\n"))


def check_quotes(lines: Iterable[str], columns: int, where: str, separator: str, quote: str) -> None:
    """Refuse a table with a cell that holds whole rows, and name the line where its row starts."""
    usual = csv.field_size_limit(2**20)  # of the whole process, so it is set back
    reader, line = csv.reader(lines, delimiter=separator, quotechar=quote, strict=True), 1
    try:
        for row in reader:
            if any(_holds_rows(cell, columns, separator) for cell in row):
                raise _refusal(where, line)
            line = reader.line_num + 1
    except csv.Error as error:  # its text may hold cells
        raise _refusal(where, line) from error
    finally:
        csv.field_size_limit(usual)


def _refusal(where: str, line: int) -> InputError:
    return InputError(
        f"{where}, line {line}: a quote is opened in this row and not closed where its cell ends; "
        "close it, and write quotes inside a quoted cell twice (data.csv.quote: none if no cell is quoted)"
    )


def _holds_rows(cell: str, columns: int, separator: str) -> bool:
    """Tell whether all whole lines inside a cell have as many separators as a row has, and are too many for an accident."""
    if "\n" not in cell:
        return False
    inner = cell.split("\n")[1:-1]
    if len(inner) >= MOST_LINES:
        return True
    return (
        columns > 1 and len(inner) >= (2 if columns == 2 else 1) and all(line.count(separator) == columns - 1 for line in inner)
    )
