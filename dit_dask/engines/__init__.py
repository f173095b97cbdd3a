"""Engines by name: each computes, for a set of records, how far beliefs move when they are removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dit_dask.engines import brute_force, exact, mixed, repeated
from dit_dask.engines.influence import Influence, Procedure
from dit_dask.engines.noisy_counts import procedure as noisy
from dit_dask.engines.noisy_counts.procedure import NoisyCounts
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import InputError
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

__all__ = [
    "ENGINES",
    "SELECTABLE",
    "Engine",
    "Influence",
    "NoisyCounts",
    "Procedure",
    "ReleaseProcedure",
    "choose",
    "engines_of",
]


@dataclass(frozen=True)
class Engine:
    """One way to compute influences.

    `applies` returns why it cannot run a procedure, or None. `chunks` cuts records into about so many sets that are cheap
    to test together; without it any cut costs the same. `estimates` names the columns that it adds to a part. `together` runs
    several procedures on the same releases, each on a table that differs from the others at most in the sensitive attribute.
    `shares_process`: threads of one process can run it at the same time, for it leaves Python's lock and global state alone.
    """

    influence: Callable[[Table, Ints, Any], Influence]
    applies: Callable[[object], str | None]
    chunks: Callable[[Table, Ints, Any, int], list[Ints]] | None = None
    estimates: tuple[str, ...] = ()
    together: Callable[[Sequence[Table], Ints, Sequence[Any]], list[Influence]] | None = None
    shares_process: bool = False


ENGINES = {
    "exact": Engine(exact.influence, exact.applies, exact.chunks, shares_process=True),
    "mixed": Engine(mixed.influence, mixed.applies),
    "brute-force": Engine(brute_force.influence, brute_force.applies, together=brute_force.together),
    "repeated": Engine(repeated.influence, repeated.applies, estimates=repeated.ESTIMATES, together=repeated.together),
    "closed-form": Engine(noisy.closed_form, partial(noisy.applies, "exact"), noisy.chunks),
    "simulation": Engine(noisy.simulation, partial(noisy.applies, "simulate"), noisy.chunks, noisy.ESTIMATES),
}
SELECTABLE = ("exact", "brute-force")  # what a config may name; the others follow from `method` or `repeats`


def engines_of(engine: str, procedure: Procedure) -> dict[str, str]:
    """The engine that each adversary of a procedure runs on."""
    fast = mixed.exact_adversaries(procedure) if engine == "mixed" and isinstance(procedure, ReleaseProcedure) else {}
    slow = "brute-force" if engine == "mixed" else engine
    return {name: "exact" if name in fast else slow for name in procedure.names}


def choose(requested: str, procedure: Procedure, where: str) -> tuple[str, str]:
    """Return the engine that a test will run on, and why: the first that applies, unless one is named."""
    refusals = {name: engine.applies(procedure) for name, engine in ENGINES.items()}
    if requested != "auto":
        if refusals[requested] is not None:
            raise InputError(f"{where}.engine: {requested} cannot run this test: {refusals[requested]}")
        return requested, "as configured"
    name = next(name for name, refusal in refusals.items() if refusal is None)
    is_slow = name in {"mixed", "brute-force"} and refusals["exact"] is not None
    return name, str(refusals["exact"]) if is_slow else "the fastest that applies"
