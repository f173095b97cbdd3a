"""The test on a sanitizer that draws at random: the laws of the beliefs are compared, not single draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.distances import THRESHOLDS
from dit_dask.engines.brute_force import beliefs_on_full, compute_beliefs
from dit_dask.engines.influence import Influence, place_tested, tested_records
from dit_dask.engines.noisy_counts import SCALES
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import InputError
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

ESTIMATES = ("stderr", "noise", *(f"over_{name}" for name in THRESHOLDS))


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given records, each removal `repeats` times."""
    return together(table, records, [procedure])[0]


def together(table: Table, records: Ints, procedures: Sequence[ReleaseProcedure]) -> list[Influence]:
    """Test the given records against several adversaries that see the same releases."""
    found, failures, notes = compute_beliefs(table, records, procedures)
    again = beliefs_on_full(table, records, procedures, "again")
    tested = tested_records(records, failures)
    results = []
    for procedure, beliefs, other in zip(procedures, found, again, strict=True):
        x, y, z = beliefs.full[tested], beliefs.without[tested], other[tested]
        if not (np.isfinite(x).all() and np.isfinite(y).all() and np.isfinite(z).all()):
            raise InputError("the adversary returned beliefs that are not numbers")
        single = procedure.distance(x.reshape(-1, x.shape[2]), y.reshape(-1, x.shape[2])).reshape(x.shape[:2])
        scale = float(procedure.distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[0]) / 2
        estimates = {
            "stderr": scale * jackknife(x, y),
            "noise": scale * law_distance(x, z),
            **{f"over_{name}": (single >= limit).mean(axis=1) for name, limit in THRESHOLDS.items()},
        }
        predicted, without = (side.mean(axis=1).argmax(axis=1).astype(np.int32) for side in (x, y))
        influence = Influence(scale * law_distance(x, y), predicted, without, notes, estimates)
        results.append(place_tested(influence, tested, failures))
    return results


def law_distance(x: Floats, y: Floats) -> Floats:
    """Return (m,): the earth mover's distances between the samples x[m, repeats, n] and y of each coordinate, summed."""
    gaps: Floats = np.abs(np.sort(x, axis=1) - np.sort(y, axis=1)).mean(axis=1).sum(axis=1)
    return gaps


def jackknife(x: Floats, y: Floats) -> Floats:
    """Return (m,): the standard error of law_distance, from leaving out one pair of repeats after the other."""
    repeats = x.shape[1]
    left_out = np.stack([law_distance(np.delete(x, one, axis=1), np.delete(y, one, axis=1)) for one in range(repeats)])
    error: Floats = np.sqrt((repeats - 1) / repeats * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    return error


def applies(procedure: object) -> str | None:
    """Only procedures that ask for repeats."""
    return None if isinstance(procedure, ReleaseProcedure) and procedure.repeats > 1 else "nothing is repeated"


def check_distance(name: str, where: str) -> None:
    """Laws are compared coordinate by coordinate, which only these distances can."""
    if name not in SCALES:
        raise InputError(f"{where}.distance must be {', '.join(SCALES)} with repeats; got {name!r}")
