"""Counts without all rows of a person, for tables that are published raw or fully suppressed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.engines.exact_counts import Counts, Needs, allocate, count_alike, count_by_secret
from dit_dask.sanitizers.raw import number_tuples
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

MOST_PAIRS = 2**20  # of records of one person that are compared at a time


class PersonCounts:
    """Counts of equal values and tuples, or of everybody if `suppressed`; a place is the number of the record."""

    def __init__(self, table: Table, subject: Ints, *, suppressed: bool) -> None:
        self.table, self.suppressed, self.places = table, suppressed, np.arange(table.distinct)
        self.secrets = len(table.schema.sensitive.levels)
        self.totals = count_by_secret(table.secret, table.weights, self.secrets)
        self._order = np.argsort(subject, kind="stable")
        ascending = subject[self._order]
        self._first, self._last = (np.searchsorted(ascending, subject, side) for side in ("left", "right"))

    def count(self, targets: Ints, needs: Needs) -> Iterator[Counts]:
        """Count the records that share a value or the tuple with each target, then take all rows of its person away."""
        table = self.table
        coverage, fallen = allocate(len(targets), table.codes.shape[1], self.secrets, needs)
        if self.suppressed:
            coverage[:], fallen[:] = self.totals, self.totals
        else:
            for attribute, codes in enumerate(table.codes.T if needs.coverage else ()):
                coverage[:, attribute] = count_alike(codes, table.secret, table.weights, self.secrets, targets)
            if needs.fallen:
                fallen[:] = count_alike(number_tuples(table), table.secret, table.weights, self.secrets, targets)
        yield Counts(coverage, fallen, self.totals, np.full(len(targets), -1, np.int32))
        totals = np.tile(self.totals, (len(targets), 1))
        for place, record in self._pairs(targets):
            own, secret, weight = table.codes[targets[place]], table.secret[record], table.weights[record].astype(np.int32)
            is_same = (own == table.codes[record]) | self.suppressed
            np.subtract.at(totals, (place, secret), weight)
            if needs.coverage:
                attributes = np.arange(own.shape[1])
                np.subtract.at(coverage, (place[:, None], attributes, secret[:, None]), weight[:, None] * is_same)
            if needs.fallen:
                np.subtract.at(fallen, (place, secret), weight * is_same.all(axis=1))
        if needs.fallen:
            alone = ~fallen.any(axis=1)  # no class covers them any more: they fall into the whole release
            fallen[alone] = totals[alone]
        yield Counts(coverage, fallen, totals, np.full(len(targets), -1, np.int32))

    def _pairs(self, targets: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield places among the targets with the records of their persons, so many pairs at a time."""
        lengths = self._last[targets] - self._first[targets]
        cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // MOST_PAIRS)) + 1
        for block in np.split(np.arange(len(targets)), cuts):
            place = np.repeat(block, lengths[block])
            starts = np.cumsum(lengths[block]) - lengths[block]
            inside = np.arange(len(place)) - np.repeat(starts, lengths[block])
            yield place, self._order[self._first[targets[place]] + inside]


def naive_bayes(coverage: Codes, totals: Ints) -> Floats:
    """Return (t, n): the beliefs of Bernoulli naive Bayes where totals[t, n] differ by target."""
    with np.errstate(divide="ignore"):
        scores = np.log(totals) + (np.log(coverage + 1.0) - np.log(totals + 2.0)[:, None]).sum(axis=1)
    unscaled = np.exp(scores - scores.max(axis=1, keepdims=True))
    beliefs: Floats = unscaled / unscaled.sum(axis=1, keepdims=True)
    return beliefs
