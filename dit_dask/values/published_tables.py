"""Published tables of counts: which cell of each table a record is counted in, and what a reader knows of every count.

Atoms are the finest groups of quasi-identifiers that the tables tell apart: all records of an atom are in the same cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

OUTSIDE = -1  # the cell of records that a table does not count


@dataclass(frozen=True, eq=False)
class Grouping:
    """One table: cell_of[atoms], how many cells there are, and whether counts are by sensitive value."""

    cell_of: Ints
    cells: int
    by_secret: bool


@dataclass(frozen=True, eq=False)
class TableLayout:
    """All tables of a release: step[attribute][code] add up to an atom; weights[atoms] count the tuples of each."""

    steps: tuple[Ints, ...]
    weights: Floats
    groupings: tuple[Grouping, ...]

    def atoms_of(self, codes: Codes) -> Ints:
        """Return (m,): the atom of records with codes[m, d]."""
        found: Ints = np.sum([step[codes[:, place]] for place, step in enumerate(self.steps)], axis=0, dtype=np.int64)
        return found


@dataclass(frozen=True, eq=False)
class KnownCounts:
    """What a published table says of the true counts [cells, n], or [cells, 1]: at least, at most, and the best guess.

    `rate` is that of the noise: a deviation of one from the guess costs so much of the logarithm of the probability. It is None
    where the bounds are certain.
    """

    low: Floats
    high: Floats
    guess: Floats
    rate: float | None = None


@dataclass(frozen=True, eq=False)
class KnownSums:
    """What a table of sums says of each cell: how many persons, whether it is shown, and the bounds of their sum of steps."""

    persons: Ints
    is_shown: Bools
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class TableRelease(Release):
    """A release of tables; as classes it has the cells of those by sensitive value, or the cells of sums.

    steps[n] are the sensitive values as whole numbers, where their sums are published.
    """

    layout: TableLayout | None = None
    known: tuple[KnownCounts, ...] = ()
    sums: tuple[KnownSums, ...] = ()
    steps: Ints | None = None
