"""The tests of closeness against enumeration, and their promise under the null hypothesis."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dit_dask as dit
from dit_dask.measures.synthetic.guards import count_shared
from dit_dask.measures.synthetic.relabelling import Moments, Relabelling, Statistic, judge
from dit_dask.measures.synthetic.reuse import combine, find_reused


def test_moments_are_those_of_all_divisions() -> None:
    weights = np.array([[4.0, 1, 0, 2, 3, 3, 0, 0], [0, 0, 0, 0, 0, 0, 0, 9]])
    found = Moments.of(weights, 3)
    for row, weight in enumerate(weights):
        sums = [weight[list(chosen)].sum() for chosen in itertools.combinations(range(8), 3)]
        assert found.mean[row] == pytest.approx(np.mean(sums))
        assert found.deviation[row] == pytest.approx(np.std(sums))
        assert found.skewness[row] == pytest.approx(stats.skew(sums))


def test_tails_are_those_of_a_gamma_distribution() -> None:
    moments = Moments(np.array([5.0, 5.0, 5.0, 5.0]), np.array([2.0, 2.0, 2.0, 0.0]), np.array([0.8, -0.8, 0.0, 0.0]))
    found = moments.tail(np.full(4, 8.0))
    assert found[:3] == pytest.approx([stats.pearson3.sf(1.5, 0.8), stats.pearson3.sf(1.5, -0.8), stats.norm.sf(1.5)], rel=1e-9)
    assert found[3] == 1


def test_p_is_the_share_of_the_labels_that_are_as_extreme() -> None:
    """With one statistic the corrected p is that of enumerating all divisions, up to the error of drawing them."""
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 12).astype(float)
    is_training = np.arange(12) < 7
    sums = [weight[list(chosen)].sum() for chosen in itertools.combinations(range(12), 7)]
    exact = np.mean(np.array(sums) >= weight[is_training].sum())
    found = judge([Statistic.of("one", "all", weight)], Relabelling.of(is_training, 0.001, 1)).p
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))


def test_the_number_of_training_records_is_kept() -> None:
    labels = Relabelling.of(np.arange(37) < 30, 0.01, 0)
    bits = np.unpackbits(labels.drawn, axis=1, count=37)
    assert (bits.sum(axis=1) == 30).all()
    assert bits.mean(axis=0) == pytest.approx(np.full(37, 30 / 37), abs=0.06)  # five standard errors of 999 draws


def test_a_shared_holdout_is_no_chance() -> None:
    rng = np.random.default_rng(1)
    codes = np.sort(rng.integers(0, 1000, 400))[:, None].astype(np.int32)
    labels = rng.permutation(400) < 250
    shared, p = count_shared(codes, Relabelling.of(labels, 0.01, 0))
    one, other = set(codes[labels, 0]), codes[~labels, 0]
    assert shared == sum(code in one for code in other)
    assert p > 0.01
    twice = np.repeat(np.arange(50), 2)[:, None].astype(np.int32)
    assert count_shared(twice, Relabelling.of(np.arange(100) % 2 == 0, 0.01, 0)) == (50, 0.001)


def test_reused_values_are_those_of_one_real_record() -> None:
    pool, synthetic = np.array([5, 3, 3, 9, 7, 1]), np.array([9, 9, 3, 1, 4])
    assert sorted(find_reused(pool, synthetic).tolist()) == [3, 5]
    assert find_reused(np.array([2, 2]), synthetic).tolist() == []
    wide = [np.arange(50) % 7 + 2**20 * (np.arange(50) % 3) for _ in range(5)]
    assert len(np.unique(combine(wide))) == len({tuple(row) for row in np.column_stack(wide).tolist()})


@pytest.mark.parametrize("distance", ["buckets", "gower"])
def test_false_alarms_are_as_rare_as_promised(distance: str) -> None:
    """Under the null at level 0.05 at most 5% of verdicts may be wrong; 30 draws exceed 5 with probability 0.003."""
    rng = np.random.default_rng(11)

    def people(rows: int) -> pd.DataFrame:
        x = rng.normal(size=rows)
        more = {"z": rng.choice(list("abcd"), rows), "w": rng.integers(0, 3, rows)}
        return pd.DataFrame({"x": x, "y": np.round(x + rng.normal(size=rows), 1), **more})

    verdicts = [dit.closeness(people(80), people(60), people(40), distance, level=0.05).passed for _ in range(30)]
    assert sum(passed is False for passed in verdicts) <= 5
