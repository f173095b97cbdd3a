"""Whose rows belong together: persons are numbered in the order in which they first appear; their ids go nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from dit_dask.errors import InputError
from dit_dask.inputs.encode import Column, check_single_type
from dit_dask.values.numbers import DECIMAL

MARKS_OF_MISSING = frozenset(("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "--", ".", "?", "missing", "unknown"))


def check_ids(column: Column, missing: int, first_missing: Callable[[], int]) -> tuple[bool, tuple[str, ...]]:
    """Check the ids of persons; return whether some have several rows, and what makes the ids doubtful.

    So many used rows have no id; `first_missing` finds the first of them.
    """
    name = column.name
    if missing:
        raise InputError(
            f"schema.subject: column {name!r} must have a value in every used row; it is missing in {missing:,} "
            f"rows, first in used row {first_missing()}"
        )
    check_single_type(name, column.cells)
    rows, ids = int(column.counts.sum()), len(column.cells)
    doubts = tuple(_doubts(name, [str(one) for one in column.cells], rows))
    if ids < 2 <= rows:
        raise InputError(f"schema.subject: at least 2 persons are needed to remove one; all rows have the same {name!r}")
    return ids < rows, doubts


def _doubts(name: str, ids: Sequence[str], rows: int) -> Iterator[str]:
    """Say what is strange about ids, without naming one."""
    if len(ids) == rows:
        yield f"every value of schema.subject {name!r} has one row: if persons have several rows, it is not their id"
    alike = len(ids) - len({_plain(one) for one in ids})
    if alike:
        yield (
            f"{alike:,} of {len(ids):,} values of schema.subject {name!r} differ from others only in spaces, case, zeros or "
            "signs of numbers: if they are the same persons, write them alike"
        )
    if MARKS_OF_MISSING & {one.strip().casefold() for one in ids}:
        yield (
            f"schema.subject {name!r} has a value such as NA, which counts as one person: if it means missing, name it in "
            "data.missing"
        )


def _plain(text: str) -> str:
    """An id as most would read it."""
    plain = text.strip().casefold()
    if re.fullmatch(DECIMAL, plain):
        plain = re.sub(r"\.0+$", "", plain)
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", plain)
