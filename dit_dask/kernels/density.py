"""How likely a record is among others: a mean over records of which each cell is kept or drawn anew, near by if ordered."""

from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled
from dit_dask.kernels.weigh import Floats, Longs

REDRAWN = 0.4
REACH = 0.2
NOTHING = 1e-30
NEGLIGIBLE = 1e-8


@compiled
def record_density(codes: Longs, shares: Floats, ranks: Floats, others: Longs, other_ranks: Floats, ordered: Longs,
                   own: Longs) -> Floats:
    """Return (k,) densities of (k, d) codes; shares are those of their cells, ranks (0 to 1) matter where a column is ordered.

    Each of the (m, d) others keeps a cell with probability 0.6 and draws it anew otherwise; own[i] is left out for record i.
    Others that add next to nothing are not computed to the end.
    """
    mass = np.empty(other_ranks.shape)
    for j in range(len(others)):
        for c in range(codes.shape[1]):
            y = other_ranks[j, c]
            mass[j, c] = REACH * (2.0 - np.exp(-y / REACH) - np.exp((y - 1.0) / REACH))
    columns = np.argsort(ordered)  # those without an order need no exponential
    result = np.zeros(len(codes))
    for i in range(len(codes)):
        total = 0.0
        for j in range(len(others)):
            if j == own[i]:
                continue
            product, least = 1.0, max(NOTHING, NEGLIGIBLE * total)
            for c in columns:
                drawn = shares[i, c]
                if ordered[c] == 1:
                    drawn *= np.exp(-abs(ranks[i, c] - other_ranks[j, c]) / REACH) / mass[j, c]
                product *= REDRAWN * drawn + (1.0 - REDRAWN if codes[i, c] == others[j, c] else 0.0)
                if product < least:
                    break
            total += product
        result[i] = total / max(1, len(others) - 1)
    return result
