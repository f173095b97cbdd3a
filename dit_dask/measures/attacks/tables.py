"""The three tables of an attack: the training records, the release, and a control of records that the release has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.errors import InputError, unknown
from dit_dask.measures.attacks.neighbours import number_records
from dit_dask.measures.synthetic.columns import Column, align
from dit_dask.measures.synthetic.guards import SHARED_LEVEL, count_shared, describe_unseen, find_identifiers
from dit_dask.measures.synthetic.pool import build_pool
from dit_dask.measures.synthetic.relabelling import Relabelling

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints

TRAINING, RELEASE, CONTROL = range(3)
LEVEL = 0.01
SEED = 0


@dataclass(frozen=True, eq=False)
class AttackTables:
    """The columns of all three tables, checked; `doubts` are reasons why no figure of an attack can pass."""

    columns: Mapping[str, Column]
    doubts: tuple[str, ...]
    seed: int

    @classmethod
    def of(
        cls,
        frames: Mapping[str, pd.DataFrame],
        columns: Sequence[str] | None = None,
        kinds: Mapping[str, str] | None = None,
        seed: int = SEED,
    ) -> AttackTables:
        """Check training, release and control, in this order."""
        aligned = align(frames, columns, kinds)
        return cls({column.name: column for column in aligned}, tuple(_find_doubts(aligned)), seed)

    def size(self, table: int) -> int:
        """Return how many records a table has."""
        return len(next(iter(self.columns.values())).cells[table])

    def choose(self, names: Sequence[str], where: str) -> list[Column]:
        """Return some of the columns."""
        for name in names:
            if name not in self.columns:
                raise unknown(f"{where}: column", name, list(self.columns))
        if len(set(names)) < len(names):
            raise InputError(f"{where} must name every column once; got {', '.join(map(repr, names))}")
        return [self.columns[name] for name in names]

    def numbers(self, table: int) -> Ints:
        """Number the records of a table for breaking ties."""
        return number_records(list(self.columns.values()), table, self.seed)

    def sample(self, table: int, size: int | None) -> Ints:
        """Return the positions of the records to attack: all, or so many, whatever the order of rows."""
        total = self.size(table)
        if size is None or size >= total:
            return np.arange(total)
        order = np.argsort(number_records(list(self.columns.values()), table, seeds.integer(self.seed, "sample")))
        return np.sort(order[:size])


def _find_doubts(columns: Sequence[Column]) -> list[str]:
    identifiers = find_identifiers(columns)
    doubts = [f"column {name!r} numbers or names the rows: leave it out with columns" for name in identifiers]
    judged = [column for column in columns if column.name not in identifiers] or list(columns)
    doubts += describe_unseen(judged)
    pool = build_pool(judged, "gower", 10, SEED)
    shared, p = count_shared(pool.codes, Relabelling.of(pool.is_training, LEVEL, SEED))
    if p <= SHARED_LEVEL:
        control = len(columns[0].cells[CONTROL])
        doubts.append(f"{shared:,} of {control:,} control records equal a training record, more than chance explains")
    return doubts
