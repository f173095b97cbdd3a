"""Everything suppressed: the control that publishes nothing of a record but its sensitive value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.sanitizers.claims import Claim


@dataclass(frozen=True)
class Suppressed:
    """Publishes the whole domain in place of every quasi-identifier."""

    claim: Claim | None = None

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """One class of all records; of a table without records, none."""
        classes = min(table.distinct, 1)
        last = np.array([len(attribute.levels) - 1 for attribute in table.schema.quasi_identifiers], np.int32)
        totals = np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)).astype(np.int64)
        high = np.repeat(last[None], classes, axis=0)
        return Release(table.schema, Ranges(np.zeros_like(high), high), totals[None][:classes])


def _build(_parameters: Mapping[str, Any], _context: Context) -> Suppressed:
    return Suppressed()


KIND = Kind(Record(), _build, disjoint=True)
