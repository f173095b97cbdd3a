"""The reader of published tables: the most likely counts of every group that the tables tell apart (decision 025).

Of all counts that the published numbers allow, those with the largest entropy are taken: those that most tables of single
records have. What tables imply by subtraction is added first, so that a group which two tables differ by is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.subtraction import subtract_counts, subtract_sums
from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.kernels.exchangeable import term_shares
from dit_dask.values.published_tables import OUTSIDE, Grouping, KnownCounts, TableLayout, TableRelease
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Codes, Floats

MOST_SWEEPS = 500
CONVERGED = 1e-10  # change of any sum in a sweep, relative to the largest count
NOTHING = 1e-7  # counts below are zero: what is left of a group that must be empty
POSSIBLE = 0.5  # a count that is printed as 0 and may be more
MEMO_FLOATS = 2**22


@dataclass(frozen=True, eq=False)
class PublishedTables:
    """Beliefs are the shares of the most likely counts in the target's group; a raw table is one table of all columns.

    It reads the releases of one sanitizer, so that equal published numbers have equal counts.
    """

    memo: dict[bytes, Floats] = field(default_factory=dict)

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """A target whose group is empty gets the shares of all records; all values alike where nothing is known."""
        if not isinstance(release, TableRelease) or release.layout is None:
            return ConditionalFrequency().beliefs(release, encoder, target)
        if release.sums:
            return sum_beliefs(release, target)
        counts = self.counts(release)
        own = counts[release.layout.atoms_of(target[None])[0]]
        for chosen in (own, counts.sum(axis=0)):
            if chosen.sum() > 0:
                shares: Floats = chosen / chosen.sum()
                return shares
        return np.full(counts.shape[1], 1 / counts.shape[1])

    def counts(self, release: TableRelease) -> Floats:
        """Return (atoms, n): the most likely counts; values are solved one by one where all tables are by value."""
        if release.layout is None:
            raise TypeError("a release of tables has a layout")
        secrets = release.counts.shape[1]
        if not all(grouping.by_secret for grouping in release.layout.groupings):
            return solve(release.layout, release.known, secrets)
        columns = []
        for secret in range(secrets):
            known = [_column(one, secret) for one in release.known]
            key = b"".join(part.tobytes() for one in known for part in (one.low, one.high, one.guess))
            if key not in self.memo:
                if (len(self.memo) + 1) * len(release.layout.weights) > MEMO_FLOATS:
                    self.memo.clear()
                self.memo[key] = solve(release.layout, known, 1)[:, 0]
            columns.append(self.memo[key])
        return np.stack(columns, axis=1)


def sum_beliefs(release: TableRelease, target: Codes) -> Floats:
    """What the smallest known sum of the target's group says of one of its terms; all values alike where none is known.

    Known are the cells that are shown, and what is left of a cell if cells of other tables lie inside it.
    """
    if release.layout is None or release.steps is None:
        raise TypeError("a release of sums has a layout and steps")
    atom = int(release.layout.atoms_of(target[None])[0])
    found = []
    for grouping, one in subtract_sums(release.layout.groupings, release.sums):
        cell = int(grouping.cell_of[atom])
        if cell != OUTSIDE and one.is_shown[cell]:
            found.append((int(one.persons[cell]), float(one.low[cell]), float(one.high[cell])))
    for persons, low, high in sorted(found):
        shares = term_shares(release.steps, persons, low, high) if persons > 0 else np.zeros(len(release.steps))
        if shares.any():
            return shares
    return np.full(len(release.steps), 1 / len(release.steps))


def _column(known: KnownCounts, secret: int) -> KnownCounts:
    low, high, guess = (side[:, secret : secret + 1] for side in (known.low, known.high, known.guess))
    return KnownCounts(low, high, guess, known.rate)


def solve(layout: TableLayout, known: Sequence[KnownCounts], secrets: int) -> Floats:
    """Return (atoms, secrets): counts of the largest entropy, relative to the guesses of the finest table.

    Every cell gets a factor. In turn it is set to the one that brings the cell's sum into its bounds, as near to 1 as they
    allow. Where numbers are noisy the factor is limited instead, which is the most likely compromise with Laplace noise.
    """
    constraints = subtract_counts(layout.groupings, known)
    counts = _start(layout, known, secrets)
    factors = [np.ones_like(one.low) for _, one in constraints]
    for grouping, one in constraints:  # what must be empty is so from the start: factors would take for ever
        inside = grouping.cell_of != OUTSIDE
        counts[inside] *= (one.high > 0)[grouping.cell_of[inside]]
    for _ in range(MOST_SWEEPS):
        # at the end of a sweep counts may be as before although its steps undo each other, and factors still move
        moved = [_fit(counts, grouping, one, factors[place]) for place, (grouping, one) in enumerate(constraints)]
        if max(moved) <= CONVERGED * max(1.0, float(counts.max(initial=0.0))):
            break
    return np.where(counts < NOTHING, 0.0, counts)


def _fit(counts: Floats, grouping: Grouping, known: KnownCounts, factor: Floats) -> float:
    """Set the factors of one table, in place; return the largest change of a cell's sum."""
    inside = grouping.cell_of != OUTSIDE
    cell = grouping.cell_of[inside]
    sums = _sums(counts if grouping.by_secret else counts.sum(axis=1, keepdims=True), grouping)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = sums / factor
        if known.rate is None:
            wanted = np.minimum(np.maximum(1.0, known.low / plain), known.high / plain)
        else:
            wanted = np.clip(known.guess / plain, np.exp(-known.rate), np.exp(known.rate))
    wanted = np.where((plain > 0) & np.isfinite(wanted) & (wanted > 0), wanted, factor)
    change = wanted / factor
    counts[inside] *= change[cell]
    factor[:] = wanted
    return float((np.abs(change - 1) * sums).max(initial=0.0))


def _sums(counts: Floats, grouping: Grouping) -> Floats:
    """Return (cells, n): the sums of counts[atoms, n] in every cell."""
    inside = grouping.cell_of != OUTSIDE
    cell = grouping.cell_of[inside]
    columns = [np.bincount(cell, column, grouping.cells) for column in counts[inside].T]
    return np.stack(columns, axis=1)


def _start(layout: TableLayout, known: Sequence[KnownCounts], secrets: int) -> Floats:
    """Spread the guesses of the finest table by value over its atoms, by their sizes; other atoms get their share of all."""
    tables = list(zip(layout.groupings, known, strict=True))
    by_secret = [pair for pair in tables if pair[0].by_secret]
    grouping, one = max(by_secret, key=lambda pair: pair[0].cells)
    weights = layout.weights[:, None]
    guess = np.maximum(one.guess, np.minimum(one.high / 2, POSSIBLE))
    most = np.max([pair[1].guess.sum(axis=0) for pair in by_secret], axis=0)  # a value may be rare in the finest table only
    counts: Floats = np.repeat(weights / weights.sum(), secrets, axis=1) * np.maximum(guess.sum(axis=0), most)
    inside = grouping.cell_of != OUTSIDE
    cell = grouping.cell_of[inside]
    sizes = np.bincount(cell, layout.weights[inside], grouping.cells)
    counts[inside] = (weights[inside] / sizes[cell][:, None]) * guess[cell]
    return counts


def _build(_parameters: Mapping[str, Any], _context: Context) -> PublishedTables:
    return PublishedTables()


KIND = Kind(Record(), _build)
