"""Whose rows belong together: persons are numbered in the order in which they first appear; their ids go nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.inputs.encode import check_single_type
from dit_dask.values.numbers import DECIMAL

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Ints

MARKS_OF_MISSING = frozenset(("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "--", ".", "?", "missing", "unknown"))


@dataclass(frozen=True, eq=False)
class Persons:
    """The person of each used row, or None where every person has one row; and what makes the ids doubtful."""

    person: Ints | None
    doubts: tuple[str, ...] = ()


def number_persons(cells: pd.Series[Any], missing: Bools) -> Persons:
    """Number the persons of used rows; missing[n] marks the rows without an id."""
    import pandas as pd

    name = str(cells.name)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"schema.subject: column {name!r} must have a value in every used row; it is missing in {int(missing.sum()):,} "
            f"rows, first in used row {first}"
        )
    check_single_type(name, cells)
    person, ids = pd.factorize(cells)
    doubts = tuple(_doubts(name, [str(one) for one in ids], len(cells)))
    if len(ids) == len(cells):
        return Persons(None, doubts)
    if len(ids) < 2:
        raise InputError(f"schema.subject: at least 2 persons are needed to remove one; all rows have the same {name!r}")
    return Persons(person.astype(np.int64), doubts)


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
