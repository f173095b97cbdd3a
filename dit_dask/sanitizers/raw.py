"""No sanitising at all: the papers' k = 1, the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Difference, Ranges, Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.sanitizers.claims import Claim
    from dit_dask.values.arrays import Bools, Ints


@dataclass(frozen=True)
class Raw:
    """Publishes every record as it is."""

    claim: Claim | None = None

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """One class for each distinct tuple of quasi-identifiers."""
        return _publish(table)

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[Release]:
        """Yield the release without each of the distinct records, or its person: that of the whole table with fewer counts."""
        base, own = _publish(table), number_tuples(table)
        for record in records.tolist():
            removed = np.array([record]) if table.subject is None else np.flatnonzero(table.subject == table.subject[record])
            weights = np.ones(1, np.int64) if table.subject is None else table.weights[removed]
            counts = base.counts.copy()
            np.subtract.at(counts, (own[removed], table.secret[removed]), weights)
            gone = np.unique(own[removed])
            is_left = counts[gone].any(axis=1)
            kept = np.ones(len(counts), bool)
            kept[gone[~is_left]] = False
            new = (np.cumsum(kept) - 1)[gone[is_left]]
            changed = replace(base, counts=counts)
            yield replace(changed if is_left.all() else changed.only(kept), difference=Difference(base, gone, new))


@lru_cache(maxsize=2)
def _publish(table: Table) -> Release:
    """Count the records of each tuple; kept, so that what is learned from it is learned once."""
    new = is_first_of_tuple(table)
    counts = np.zeros((new.sum(), len(table.schema.sensitive.levels)), np.int64)
    np.add.at(counts, (number_tuples(table), table.secret), table.weights)  # equal records of two persons are two
    return Release(table.schema, Ranges(table.codes[new], table.codes[new]), counts)


def number_tuples(table: Table) -> Ints:
    """Return (records,): equal numbers are equal tuples of quasi-identifiers."""
    return np.cumsum(is_first_of_tuple(table)) - 1


def is_first_of_tuple(table: Table) -> Bools:
    """Return (records,): whether a record is the first with its tuple of quasi-identifiers."""
    first = np.ones(table.distinct, bool)
    first[1:] = (table.codes[1:] != table.codes[:-1]).any(axis=1)  # distinct records are in lexicographic order
    return first


def _build(_parameters: Mapping[str, Any], _context: Context) -> Raw:
    return Raw()


KIND = Kind(Record(), _build, disjoint=True)
