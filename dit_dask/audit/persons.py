"""Distances of persons who have several rows: the largest of their rows, merged from parts in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dit_dask.audit.statistics import Distribution
from dit_dask.engines.gain import GainTally, merge_tallies

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
    def of(cls, person: Ints, distance: Floats, changed: Bools, first: Bools, members: Mapping[str, Floats]) -> PersonDistances:
        """Take rows together; `first` marks the first row of each distinct record, no number a skipped row."""
        tested = ~np.isnan(distance)
        persons, groups = number(person[tested])
        largest = {name: largest_of(values[tested], groups) for name, values in members.items()}
        return cls(
            persons,
            largest_of(distance[tested], groups),
            largest_of(changed[tested], groups),
            int(tested.sum()),
            int(first[tested].sum()),
            int((~tested).sum()),
            members=largest,
        )

    def distribution(self) -> Distribution:
        """Count persons with each distance."""
        nobody = np.ones(len(self.person), bool)
        members = {name: Distribution.of(distance, nobody, 0) for name, distance in self.members.items()}
        found = Distribution.of(self.distance, nobody, int(self.changed.sum()))
        counted = replace(found, skipped=self.skipped, tested_rows=self.records, distinct_rows=self.distinct)
        return replace(counted, gains=self.gains, members=members)


def merge_persons(parts: Sequence[PersonDistances]) -> PersonDistances:
    """Put parts together; a person may have rows in several."""
    persons, groups = number(np.concatenate([part.person for part in parts]))
    names = parts[0].members
    return PersonDistances(
        persons,
        largest_of(np.concatenate([part.distance for part in parts]), groups),
        largest_of(np.concatenate([part.changed for part in parts]), groups),
        sum(part.records for part in parts),
        sum(part.distinct for part in parts),
        sum(part.skipped for part in parts),
        {name: merge_tallies([part.gains[name] for part in parts]) for name in parts[0].gains},
        {name: largest_of(np.concatenate([part.members[name] for part in parts]), groups) for name in names},
    )


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
