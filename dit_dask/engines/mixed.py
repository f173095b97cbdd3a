"""A panel of which only some adversaries have an exact engine: those run on it, the others by brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dit_dask.adversaries import Adversary, is_counted
from dit_dask.engines import brute_force, exact
from dit_dask.engines.influence import Influence, compare
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints


def influence(table: Table, records: Ints, procedure: ReleaseProcedure) -> Influence:
    """Test the given records; equal to brute force for all adversaries."""
    fast = exact_adversaries(procedure)
    slow = {name: adversary for name, adversary in procedure.adversaries.items() if name not in fast}
    learned, _, notes = brute_force.compute_beliefs([table], records, [replace(procedure, adversaries=slow)])
    sides = dict(zip(fast, exact.beliefs(table, records, procedure.sanitizer, list(fast.values())), strict=True))
    sides |= {name: (beliefs.full[:, 0], beliefs.without[:, 0]) for name, beliefs in learned[0].items()}
    codes = table.codes[records]
    ordered = {  # of equal distances the first counts
        name: (procedure.weigh(sides[name][0], codes), procedure.weigh(sides[name][1], codes)) for name in procedure.adversaries
    }
    return compare(ordered, table.secret[records], procedure.distance, notes)


def exact_adversaries(procedure: ReleaseProcedure) -> dict[str, Adversary]:
    """The adversaries of a procedure that the exact engine can run."""
    return {
        name: adversary
        for name, adversary in procedure.adversaries.items()
        if type(adversary) in exact.BELIEFS and is_counted(adversary, procedure.encoder)
    }


def applies(procedure: object) -> str | None:
    """Return why this is no mixture, or None if it is."""
    if not isinstance(procedure, ReleaseProcedure):
        return "a mixture sanitises and trains"
    fast = exact_adversaries(procedure)
    if not 0 < len(fast) < len(procedure.adversaries):
        return "all adversaries run on one engine"
    return exact.applies(replace(procedure, adversaries=fast))
