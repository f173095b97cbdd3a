"""How often the distances of repeated releases exceed a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.distances import THRESHOLDS
from dit_dask.engines.influence import Exceedance, ExceedanceShares
from dit_dask.values.intervals import upper_limit

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats


def exceedance(estimates: Mapping[str, Floats], repeats: int) -> Exceedance:
    """Describe Pr[d >= limit] over rows: on average, for the worst row, and a bound on the latter for all rows at once.

    The bound is the upper end of exact binomial intervals with a joint confidence of 95% (Bonferroni).
    """
    over = {}
    for name in THRESHOLDS:
        shares = estimates[f"over_{name}"]
        shares = shares[~np.isnan(shares)]
        hits = round(float(shares.max()) * repeats)
        most = upper_limit(hits, repeats, 0.05 / len(shares))
        over[name] = ExceedanceShares(float(shares.mean()), hits / repeats, most)
    return Exceedance(repeats, float(np.nanmax(estimates["noise"])), over)
