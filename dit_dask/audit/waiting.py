"""The parts of a test that wait for values of records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dit_dask.values.arrays import Bools, Codes, Ints

FIRST_LOOK = 1024  # records; a look that finds no unknown one is followed by one of twice as many


class WaitingParts:
    """How many of its records, in their order, a part has: it looks only at the first one that it lacks.

    A record that is known stays known, so each part goes through its records once, however many tasks there are, and no list
    of pairs of records and parts is needed, which would be as long as the table.
    """

    def __init__(self, records_of: Callable[[int], Ints | Codes], parts: int) -> None:
        self._records_of = records_of
        self._position = np.zeros(parts, np.int64)
        self._lacking = np.array([records_of(part)[0] for part in range(parts)], np.int64)
        self._is_complete = np.zeros(parts, bool)

    def advance(self, known: Bools) -> list[int]:
        """Return the parts that lack nothing any more, where they lacked a record before; known[m] of all records."""
        completed = []
        for part in np.flatnonzero(~self._is_complete & known[self._lacking]):
            records = self._records_of(int(part))
            position = _first_unknown(known, records, int(self._position[part]))
            if position == len(records):
                self._is_complete[part] = True
                completed.append(int(part))
            else:
                self._position[part], self._lacking[part] = position, records[position]
        return completed

    def complete(self) -> list[int]:
        """The parts that lack nothing."""
        return [int(part) for part in np.flatnonzero(self._is_complete)]


def _first_unknown(known: Bools, records: Ints | Codes, start: int) -> int:
    """Return the position of the first record from `start` on that is not known, or the number of records."""
    size = FIRST_LOOK
    while start < len(records):
        unknown = np.flatnonzero(~known[records[start : start + size]])
        if len(unknown):
            return start + int(unknown[0])
        start += size
        size *= 2
    return len(records)
