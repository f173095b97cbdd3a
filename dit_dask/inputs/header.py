"""The header line of a CSV file: read as CSV, and refused where it is a person's row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

from dit_dask.errors import InputError
from dit_dask.values.numbers import DECIMAL

PEEKED_BYTES = 2**20
PEEKED_ROWS = 200
DATE = r"\d{4}-\d{2}-\d{2}.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}"


def read_header(file: Any, where: str) -> list[str]:
    """Return the names of the columns, and set the file back to its start; names may hold quoted newlines."""
    content: bytes = file.read(PEEKED_BYTES)
    file.seek(0)
    is_cut = len(content) == PEEKED_BYTES
    text = content.decode("utf-8-sig", errors="replace" if is_cut else "strict")
    try:
        rows = list(islice(csv.reader(io.StringIO(text, newline="")), PEEKED_ROWS + 1))
    except csv.Error as error:
        raise InputError(f"{where}: the header line is not CSV: {error}") from error
    if not rows or not rows[0]:
        raise InputError(f"{where} is empty")
    if is_cut and len(rows) == 1:
        raise InputError(f"{where}: the header line is longer than {PEEKED_BYTES:,} bytes")
    header = rows[0]
    below = [row for row in rows[1 : -1 if is_cut else None] if len(row) == len(header)]
    alike = sum(_is_cell(header, place, [row[place] for row in below]) for place in range(len(header)))
    if below and 3 * alike >= len(header):
        raise InputError(
            f"{where}: the first line looks like a row of data: {alike} of its {len(header)} cells are like those below them; "
            "put a line with the names of the columns above it"
        )
    return header


def _is_cell(header: Sequence[str], place: int, cells: Sequence[str]) -> bool:
    """Tell whether a name looks like the cells of its own column."""
    name, cells = header[place].strip(), [cell.strip() for cell in cells]
    if not name or _is_counted(header, place):
        return False
    if any(re.fullmatch(form, name) for form in (DECIMAL, DATE)):
        return all(re.fullmatch(form, cell) for cell in cells for form in [DECIMAL if re.fullmatch(DECIMAL, name) else DATE])
    has_digits = re.search(r"\d", name) is not None
    return name in cells or (has_digits and len(cells) > 1 and all(_form(cell) == _form(name) for cell in cells))


def _is_counted(header: Sequence[str], place: int) -> bool:
    """Tell whether a name is one of ascending numbers such as 0, 1, 2 or 2010, 2015, 2020 or 0.1, 0.5, 0.9."""
    numbers = [float(name) for name in header if re.fullmatch(r"\d{1,4}(\.\d+)?", name)]
    is_number = re.fullmatch(r"\d{1,4}(\.\d+)?", header[place]) is not None
    return is_number and len(numbers) > 1 and all(before < after for before, after in pairwise(numbers))


def _form(text: str) -> str:
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))
