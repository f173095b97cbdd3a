"""Which classes of a release are valid, with and without one of their records."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled, long
from dit_dask.kernels.predicates import MOST, ONLY, SIZE, Rule, is_valid, summarise
from dit_dask.kernels.weigh import EXTRA, Longs


@compiled
def judge_classes(counts: Longs, rule: Rule, valid: NDArray[np.bool_], without: NDArray[np.bool_]) -> None:
    """Set valid[c] of classes with counts[c, n], and without[c, n]: whether they are without a record of each secret they have.

    A class of one record is gone without it, which is valid. `without` is set for the only secret of the rule, if it has one.
    """
    secrets = counts.shape[1]
    only = rule[3][ONLY]
    row = np.zeros(secrets + EXTRA, np.int64)
    for index in range(len(counts)):
        size, most = long(0), long(0)
        for secret in range(secrets):
            row[secret] = counts[index, secret]
            size += row[secret]
            most = max(most, row[secret])
        row[secrets + SIZE], row[secrets + MOST] = size, most
        summarise(row, rule)
        valid[index] = is_valid(row, long(-1), rule)
        for secret in range(secrets):
            if row[secret] > 0 and (only < 0 or secret == only):
                without[index, secret] = size == 1 or is_valid(row, secret, rule)
