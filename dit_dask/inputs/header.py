"""The header line of a CSV file: read as CSV, and refused where it is a person's row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from dit_dask.errors import InputError
from dit_dask.inputs.dialect import COMMA_DECIMAL, PEEKED_BYTES, Dialect, Peeked
from dit_dask.values.numbers import DECIMAL

EMAIL = r"[^@\s]+@[^@\s]+\.\w+"
USUAL_WORDS = re.compile(
    r"(?i)\b(?:address|age|amount|birth|blood|category|city|class|code|count|country|date|department|diagnosis|education|email|first"
    r"|full|gender|group|hour|id|income|index|job|kind|label|last|level|marital|month|name|nationality|number|occupation|phone"
    r"|postcode|race|rate|region|score|sex|state|status|street|surname|time|title|total|town|type|value|work|year|zip)s?\b"
)
MOST_CELLS = 0.9  # of a column must be alike; the others may be missing
DATE = r"\d{4}-\d{2}-\d{2}.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}"


def read_header(
    peeked: Peeked, dialect: Dialect, where: str, columns: Sequence[str] | None = None, *, is_trusted: bool = False
) -> list[str]:
    """Return the names of the columns, which may hold quoted newlines.

    A line that looks like a row is refused, unless the config says that it has names, or it has all `columns` that are used.
    """
    rows = peeked.rows(dialect)
    if not rows:
        raise InputError(f"{where} is empty")
    if peeked.is_cut and len(rows) == 1:
        raise InputError(f"{where}: the header line is longer than {PEEKED_BYTES:,} bytes")
    header = rows[0]
    names = [_with_point(name, dialect) for name in header]
    below = [[_with_point(cell, dialect) for cell in row] for row in rows[1:] if len(row) == len(header)]
    is_known = is_trusted or (columns is not None and set(columns) <= set(header))
    alike = 0 if is_known else count_cells(names, below)
    if below and 3 * alike >= len(header) > 0 < alike:
        raise InputError(
            f"{where}: the first line looks like a row of data: {alike} of its {len(header)} cells are like those below them; "
            "put a line with the names of the columns above it, or set data.header: true if these are names"
        )
    return header


def _with_point(cell: str, dialect: Dialect) -> str:
    return cell.replace(",", ".") if dialect.decimal == "," and re.fullmatch(COMMA_DECIMAL, cell) else cell


def count_cells(header: Sequence[str], below: Sequence[Sequence[str]]) -> int:
    """Count the cells of a first line that are like the cells below them."""
    columns = [[cell.strip() for cell in column] for column in zip(*below, strict=True)]
    is_named = any(USUAL_WORDS.search(re.sub(r"[_-]", " ", name)) for name in header if not re.search(r"\d", name))
    return sum(
        _is_cell(header, place, cells) or (not is_named and _is_of_same_words(header[place].strip(), cells))
        for place, cells in enumerate(columns)
    )


def _is_cell(header: Sequence[str], place: int, cells: Sequence[str]) -> bool:
    """Tell whether a name looks like the cells of its own column."""
    name, present = header[place].strip(), [cell for cell in cells if cell]
    if not name or not present or _is_counted(header, place):
        return False
    if any(re.fullmatch(form, name) for form in (DECIMAL, DATE)):
        return all(re.fullmatch(form, cell) for cell in present for form in [DECIMAL if re.fullmatch(DECIMAL, name) else DATE])
    if name in present:
        return True
    if re.fullmatch(EMAIL, name):
        return _is_most(re.fullmatch(EMAIL, cell) is not None for cell in present)
    has_digits = re.search(r"\d", name) is not None
    return has_digits and len(present) > 1 and _is_most(_form(cell) == _form(name) for cell in present)


def _is_of_same_words(name: str, cells: Sequence[str]) -> bool:
    """Tell whether a text has as many words, written with capitals alike, as most texts below it, which all differ."""
    present = [cell for cell in cells if cell]
    shape = _shape(name)
    is_telling = " " in shape or "A" in shape
    return (
        is_telling
        and len(present) > 1
        and len(set(present)) == len(present)
        and _is_most(_shape(cell) == shape for cell in present)
    )


def _is_most(tests: Iterable[bool]) -> bool:
    found = list(tests)
    return sum(found) >= MOST_CELLS * len(found)


def _is_counted(header: Sequence[str], place: int) -> bool:
    """Tell whether a name is one of ascending numbers such as 0, 1, 2 or 2010, 2015, 2020 or 0.1, 0.5, 0.9."""
    numbers = [float(name) for name in header if re.fullmatch(r"\d{1,4}(\.\d+)?", name)]
    is_number = re.fullmatch(r"\d{1,4}(\.\d+)?", header[place]) is not None
    return is_number and len(numbers) > 1 and all(before < after for before, after in pairwise(numbers))


def _form(text: str) -> str:
    """Write every run of letters as a, and every run of digits as 9."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))


def _shape(text: str) -> str:
    """Write each word as A or a, by its first letter."""
    words = ["A" if word[:1].isupper() else "a" for word in text.split()]
    return " ".join(words)
