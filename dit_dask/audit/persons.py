"""Distances of persons who have several rows: the largest of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dit_dask.audit.statistics import Distribution
from dit_dask.engines.gain import GainTally

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

Value = TypeVar("Value", np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class PersonDistances:
    """Persons, ascending, with their largest distance, and whether a prediction about any of their rows changes.

    `members` has the largest distances of each of several adversaries, `gains` the tallies of persons, `records` the number
    of tested rows, `distinct` that of different ones.
    """

    person: Ints
    distance: Floats
    changed: Bools
    records: int
    distinct: int
    skipped: int = 0
    gains: Mapping[str, GainTally] = field(default_factory=dict)
    members: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, person: Ints, distance: Floats, changed: Bools, rows: Ints, members: Mapping[str, Floats]) -> PersonDistances:
        """Take distinct records together, each of which stands for so many rows; no number: a skipped one."""
        tested = ~np.isnan(distance)
        persons, groups = number(person[tested])
        largest = {name: largest_of(values[tested], groups) for name, values in members.items()}
        return cls(
            persons,
            largest_of(distance[tested], groups),
            largest_of(changed[tested], groups),
            int(rows[tested].sum()),
            int(tested.sum()),
            int(rows[~tested].sum()),
            members=largest,
        )

    def distribution(self) -> Distribution:
        """Count persons with each distance."""
        ones = np.ones(len(self.person), np.int64)
        members = {name: Distribution.of(distance, ones, 0) for name, distance in self.members.items()}
        found = Distribution.of(self.distance, ones, int(self.changed.sum()))
        counted = replace(found, skipped=self.skipped, tested_rows=self.records, distinct_rows=self.distinct)
        return replace(counted, gains=self.gains, members=members)


def number(person: Ints) -> tuple[Ints, Ints]:
    """Return the distinct persons, ascending, and for each entry its place among them."""
    persons, place = np.unique(person, return_inverse=True)
    return persons, place.ravel()


def largest_of(values: NDArray[Value], groups: Ints) -> NDArray[Value]:
    """Return the largest value of each group; groups are 0, 1, …, and none is empty."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    largest: NDArray[Value] = np.maximum.reduceat(values[order], starts) if len(values) else values
    return largest
