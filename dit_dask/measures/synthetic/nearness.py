"""What the nearest real records of the synthetic ones tell: statistics of who is nearest, by tails of the distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.measures.synthetic.relabelling import Statistic, share_hits
from dit_dask.measures.synthetic.space import Neighbours, unique_rows

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

TAILS = (0.005, 0.01, 0.02, 0.05, 0.2)
FEWEST = 5
RATES = (0.0003, 0.001, 0.003, 0.01)
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Nearness:
    """Neighbours of synthetic records among the real ones; group[r] is the distinct row of real record r."""

    neighbours: Neighbours
    group: Ints
    members: Ints

    @classmethod
    def of(cls, neighbours: Neighbours, rows: Floats) -> Nearness:
        """Group the encoded real rows in which the neighbours were searched."""
        _, group, members = unique_rows(rows)
        return cls(neighbours, group, members)

    @property
    def identical(self) -> Bools:
        """Return which synthetic records are equal to a real one."""
        at_zero: Bools = self.neighbours.first == 0
        return at_zero

    @property
    def shares(self) -> Floats:
        """Return (N,): of how many synthetic records each real one is the nearest."""
        return self._count("", "", np.ones(len(self.neighbours.first), bool)).weight

    def replace_records(self, where: Ints, others: Neighbours) -> Nearness:
        """Put other records in the place of some synthetic ones."""
        columns = {}
        for name in ("first", "second", "row"):
            column = getattr(self.neighbours, name).copy()
            column[where] = getattr(others, name)
            columns[name] = column
        return replace(self, neighbours=Neighbours(**columns))

    def statistics(self, family: str, subject: str = "", tails: Sequence[float] = TAILS) -> Iterator[Statistic]:
        """Yield the statistics: all records, the closest ones, and those that single one real record out."""
        for what, chosen in self._parts(tails):
            yield self._count(family, f"{subject}{what}", chosen)

    def count_identical(self, family: str, subject: str = "") -> Statistic:
        """Count the records that are equal to a real one."""
        return self._count(family, f"{subject}identical records", self.identical)

    def weigh_identical(self, family: str, density: Floats) -> Iterator[Statistic]:
        """Count identical records, unlikely ones more: density[row] is that of a distinct row, NaN where it is not known.

        The weight is what a match tells about copies if so few of them would be expected by chance.
        """
        row = self.neighbours.row[self.identical]
        expected = density[row] * len(self.neighbours.first)
        for rate in RATES:
            hits = np.bincount(row, np.log1p(rate / np.maximum(expected, LEAST)), len(self.members))
            yield Statistic.of(family, "identical records, rare ones first", share_hits(hits, self.group, self.members))

    def _count(self, family: str, what: str, chosen: Bools) -> Statistic:
        hits = np.bincount(self.neighbours.row[chosen], minlength=len(self.members))
        return Statistic.of(family, what, share_hits(hits, self.group, self.members))

    def _parts(self, tails: Sequence[float]) -> Iterator[tuple[str, Bools]]:
        first, second = self.neighbours.first, self.neighbours.second
        yield "all records", np.ones(len(first), bool)
        gap = second - first
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(second > 0, first / second, 1.0)
        for tail in tails:
            count = max(FEWEST, math.ceil(tail * len(first)))
            if count >= len(first):
                continue
            yield f"the {tail:.1%} closest", first <= np.partition(first, count - 1)[count - 1]
            yield f"the {tail:.1%} farthest from the second nearest", (gap >= np.partition(gap, -count)[-count]) & (gap > 0)
            yield f"the {tail:.1%} with the smallest NNDR", (ratio <= np.partition(ratio, count - 1)[count - 1]) & (ratio < 1)
