"""Evidence for noisy copies against plain Python, and its p against all relabellings of a tiny pool."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dit_dask.measures.synthetic.columns import Column
from dit_dask.measures.synthetic.noisy_copies import COPIED, KEPT, noisy_copy_statistics, normalise
from dit_dask.measures.synthetic.pool import Pool, build_pool
from dit_dask.measures.synthetic.relabelling import Relabelling, judge


def make_pool(seed: int, training: int = 5, holdout: int = 5, synthetic: int = 6) -> Pool:
    rng = np.random.default_rng(seed)
    sizes = (training, synthetic, holdout)
    numbers = tuple(rng.integers(0, 6, size).astype(float) for size in sizes)
    towns = tuple(rng.integers(0, 3, size) for size in sizes)
    trades = tuple(rng.integers(0, 4, size) for size in sizes)
    columns = [Column("age", "numeric", numbers, ())]
    columns += [Column(name, "categorical", cells, tuple("abcd")) for name, cells in (("town", towns), ("trade", trades))]
    return build_pool(columns, "gower", 10, 0)


def evidence_by_hand(pool: Pool, kept: float, copied: float) -> list[float]:
    """The definition, with dictionaries and without early ends."""
    real, synthetic = pool.codes.tolist(), pool.synthetic_codes.tolist()
    width, together = len(real[0]), real + synthetic
    share = [
        {v: sum(row[c] == v for row in together) / len(together) for v in {row[c] for row in together}} for c in range(width)
    ]
    rank = [{v: sum(p for u, p in column.items() if u < v) + column[v] / 2 for v in column} for column in share]

    def drawn(c: int, to: int, beside: int) -> float:
        if not pool.ordered[c]:
            return share[c][to]
        near = {v: share[c][v] * math.exp(-abs(rank[c][v] - rank[c][beside]) / 0.1) for v in share[c]}
        return near[to] / sum(near.values())

    def density(row: list[int], other: list[int]) -> float:
        return math.prod(0.4 * drawn(c, row[c], other[c]) + 0.6 * (row[c] == other[c]) for c in range(width))

    def copy(row: list[int], source: list[int]) -> float:
        return math.prod((1 - kept) * share[c][row[c]] + kept * (row[c] == source[c]) for c in range(width))

    result = []
    for place, source in enumerate(real):
        total = 0.0
        for row in synthetic:
            others = [density(row, other) for number, other in enumerate(real) if number != place]
            everything = (sum(others) + density(row, source)) / len(real)
            if copy(row, source) >= 1e-3 * everything:
                total += math.log(1 + copied / len(real) * copy(row, source) / (sum(others) / len(others)))
        result.append(total)
    return result


@pytest.mark.parametrize("seed", range(5))
def test_evidence_is_that_of_its_definition(seed: int) -> None:
    pool = make_pool(seed)
    statistics = list(noisy_copy_statistics(pool, 0))
    for statistic, (kept, copied) in zip(statistics, itertools.product(KEPT, COPIED), strict=True):
        # weights are rounded to 2^-20, others that add 1e-8 of the density are not computed
        assert statistic.weight == pytest.approx(evidence_by_hand(pool, kept, copied), abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_p_is_that_of_all_relabellings(seed: int) -> None:
    pool = make_pool(seed)
    weight = list(noisy_copy_statistics(pool, 0))[-1]
    sums = [weight.weight[list(chosen)].sum() for chosen in itertools.combinations(range(10), 5)]
    exact = np.mean(np.array(sums) >= weight.weight[pool.is_training].sum())
    found = judge([weight], Relabelling.of(pool.is_training, 0.001, 1)).p
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9999) + 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_evidence_does_not_know_who_is_in_training(seed: int) -> None:
    one, other = make_pool(seed, 7, 3), make_pool(seed, 7, 3)
    swapped = Pool(**{**other.__dict__, "is_training": ~other.is_training})
    for before, after in zip(noisy_copy_statistics(one, 0), noisy_copy_statistics(swapped, 0), strict=True):
        assert np.array_equal(before.weight, after.weight)


def test_norms_are_sums_over_all_codes() -> None:
    shares = np.array([0.5, 0.1, 0.0, 0.3, 0.1])
    ranks = np.cumsum(shares) - shares / 2
    direct = [(shares * np.exp(-np.abs(ranks - rank) / 0.1)).sum() for rank in ranks]
    assert normalise(shares, ranks) == pytest.approx(direct, rel=1e-12)
