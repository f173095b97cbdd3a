"""The header line of a CSV file: read as CSV, and refused where it is a person's row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dit_dask.errors import InputError
from dit_dask.inputs.dialect import COMMA_DECIMAL, PEEKED_BYTES, Dialect, Peeked
from dit_dask.values.numbers import DECIMAL

DATE = r"\d{4}-\d{2}-\d{2}.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}"


def read_header(peeked: Peeked, dialect: Dialect, where: str) -> list[str]:
    """Return the names of the columns, which may hold quoted newlines."""
    rows = peeked.rows(dialect)
    if not rows:
        raise InputError(f"{where} is empty")
    if peeked.is_cut and len(rows) == 1:
        raise InputError(f"{where}: the header line is longer than {PEEKED_BYTES:,} bytes")
    header = rows[0]
    below = [[_with_point(cell, dialect) for cell in row] for row in rows[1:] if len(row) == len(header)]
    names = [_with_point(name, dialect) for name in header]
    alike = sum(_is_cell(names, place, [row[place] for row in below]) for place in range(len(header)))
    if below and 3 * alike >= len(header):
        raise InputError(
            f"{where}: the first line looks like a row of data: {alike} of its {len(header)} cells are like those below them; "
            "put a line with the names of the columns above it"
        )
    return header


def _with_point(cell: str, dialect: Dialect) -> str:
    return cell.replace(",", ".") if dialect.decimal == "," and re.fullmatch(COMMA_DECIMAL, cell) else cell


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
