"""How much better a real record explains the synthetic ones, as noisy copies of it, than all other real records do."""

from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled
from dit_dask.kernels.weigh import Floats, Longs

REDRAWN = 0.4
REACH = 0.1
NEGLIGIBLE = 1e-8
UNLIKELY = 1e-3
NOTHING = 1e-30


@compiled
def fill_factors(record: Longs, starts: Longs, shares: Floats, ranks: Floats, norms: Floats, ordered: Longs,
                 factors: Floats) -> None:
    """Write to factors[starts[c] + code] how likely the record's cell is beside a record with this code in column c."""
    for c in range(len(record)):
        own = starts[c] + record[c]
        for v in range(starts[c], starts[c + 1]):
            drawn = shares[own]
            if ordered[c] == 1:
                drawn *= np.exp(-abs(ranks[own] - ranks[v]) / REACH) / norms[v]
            factors[v] = REDRAWN * drawn
        factors[own] += 1.0 - REDRAWN


@compiled
def copy_evidence(synthetic: Longs, real: Longs, starts: Longs, shares: Floats, ranks: Floats, norms: Floats, ordered: Longs,
                  kept: Floats, rates: Floats) -> Floats:
    """Return (len(kept) * len(rates), N): the sum over the synthetic records of log(1 + rate * K / f) for each real one.

    K is the probability of the synthetic record if each cell of the real one is kept with probability `kept` and drawn anew
    otherwise; f is its density over the other real records. Pairs with K below a thousandth of the density add nothing.
    Shares, ranks and norms of code v in column c are at starts[c] + v; norms make the factors of ordered cells sum to 1.
    """
    total_real, width = real.shape
    evidence = np.zeros((len(kept) * len(rates), total_real))
    factors, density = np.zeros(len(shares)), np.zeros(total_real)
    for i in range(len(synthetic)):
        fill_factors(synthetic[i], starts, shares, ranks, norms, ordered, factors)
        total = 0.0
        for r in range(total_real):
            product = 1.0
            for c in range(width):
                product *= factors[starts[c] + real[r, c]]
                if product < NEGLIGIBLE * total:
                    break
            density[r] = product
            total += product
        for k in range(len(kept)):
            for r in range(total_real):
                product = 1.0
                for c in range(width):
                    same = kept[k] if real[r, c] == synthetic[i, c] else 0.0
                    product *= same + (1.0 - kept[k]) * shares[starts[c] + synthetic[i, c]]
                    if product < UNLIKELY * total / total_real:
                        break
                if product >= UNLIKELY * total / total_real:
                    others = max((total - density[r]) / max(1, total_real - 1), NOTHING)
                    for q in range(len(rates)):
                        evidence[k * len(rates) + q, r] += np.log1p(rates[q] * product / others)
    return evidence
