"""Bins of equal frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints


def equal_frequency(weights: Ints, count: int) -> Codes:
    """Return (levels,) bins, cut after the first level that reaches each share.

    Equal values stay together, so there may be fewer bins.
    """
    reach = np.cumsum(weights)
    count = min(count, int(reach[-1]))  # more bins than rows cut nowhere else
    cuts = np.searchsorted(reach * count, np.arange(1, count) * reach[-1])
    cuts = np.unique(cuts[cuts < len(weights) - 1])
    return np.searchsorted(cuts, np.arange(len(weights))).astype(np.int32)
