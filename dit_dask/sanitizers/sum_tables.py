"""Published tables of sums or means of a numeric sensitive column, with the number of persons in every cell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import Recheck
from dit_dask.values.published_tables import OUTSIDE, KnownSums, TableLayout, TableRelease
from dit_dask.values.release import Ranges, Release
from dit_dask.values.schema import Schema, Secret
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

FINEST = 4  # decimals of a sensitive value
EXCLUSIVE = 1e-9  # an interval does not hold its upper end


@dataclass(frozen=True, eq=False)
class Units:
    """The values of the sensitive column as whole numbers: value = smallest + unit * step."""

    steps: Ints
    smallest: float
    unit: float

    @classmethod
    def of(cls, secret: Secret, where: str) -> Units:
        """Read the values as numbers of a few decimals."""
        try:
            numbers = np.array([float(level) for level in secret.levels])
        except ValueError:
            numbers = np.array([np.nan])
        scaled = np.rint(numbers * 10**FINEST)
        is_plain = (
            secret.middles is None and np.isfinite(numbers).all() and np.allclose(scaled, numbers * 10**FINEST, atol=1e-3)
        )
        if not is_plain or len(numbers) < 2:
            raise InputError(
                f"{where}.statistic: sums and means need a sensitive column of numbers with at most {FINEST} decimals, no bins"
            )
        shifted = (scaled - scaled.min()).astype(np.int64)
        common = math.gcd(*shifted.tolist())
        return cls(shifted // common, float(numbers.min()), common / 10**FINEST)


@dataclass(frozen=True)
class SumTables:
    """Publishes the number of persons and the sum, or the mean, of every cell; cells below the threshold are suppressed."""

    layout: TableLayout
    units: Units
    is_mean: bool
    base: float | None
    threshold: int
    claim: None = None
    randomised: ClassVar[bool] = False

    def release(self, table: Table, _rng: np.random.Generator) -> TableRelease:
        """Count and add up."""
        return self.publish(table.schema, self.add_up(table))

    def add_up(self, table: Table) -> list[tuple[Ints, Ints]]:
        """The persons and the sum of steps of every cell, by table."""
        atoms, steps = self.layout.atoms_of(table.codes), self.units.steps[table.secret] * table.weights
        found = []
        for grouping in self.layout.groupings:
            cell = grouping.cell_of[atoms]
            inside = cell != OUTSIDE
            sides = [np.zeros(grouping.cells, np.int64) for _ in range(2)]
            for side, added in zip(sides, (table.weights, steps), strict=True):
                np.add.at(side, cell[inside], added[inside])
            found.append((sides[0], sides[1]))
        return found

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[TableRelease]:
        """Yield the release without one row of each record: one cell of each table changes."""
        added, atoms = self.add_up(table), self.layout.atoms_of(table.codes[records])
        for atom, secret in zip(atoms, table.secret[records], strict=True):
            fewer = []
            for grouping, (persons, steps) in zip(self.layout.groupings, added, strict=True):
                persons, steps, cell = persons.copy(), steps.copy(), grouping.cell_of[atom]
                if cell != OUTSIDE:
                    persons[cell] -= 1
                    steps[cell] -= self.units.steps[secret]
                fewer.append((persons, steps))
            yield self.publish(table.schema, fewer)

    def publish(self, schema: Schema, added: list[tuple[Ints, Ints]]) -> TableRelease:
        """Say what a reader knows of every cell."""
        sums = tuple(self._known(persons, steps) for persons, steps in added)
        printed = np.concatenate([one.persons[one.is_shown] for one in sums])
        printed = printed[printed > 0]
        counts = np.zeros((len(printed), len(schema.sensitive.levels)), np.int64)
        counts[:, 0] = printed
        number = np.repeat(np.arange(len(printed), dtype=np.int32)[:, None], len(schema.quasi_identifiers), axis=1)
        return TableRelease(schema, Ranges(number, number), counts, layout=self.layout, sums=sums, steps=self.units.steps)

    def _known(self, persons: Ints, steps: Ints) -> KnownSums:
        is_shown = (persons == 0) | (persons >= self.threshold)
        if self.base is None:
            return KnownSums(persons, is_shown, steps.astype(np.float64), steps.astype(np.float64))
        total = self.units.unit * steps + self.units.smallest * persons
        size = np.maximum(persons, 1) if self.is_mean else np.ones_like(persons)
        printed = self.base * np.floor(total / size / self.base + 0.5)
        ends = [(size * (printed + side * self.base / 2) - self.units.smallest * persons) / self.units.unit for side in (-1, 1)]
        return KnownSums(persons, is_shown, ends[0] - EXCLUSIVE, ends[1] - EXCLUSIVE)

    def recheck(self, release: Release) -> Recheck:
        """Count the printed cells."""
        size = release.counts.sum(axis=1)
        return Recheck(len(size), int(size.min()) if len(size) else None, None, 0, 0)
