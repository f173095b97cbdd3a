"""Engines by name: each computes, for a set of records, how far beliefs move when they are removed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dit_dask.engines import brute_force
from dit_dask.engines.brute_force import Influence, Procedure
from dit_dask.table import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ENGINES", "Engine", "Influence", "Procedure", "choose"]

Engine = Callable[[Table, "NDArray[np.int64]", Procedure], Influence]

ENGINES: dict[str, Engine] = {"brute-force": brute_force.influence}


def choose(requested: str) -> tuple[str, str]:
    """Return the engine that a test will run on, and why."""
    if requested != "auto":
        return requested, "as configured"
    return "brute-force", "works for every sanitizer, encoder and adversary"
