"""TF: true where a published value covers the target's value; the target itself is all ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats


@dataclass(frozen=True)
class TF:
    """One 0/1 feature for each quasi-identifier, relative to the target."""

    def classes(self, release: Release, target: Codes) -> Floats:
        """Return (classes, d)."""
        return release.covers(target).astype(np.float64)

    def target(self, release: Release, _target: Codes) -> Floats:
        """Return (d,) ones."""
        return np.ones(len(release.schema.quasi_identifiers))


def _build(_parameters: Mapping[str, Any], _context: Context) -> TF:
    return TF()


KIND = Kind(Record(), _build)
