"""The test on noisy counts against scipy, against the exact values, and on the papers' tables."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dit_dask import seeds
from dit_dask.audit.grammar import check_config
from dit_dask.engines import noisy_counts
from dit_dask.engines.noisy_counts import (
    Patterns,
    Sampling,
    binned,
    count,
    delta_interval,
    exact,
    privacy_loss,
    released_beliefs,
    simulate,
)
from dit_dask.engines.noisy_counts.simulation import draw
from dit_dask.inputs.load import load
from dit_dask.kernels import sampled_beliefs
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, Mechanism, gaussian_sigma
from dit_dask.values.table import Rows
from tests.counts import pattern

EPSILONS = [1e-3, 0.01, 0.1, 0.5, 1.0, 5.0, math.inf]


def internet(folder: Path) -> Rows:
    names = ["race", "education_attainment", "major_occupation", "marital_status"]
    quasi = {"age": {"kind": "numeric"}} | {name: {"kind": "categorical"} for name in names}
    document = {
        "version": 1,
        "data": {"source": "internet_usage.csv", "missing": {"age": ["Not-Say"]}},
        "schema": {"quasi_identifiers": quasi, "sensitive": "household_income"},
        "tests": [{"sanitizer": "raw"}],
    }
    return load(check_config(document, str(folder)))


def adult(folder: Path) -> Rows:
    numeric = {name: {"kind": "numeric"} for name in ("age", "hours-per-week")}
    categorical = {name: {"kind": "categorical"} for name in ("education", "marital-status", "native-country")}
    document = {
        "version": 1,
        "data": {"source": "adult.csv", "missing": ["?"], "sample": {"rows": 10_000, "seed": 7}},
        "schema": {"quasi_identifiers": numeric | categorical, "sensitive": "occupation"},
        "tests": [{"sanitizer": "raw"}],
    }
    return load(check_config(document, str(folder)))


def test_internet_usage_by_decades_has_the_papers_distinct_records(data_folder: Path) -> None:
    table, index = binned(internet(data_folder).table, {"age": [0, 20, 40, 60, 80]}, "bins")
    assert (table.rows, table.distinct, len(index)) == (9_799, 2_926, 7_049)


def test_adult_in_four_bins_has_about_the_papers_distinct_records(data_folder: Path) -> None:
    table, _ = binned(adult(data_folder).table, {"age": 4, "hours-per-week": 4}, "bins")
    assert table.rows == 10_000
    assert table.distinct == pytest.approx(2_952, rel=0.02)  # the paper's sample is unpublished
    assert len(count(table).patterns) == pytest.approx(931, rel=0.1)


def test_every_record_of_both_tables_keeps_the_bound(data_folder: Path) -> None:
    tables = [
        binned(internet(data_folder).table, {"age": [0, 20, 40, 60, 80]}, "bins")[0],
        binned(adult(data_folder).table, {"age": 4, "hours-per-week": 4}, "bins")[0],
    ]
    for table in tables:
        patterns = count(table).patterns
        n = patterns.cells
        for epsilon in EPSILONS:
            found = exact(patterns, epsilon)
            assert (found > 0).all()
            assert found.max() <= min(2 * math.tanh(epsilon / 2), 2 * (n - 1) / (n * (n + 1))) * (1 + 1e-12)


def test_sampling_at_small_epsilon_prints_mostly_its_own_noise(data_folder: Path) -> None:
    table, _ = binned(adult(data_folder).table, {"age": 4, "hours-per-week": 4}, "bins")
    patterns = count(table).patterns
    chosen = patterns.take(np.arange(0, len(patterns), 40))
    simulated = simulate(chosen, Sampling(Laplace(0.01), seed=7))
    assert simulated.distance.max() > 2 * math.tanh(0.005) > 5 * exact(patterns, 0.01).max()
    low, high = delta_interval(simulated, 25_000, len(chosen))
    assert low <= exact(chosen, 0.01).max() <= high


MIXED = [([1], 1, 3), ([4, 1], 1, 3), ([4, 1], 4, 3), ([9, 3, 3], 3, 3), ([2, 2, 1], 2, 6), ([30, 1], 1, 6), ([1, 1, 1], 1, 6)]


@pytest.mark.parametrize("coupling", noisy_counts.COUPLINGS)
@pytest.mark.parametrize("mechanism", [Laplace(0.5), Geometric(0.5), Gaussian(1.5)])
def test_the_sampled_distance_is_scipys_on_the_same_samples(mechanism: Mechanism, coupling: str) -> None:
    for counts, target, cells in MIXED:
        one = pattern(counts, target, cells)
        sampling = Sampling(mechanism, seed=3, samples=500, coupling=coupling)
        sides = []
        for vector in (one.counts[0], one.without()[0]):
            noisy = 1 + np.maximum(0, np.pad(vector, (0, cells - len(vector)))[:, None] + draw(sampling, vector, cells))
            sides.append(noisy / noisy.sum(axis=0))
        ours, theirs = sides
        found = simulate(one, sampling)
        expected = sum(stats.wasserstein_distance(x, y) for x, y in zip(ours, theirs, strict=True))
        assert found.distance[0] == pytest.approx(expected, rel=1e-12)
        own = one.own[0]
        assert found.unbiased[0] == pytest.approx(2 * (ours[own].mean() - theirs[own].mean()), rel=1e-9)
        apart, paired = ours[own].var(ddof=1) + theirs[own].var(ddof=1), (ours[own] - theirs[own]).var(ddof=1)
        spread = paired if coupling == "common" else apart
        assert found.stderr[0] == pytest.approx(2 * math.sqrt(spread / 500), rel=1e-9)


def test_common_noise_makes_the_published_estimate_unbiased() -> None:
    for mechanism in (Laplace(0.05), Geometric(0.05), Gaussian(10.0)):
        for case in MIXED:
            found = simulate(pattern(*case), Sampling(mechanism, seed=1, samples=300, coupling="common"))
            assert found.distance[0] == pytest.approx(found.unbiased[0], rel=1e-10)


@pytest.mark.parametrize(("coupling", "epsilon"), [("independent", 0.1), ("independent", 2.0), ("common", 0.5)])
def test_unbiased_estimates_scatter_around_the_exact_values_as_their_errors_say(coupling: str, epsilon: float) -> None:
    scores = []
    for seed in range(60):
        for case in MIXED[:: 1 if coupling == "independent" else 7]:  # common noise makes the cases of a seed alike
            one = pattern(*case)
            found = simulate(one, Sampling(Laplace(epsilon), seed, 2_000, coupling))
            scores.append((found.unbiased[0] - exact(one, epsilon)[0]) / found.stderr[0])
    assert abs(np.mean(scores)) < 4 / math.sqrt(len(scores))
    assert stats.kstest(scores, stats.norm.cdf).pvalue > 1e-3


def test_without_noise_sampling_gives_the_closed_form() -> None:
    for case in MIXED:
        found = simulate(pattern(*case), Sampling(Laplace(math.inf), seed=0, samples=4))
        assert found.distance[0] == pytest.approx(exact(pattern(*case), math.inf)[0], rel=1e-12)
        assert found.stderr[0] == 0


def test_geometric_noise_is_near_laplace_noise_when_both_are_wide() -> None:
    one = pattern([3, 2, 1], 2, 5)
    found = simulate(one, Sampling(Geometric(0.02), seed=5, samples=200_000, coupling="common"))
    assert found.unbiased[0] == pytest.approx(exact(one, 0.02)[0], rel=0.05)


def test_the_interval_for_delta_covers_it_as_often_as_it_says() -> None:
    patterns = Patterns(4, np.array([[5, 2, 1], [1, 0, 0], [2, 0, 0], [1, 1, 0]]), np.array([2, 0, 0, 1]))
    delta = exact(patterns, 0.4).max()
    hits = 0
    for seed in range(200):
        low, high = delta_interval(simulate(patterns, Sampling(Laplace(0.4), seed, 400)), 400, len(patterns))
        hits += low <= delta <= high
    assert hits >= 185  # 95% of 200, less 2 standard deviations


WORST = Patterns(14, np.array([[1, 0], [1, 1], [2, 0], [3, 1], [40, 1]]), np.array([0, 1, 0, 1, 1]))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_noise_of_half_the_scale_is_flagged_and_the_right_one_is_not(epsilon: float) -> None:
    for seed in range(5):
        right = privacy_loss(*released_beliefs(WORST, Sampling(Laplace(epsilon), seed)))
        wrong = privacy_loss(*released_beliefs(WORST, Sampling(Laplace(2 * epsilon), seed)))
        assert 0.5 * epsilon < right.epsilon <= epsilon
        assert not right.contradicts(epsilon)
        assert epsilon < wrong.epsilon <= 2 * epsilon
        assert wrong.contradicts(epsilon)


def test_a_right_mechanism_is_hardly_ever_flagged_even_where_its_loss_is_nearly_reached() -> None:
    worst = WORST.take(np.array([0]))
    flags = sum(
        privacy_loss(*released_beliefs(worst, Sampling(Laplace(1.0), seed, 2_000)), confidence=0.8).contradicts(1.0)
        for seed in range(100)
    )
    assert flags <= 20 + 8


@pytest.mark.parametrize("wrong", [Geometric(2.0), Gaussian(gaussian_sigma(1.0, 1e-3) / 4)])
def test_other_mechanisms_are_checked_against_their_claims_too(wrong: Mechanism) -> None:
    right: Mechanism = Geometric(1.0) if isinstance(wrong, Geometric) else Gaussian(gaussian_sigma(1.0, 1e-3))
    delta_dp = 0.0 if isinstance(wrong, Geometric) else 1e-3
    assert not privacy_loss(*released_beliefs(WORST, Sampling(right, 1)), delta_dp=delta_dp).contradicts(1.0)
    assert privacy_loss(*released_beliefs(WORST, Sampling(wrong, 1)), delta_dp=delta_dp).contradicts(1.0)


def test_released_beliefs_are_of_the_kind_that_is_compared_from_streams_of_their_own() -> None:
    ours, theirs = released_beliefs(WORST, Sampling(Laplace(1.0), seed=2, samples=100))
    sampling = Sampling(Laplace(1.0), seed=seeds.integer(2, "privacy loss"), samples=100)
    simulated = simulate(WORST, sampling)
    np.testing.assert_allclose(2 * (ours.mean(axis=1) - theirs.mean(axis=1)), simulated.unbiased, rtol=1e-9)
    noise = draw(sampling, WORST.counts[1], WORST.cells)
    sampled_beliefs.normalise(noise, WORST.counts[1])
    np.testing.assert_allclose(noise.sum(axis=0), 1, rtol=1e-14)
