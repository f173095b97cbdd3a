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
    """One entry per person, in the order of records: whose removal takes them out, and their number among equal ones.

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
    if rows.table.subject is not None:
        removed = np.array([record for record, _ in rows.table.removals(np.arange(rows.table.distinct))], np.int64)
        first = removed[np.argsort(rows.table.subject[removed], kind="stable")]  # persons in the order of their numbers
        numbers = np.unique(rows.table.subject)
        person = np.searchsorted(numbers, rows.table.subject[rows.index])
        return _arrange(first, np.zeros(everyone, np.int64), chosen, person)
    order = np.argsort(rows.index, kind="stable")
    rank = np.empty(rows.used, np.int64)
    rank[order] = np.arange(rows.used)
    copy = rank - np.searchsorted(rows.index[order], rows.index)
    return _arrange(np.asarray(rows.index, np.int64), copy, chosen, np.arange(rows.used))


def _arrange(record: Ints, copy: Ints, chosen: Ints, person: Ints) -> AttackedPersons:
    """Put the chosen persons in the order of their records, which does not depend on that of rows."""
    chosen = chosen[np.lexsort((copy[chosen], record[chosen]))]
    place = np.full(len(record), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return AttackedPersons(record[chosen], copy[chosen], place[person])
