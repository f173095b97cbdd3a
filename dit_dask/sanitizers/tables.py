"""Published tables of counts, as statistical offices protect them: exact, rounded, small counts suppressed, or with noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Anything, Choice, Field, Flag, Integer, ListOf, Number, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import Recheck
from dit_dask.sanitizers.sum_tables import SumTables, Units
from dit_dask.sanitizers.table_layout import read_layout
from dit_dask.values.published_tables import OUTSIDE, KnownCounts, TableLayout, TableRelease
from dit_dask.values.release import Ranges, Release
from dit_dask.values.schema import Schema
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

PROCEDURE = "tables"


@dataclass(frozen=True)
class NoSmallCounts:
    """No published count is from 1 to below the threshold."""

    threshold: int

    @property
    def words(self) -> str:
        """What is claimed, as messages write it."""
        return f"no published count from 1 to {self.threshold - 1}"

    def broken(self, counts: Ints, _size: Ints, _whole: Ints) -> Bools:
        """Cells that show a small count."""
        small: Bools = np.any((counts > 0) & (counts < self.threshold), axis=1)
        return small


@dataclass(frozen=True)
class Protection:
    """What is done to every count: suppression of small ones, rounding to a base, or noise of an epsilon."""

    rounding: str = "none"
    base: int = 5
    threshold: int = 1
    complementary: bool = False
    noise: str = "none"
    epsilon: float | None = None

    @property
    def draws(self) -> bool:
        """Whether it draws at random."""
        return self.rounding == "random" or self.noise != "none"

    def protect(self, counts: Ints, tables: int, rng: np.random.Generator | None) -> KnownCounts:
        """Publish counts[cells, n] of one of so many tables: return what a reader knows of them."""
        if self.noise != "none":
            return self._noisy(counts, tables, rng)
        shown, low, high = self._round(counts, rng)
        hidden = (counts > 0) & (counts < self.threshold)
        if self.complementary:
            hidden = suppress_more(counts, hidden)
        low = np.where(shown > 0, np.maximum(low, self.threshold), low)  # smaller ones would not be shown
        high = np.where((shown == 0) & (high < self.threshold), 0, high)
        most = np.inf if self.complementary else self.threshold - 1.0
        least, largest = np.where(hidden, 1.0, low), np.where(hidden, most, high)
        guess = np.where(hidden, self.threshold / 2, np.clip(shown, least, largest))  # the middle of 1 to threshold - 1
        return KnownCounts(least, largest, guess)

    def _round(self, counts: Ints, rng: np.random.Generator | None) -> tuple[Ints, Ints, Ints]:
        """Return the rounded counts, and the least and the most that each may be."""
        if self.rounding == "none":
            return counts, counts, counts
        base = self.base
        if rng is None or self.rounding == "conventional":
            shown = base * ((2 * counts + base) // (2 * base))  # halves go up
            return shown, np.maximum(0, shown - base // 2), shown + (base + 1) // 2 - 1
        rest = counts % base
        shown = counts - rest + base * (rng.random(counts.shape) * base < rest)  # the expected value is the count
        return shown, np.maximum(0, shown - base + 1), shown + base - 1

    def _noisy(self, counts: Ints, tables: int, rng: np.random.Generator | None) -> KnownCounts:
        """Add noise of epsilon / tables: a person counts in one cell of every table."""
        if rng is None or self.epsilon is None:
            raise TypeError("noise needs a stream and an epsilon")
        rate = self.epsilon / tables
        if self.noise == "laplace":
            noise: Floats = rng.laplace(0.0, 1 / rate, counts.shape)
        else:
            chance = -np.expm1(-rate)
            noise = np.subtract(rng.geometric(chance, counts.shape), rng.geometric(chance, counts.shape), dtype=np.float64)
        unknown = np.full(counts.shape, np.inf)
        return KnownCounts(np.zeros(counts.shape), unknown, np.maximum(counts + noise, 0.0), rate)


def suppress_more(counts: Ints, hidden: Bools) -> Bools:
    """Suppress a second count in every row and column that has only one suppressed: the smallest, ties go to the first."""
    hidden = hidden.copy()
    for _ in range(int(sum(counts.shape)) + 1):
        before = hidden.copy()
        for side, values in ((hidden, counts), (hidden.T, counts.T)):  # views: both change the same array
            for line in np.flatnonzero(side.sum(axis=1) == 1):
                free = np.flatnonzero(~side[line] & (values[line] > 0))
                if len(free):
                    side[line, free[np.argmin(values[line, free])]] = True
        if np.array_equal(before, hidden):
            break
    return hidden


@dataclass(frozen=True)
class Tables:
    """Publishes tables of counts by some columns."""

    layout: TableLayout
    protection: Protection
    claim: NoSmallCounts | None = None

    @property
    def randomised(self) -> bool:
        """Whether rounding or noise draws at random."""
        return self.protection.draws

    @property
    def epsilon(self) -> float | None:
        """What the noise of all tables together claims, if there is noise."""
        return None if self.protection.noise == "none" else self.protection.epsilon

    def release(self, table: Table, rng: np.random.Generator) -> TableRelease:
        """Count, then protect every table on its own."""
        return self.publish(table.schema, self.count(table), rng if self.protection.draws else None)

    def count(self, table: Table) -> list[Ints]:
        """The exact counts [cells, n] of every table; [cells, 1] if it is not by sensitive value."""
        atoms, secrets = self.layout.atoms_of(table.codes), len(table.schema.sensitive.levels)
        found = []
        for grouping in self.layout.groupings:
            cell = grouping.cell_of[atoms]
            inside, columns = cell != OUTSIDE, secrets if grouping.by_secret else 1
            place = cell * columns + (table.secret if grouping.by_secret else 0)
            size = grouping.cells * columns
            counts = np.bincount(place[inside], table.weights[inside], size).astype(np.int64)
            found.append(counts.reshape(grouping.cells, columns))
        return found

    def recheck(self, release: Release) -> Recheck:
        """Look at the printed numbers of every cell again; cells that print none are not counted."""
        counts = release.counts
        size = counts.sum(axis=1)
        broken = np.zeros(len(size), bool) if self.claim is None else self.claim.broken(counts, size, counts.sum(axis=0))
        homogeneous = float(size[(counts > 0).sum(axis=1) == 1].sum() / max(1, size.sum()))
        smallest = int(size.min()) if len(size) else None
        holds = None if self.claim is None else not broken.any()
        figures = int(broken.sum()), int(size[broken].sum()), homogeneous
        words = None if self.claim is None else self.claim.words
        return Recheck(len(size), smallest, holds, *figures, claimed=words)

    def publish(self, schema: Schema, counts: list[Ints], rng: np.random.Generator | None) -> TableRelease:
        """Protect the counts of all tables."""
        known = tuple(self.protection.protect(one, len(counts), rng) for one in counts)
        by_secret = [one for grouping, one in zip(self.layout.groupings, known, strict=True) if grouping.by_secret]
        shown = [_shown(one, self.protection) for one in by_secret]
        cells = np.concatenate(shown)
        cells = cells[cells.any(axis=1)]
        number = np.repeat(np.arange(len(cells), dtype=np.int32)[:, None], max(1, len(schema.quasi_identifiers)), axis=1)
        return TableRelease(schema, Ranges(number, number), cells, layout=self.layout, known=known)


@dataclass(frozen=True)
class FixedTables(Tables):
    """Tables whose protection draws nothing: without a person one cell of each is counted again."""

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[TableRelease]:
        """Yield the release without one row of each record."""
        counts, atoms = self.count(table), self.layout.atoms_of(table.codes[records])
        for atom, secret in zip(atoms, table.secret[records], strict=True):
            fewer = []
            for grouping, one in zip(self.layout.groupings, counts, strict=True):
                changed = one.copy()
                if grouping.cell_of[atom] != OUTSIDE:
                    changed[grouping.cell_of[atom], secret if grouping.by_secret else 0] -= 1
                fewer.append(changed)
            yield self.publish(table.schema, fewer, None)


def _shown(known: KnownCounts, protection: Protection) -> Ints:
    """The numbers as they are printed: suppressed ones are 0 here."""
    is_hidden = (known.low == 1) & (known.high == (np.inf if protection.complementary else protection.threshold - 1))
    shown: Floats = np.where(is_hidden & (protection.threshold > 1), 0.0, known.guess)
    return np.rint(shown).astype(np.int64)


def _build_sums(parameters: Mapping[str, Any], context: Context, where: str) -> SumTables:
    unused = [
        key for key, plain in (("noise", "none"), ("epsilon", None), ("complementary", False)) if parameters[key] != plain
    ]
    unused += ["rounding: random"] if parameters["rounding"] == "random" else []
    if unused:
        raise InputError(f"{where}: sums and means take conventional rounding and a threshold; got {unused[0]}")
    units = Units.of(context.schema.sensitive, where)
    layout = read_layout(parameters["tables"], context.schema, f"{where}.tables", by_secret=False)
    base = None if parameters["rounding"] == "none" else float(parameters["base"])
    return SumTables(layout, units, parameters["statistic"] == "means", base, parameters["threshold"])


def _build(parameters: Mapping[str, Any], context: Context) -> Tables | SumTables:
    where = f"{context.where}.sanitizer"
    if parameters["statistic"] != "counts":
        return _build_sums(parameters, context, where)
    rounding, noise, threshold = parameters["rounding"], parameters["noise"], parameters["threshold"]
    if (noise == "none") != (parameters["epsilon"] is None):
        raise InputError(f"{where}: noise and epsilon go together; got {'epsilon' if noise == 'none' else 'noise'} alone")
    if noise != "none" and (rounding != "none" or threshold > 1):
        raise InputError(f"{where}: noise goes with neither rounding nor threshold")
    if parameters["complementary"] and threshold == 1:
        raise InputError(f"{where}.complementary goes with a threshold above 1")
    layout = read_layout(parameters["tables"], context.schema, f"{where}.tables")
    keys = ("rounding", "base", "threshold", "complementary", "noise", "epsilon")
    protection = Protection(**{key: parameters[key] for key in keys})
    claim = NoSmallCounts(threshold) if threshold > 1 and rounding == "none" else None
    return (Tables if protection.draws else FixedTables)(layout, protection, claim)


KIND = Kind(
    Record(
        {
            "tables": Field(ListOf(Anything(), 1), description="each a list of columns, the sensitive one among them or not"),
            "statistic": Field(
                Choice(("counts", "sums", "means")), "counts", sweep=True, description="of the sensitive column, by cell"
            ),
            "rounding": Field(Choice(("none", "conventional", "random")), "none", sweep=True),
            "base": Field(Integer(2, 1000), 5, sweep=True, description="of the rounding"),
            "threshold": Field(Integer(1), 1, sweep=True, description="counts from 1 to below it are suppressed"),
            "complementary": Field(Flag(), False, description="suppress a second count where one could be subtracted"),
            "noise": Field(Choice(("none", "laplace", "geometric")), "none", sweep=True),
            "epsilon": Field(Number(above=0), None, sweep=True, description="of the noise of all tables together"),
        }
    ),
    _build,
    procedure=PROCEDURE,
)
