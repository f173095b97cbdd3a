"""Who is attacked: persons with the record whose removal takes them out of the table, and a name for their random streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints
    from dit_dask.values.table import Rows


@dataclass(frozen=True, eq=False)
class AttackedPersons:
    """One entry per person: the removal's record, the number among persons with an equal record, and the rows of each.

    record[m] and copy[m] name the random streams: they depend on the values of the table, not on the order of its rows,
    unless the sanitizer sees rows. person_of[rows] is the place of each used row's person among these, -1 if not attacked.
    """

    record: Ints
    copy: Ints
    person_of: Ints

    def __len__(self) -> int:
        return len(self.record)


def choose_persons(rows: Rows, sample: int | None, seed: int) -> AttackedPersons:
    """Take all persons, or a seeded sample; all where there are not more."""
    everyone = rows.table.persons
    chosen = np.arange(everyone)
    if sample is not None and sample < everyone:
        chosen = np.sort(seeds.stream(seed, "persons.sample").choice(everyone, sample, replace=False))
    place = np.full(everyone, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    if rows.table.subject is not None:
        removed = np.array([record for record, _ in rows.table.removals(np.arange(rows.table.distinct))], np.int64)
        first = removed[np.argsort(rows.table.subject[removed], kind="stable")]  # persons in the order of their numbers
        numbers = np.unique(rows.table.subject)
        person_of = place[np.searchsorted(numbers, rows.table.subject[rows.index])]
        return AttackedPersons(first[chosen], np.zeros(len(chosen), np.int64), person_of)
    order = np.argsort(rows.index, kind="stable")
    starts = np.searchsorted(rows.index[order], rows.index)
    rank = np.empty(rows.used, np.int64)
    rank[order] = np.arange(rows.used)
    copy = rank - starts
    return AttackedPersons(rows.index[chosen].astype(np.int64), copy[chosen], place)
