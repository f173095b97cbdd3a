"""The tests of closeness against scipy, enumeration, and their own promise under the null hypothesis."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dit_dask as dit
from dit_dask.measures.synthetic.dominance import (
    Comparison,
    holm,
    hypergeometric_tail,
    nearer,
    smaller,
    smallest_p,
    tail,
    wilson,
)

samples = st.lists(st.integers(0, 12), min_size=3, max_size=60)


@settings(deadline=None, max_examples=150)
@given(x=samples, y=samples)
def test_smaller_is_the_test_of_brunner_and_munzel(x: list[int], y: list[int]) -> None:
    sample, reference = np.array(x, float), np.array(y, float)
    found = smaller("dcr", sample, reference, 0.01)
    pairs = np.sign(reference[None, :] - sample[:, None])
    assert found.effect == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean(), abs=1e-12)
    assert found.interval[0] <= found.effect <= found.interval[1]
    if 0 < found.effect < 1 and len({*x, *y}) > 1:
        with np.errstate(all="ignore"):
            theirs = stats.brunnermunzel(sample, reference, alternative="less").pvalue
        if np.isfinite(theirs):
            assert found.p == pytest.approx(max(theirs, smallest_p(len(x), len(y))), abs=1e-9)


def test_complete_separation_has_the_smallest_p() -> None:
    found = smaller("dcr", np.arange(5.0), np.arange(5.0) + 10, 0.01)
    assert (found.effect, found.interval[1]) == (1.0, 1.0)
    assert found.p == pytest.approx(1 / 252)
    assert smaller("dcr", np.arange(5.0) + 10, np.arange(5.0), 0.01).p == 1.0
    assert smaller("dcr", np.zeros(5), np.zeros(5), 0.01) == Comparison("dcr", 0.5, (0.5, 0.5), 1.0)


@settings(deadline=None, max_examples=100)
@given(x=samples, y=samples, share=st.sampled_from([0.01, 0.05, 0.3]))
def test_tail_is_fishers_exact_test(x: list[int], y: list[int], share: float) -> None:
    found = tail("dcr", np.array(x, float), np.array(y, float), share, 0.01)
    threshold = np.quantile([*x, *y], share, method="inverted_cdf")
    low, low_reference = sum(value <= threshold for value in x), sum(value <= threshold for value in y)
    table = [[low, len(x) - low], [low_reference, len(y) - low_reference]]
    assert found.p == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-9)
    assert found.effect == pytest.approx(low / len(x) - low_reference / len(y))
    assert found.interval[0] <= found.effect <= found.interval[1]
    theirs = stats.binomtest(low, len(x)).proportion_ci(0.99, "wilson")
    assert wilson(low / len(x), len(x), 0.01) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_hypergeometric_tails_far_out() -> None:
    assert hypergeometric_tail(900, 1000, 50_000, 100_000) == pytest.approx(
        stats.hypergeom.sf(899, 100_000, 1000, 50_000), rel=1e-7
    )
    assert hypergeometric_tail(0, 10, 10, 20) == pytest.approx(1.0)


def test_nearness_has_the_mean_and_variance_of_all_divisions() -> None:
    leaning, members = np.array([4, 1, 0, 2, 3]), np.array([1, 2, 1, 3, 1])
    owner = np.repeat(np.arange(5), members)
    weight = (leaning / members)[owner]
    first = 3
    totals = [weight[list(chosen)].sum() for chosen in itertools.combinations(range(len(owner)), first)]
    inside = np.array([1, 0, 1, 1, 0])
    found = nearer("share", leaning, inside, members, 0.01)
    records = leaning.sum()
    assert found.effect == pytest.approx((leaning * inside / members).sum() / records)
    assert np.mean(totals) == pytest.approx(records * first / len(owner))
    z = (found.effect * records - np.mean(totals)) / np.std(totals)
    assert found.p == pytest.approx(stats.norm.sf(z))


def test_holm_steps_down() -> None:
    raw = [0.04, 0.001, 0.3, 0.002]
    found = holm([Comparison(str(p), 0.5, (0, 1), p) for p in raw], 0.01)
    assert [test.adjusted for test in found] == pytest.approx([0.08, 0.004, 0.3, 0.006])
    assert [test.closer for test in found] == [False, True, False, True]


@pytest.mark.parametrize("distance", ["buckets", "gower"])
def test_false_alarms_are_as_rare_as_promised(distance: str) -> None:
    """Under the null at level 0.05 at most about 5% of verdicts may be wrong; 200 draws exceed 8.5% with probability < 0.02."""
    rng = np.random.default_rng(11)

    def people(rows: int) -> pd.DataFrame:
        x = rng.normal(size=rows)
        return pd.DataFrame({"x": x, "y": np.round(x + rng.normal(size=rows), 1), "z": rng.choice(list("abcd"), rows)})

    verdicts = [dit.closeness(people(200), people(150), people(100), distance, level=0.05).passed for _ in range(200)]
    assert 1 - np.mean(verdicts) <= 0.085


@pytest.mark.parametrize("distance", ["buckets", "gower", "euclidean"])
def test_copies_of_a_few_outliers_are_found_in_the_tail(distance: str) -> None:
    rng = np.random.default_rng(2)

    def people(rows: int) -> pd.DataFrame:
        return pd.DataFrame({name: rng.standard_t(3, rows) for name in "abcdefgh"})

    training, holdout = people(800), people(800)
    fresh = people(800)
    far = training.iloc[np.argsort(-training.abs().sum(axis=1).to_numpy())[:25]]
    leaky = pd.concat([fresh.iloc[25:], far + rng.normal(0, 1e-3, far.shape)])
    assert dit.closeness(training, fresh, holdout, distance).passed
    found = dit.closeness(training, leaky, holdout, distance)
    assert not found.passed
    closer = {test.name for test in found.tests if test.closer}
    assert "nndr, closest 1%" in closer or "nndr, closest 5%" in closer
    assert "dcr" not in closer  # the rest of the records hide them from any mean
