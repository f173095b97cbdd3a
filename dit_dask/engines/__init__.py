"""Engines by name: each computes, for a set of records, how far beliefs move when they are removed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dit_dask.engines import brute_force, exact
from dit_dask.engines.brute_force import Influence, Procedure
from dit_dask.errors import InputError
from dit_dask.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ENGINES", "Engine", "Influence", "Procedure", "choose"]


@dataclass(frozen=True)
class Engine:
    """One way to compute influences.

    `applies` returns why it cannot run a procedure, or None. `chunks` cuts records into about so many sets that are cheap
    to test together; without it any cut costs the same.
    """

    influence: Callable[[Table, "NDArray[np.int64]", Procedure], Influence]
    applies: Callable[[Procedure], str | None]
    chunks: Callable[[Table, "NDArray[np.int64]", Procedure, int], list["NDArray[np.int64]"]] | None = None


ENGINES = {
    "exact": Engine(exact.influence, exact.applies, exact.chunks),
    "brute-force": Engine(brute_force.influence, brute_force.applies),
}


def choose(requested: str, procedure: Procedure, where: str) -> tuple[str, str]:
    """Return the engine that a test will run on, and why: the first that applies, unless one is named."""
    refusals = {name: engine.applies(procedure) for name, engine in ENGINES.items()}
    if requested != "auto":
        if refusals[requested] is not None:
            raise InputError(f"{where}.engine: {requested} cannot run this test: {refusals[requested]}")
        return requested, "as configured"
    name = next(name for name, refusal in refusals.items() if refusal is None)
    return name, next((refusal for refusal in refusals.values() if refusal is not None), "the fastest that applies")
