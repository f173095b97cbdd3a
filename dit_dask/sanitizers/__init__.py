"""Sanitizers by name: from a table to the classes it would publish."""

from typing import TYPE_CHECKING, Protocol

from dit_dask.registry import Registry
from dit_dask.release import Release
from dit_dask.sanitizers import mondrian, raw
from dit_dask.sanitizers.claims import Claim
from dit_dask.table import Table

if TYPE_CHECKING:
    import numpy as np


class Sanitizer(Protocol):
    """Anything that turns a table into a release, with the property it claims for every class."""

    @property
    def claim(self) -> Claim | None:
        """What every published class is said to satisfy."""
        ...

    def release(self, table: Table, rng: "np.random.Generator") -> Release:
        """Sanitise the table; all randomness comes from rng."""
        ...


SANITIZERS: Registry[Sanitizer] = Registry("dit_dask.sanitizers", {"mondrian": mondrian.KIND, "raw": raw.KIND})
