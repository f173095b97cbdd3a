"""Noisy copies: synthetic records that one real record explains better than all others do, by likelihood ratios."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.kernels.copy_evidence import REACH, copy_evidence
from dit_dask.measures.synthetic.pool import Pool
from dit_dask.measures.synthetic.relabelling import Statistic

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

FAMILY = "noisy copies"
KEPT = (0.95, 0.7)
COPIED = (0.01, 0.1)
PAIR_CELLS = 2e9
FEWEST = 200
LEAST = 1e-12


def noisy_copy_statistics(pool: Pool, seed: int) -> Iterator[Statistic]:
    """Yield the evidence for copies of each real record, for two rates of kept cells and two shares of copies."""
    synthetic = _choose_records(pool, seed)
    levels = np.maximum(pool.codes.max(axis=0), synthetic.max(axis=0)).astype(np.int64) + 1
    starts = np.concatenate([[0], np.cumsum(levels)]).astype(np.int64)
    together = np.concatenate([pool.codes, synthetic])
    shares = [np.bincount(together[:, c], minlength=levels[c]) / len(together) for c in range(len(levels))]
    ranks = [np.cumsum(share) - share / 2 for share in shares]
    norms = [normalise(share, rank) for share, rank in zip(shares, ranks, strict=True)]
    flat = (np.concatenate(values) for values in (shares, ranks, norms))
    rates = np.array(COPIED) / len(pool.codes)
    evidence = copy_evidence(
        synthetic.astype(np.int64), pool.codes.astype(np.int64), starts, *flat, pool.ordered, np.array(KEPT), rates
    )
    for weight, kept in zip(evidence, np.repeat(KEPT, len(COPIED)), strict=True):
        yield Statistic.of(FAMILY, f"copies that keep {kept:.0%} of their cells", weight)


def normalise(shares: Floats, ranks: Floats) -> Floats:
    """Return for each code the sum over all codes of share * exp(-|difference of ranks| / reach)."""
    left, right = shares.copy(), shares.copy()
    decay = np.exp(-np.diff(ranks) / REACH)
    for v in range(1, len(shares)):
        left[v] += left[v - 1] * decay[v - 1]
        right[-1 - v] += right[-v] * decay[-v]
    norms: Floats = np.maximum(left + right - shares, LEAST)
    return norms


def _choose_records(pool: Pool, seed: int) -> Codes:
    """Return the synthetic codes, or a seeded sample of them where all pairs would take too long."""
    total = len(pool.synthetic_codes)
    most = int(max(FEWEST, PAIR_CELLS / max(1, pool.codes.size)))
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(seeds.stream(seed, "closeness", "noisy copies").choice(total, most, replace=False))
    records: Codes = pool.synthetic_codes[chosen]
    return records
