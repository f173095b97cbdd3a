"""Sanitizers by name: from a table to the classes it would publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dit_dask.config.registry import Registry
from dit_dask.sanitizers import mondrian, raw, suppressed
from dit_dask.sanitizers.claims import Claim
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import numpy as np

    from dit_dask.sanitizers.noise import Protection
    from dit_dask.values.arrays import Ints


class Sanitizer(Protocol):
    """Anything that turns a table into a release, with the property it claims for every class."""

    @property
    def claim(self) -> Claim | None:
        """The property that every published class must satisfy."""
        ...

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        """Sanitise the table; all randomness comes from rng."""
        ...


@runtime_checkable
class LeavesOneOut(Protocol):
    """A deterministic sanitizer that computes what the removal of a record changes without sanitising again."""

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[Release]:
        """Yield, for each distinct record, what `release` would return for the table without it."""
        ...


def is_randomised(sanitizer: object) -> bool:
    """Whether a sanitizer declares itself randomised."""
    return bool(getattr(sanitizer, "randomised", False))


SANITIZERS: Registry[Sanitizer | Protection] = Registry(
    "dit_dask.sanitizers",
    {
        "mondrian": mondrian.KIND,
        "raw": raw.KIND,
        "suppressed": suppressed.KIND,
        "full-domain": "dit_dask.sanitizers.full_domain:KIND",
        "marginals": "dit_dask.sanitizers.synthesizer:KIND",
        "resample": "dit_dask.sanitizers.synthesizer:RESAMPLE",
        "tables": "dit_dask.sanitizers.tables:KIND",
        **dict.fromkeys(("laplace", "geometric", "gaussian"), "dit_dask.sanitizers.noise:KINDS"),
        **dict.fromkeys(("python", "function", "command", "precomputed"), "dit_dask.sanitizers.external:KINDS"),
    },
)
