"""The curve of Pr[d >= epsilon] by plain counting and scipy's intervals, its error rate, and the bias by a closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from dit_dask.distances import EPSILONS, THRESHOLDS
from dit_dask.engines.exceedance import epsilon_delta
from dit_dask.engines.influence import Estimates
from dit_dask.engines.repeated import bias, law_distance
from dit_dask.kernels import laplace


def estimates_of(single: np.ndarray, noise: np.ndarray, person: np.ndarray | None = None) -> Estimates:
    """What an engine stores of distances[rows, repeats] of single draws."""
    found = {f"over_{name}": (single >= limit).mean(axis=1) for name, limit in EPSILONS.items()}
    found |= {f"noise_over_{name}": (noise >= limit).mean(axis=1) for name, limit in EPSILONS.items()}
    found["p_value"] = np.ones(len(single))
    return Estimates(np.arange(len(single)), found, found, single.mean(axis=1), person)


def test_the_curve_is_the_worst_of_all_persons_with_corrected_exact_intervals() -> None:
    rng = np.random.default_rng(1)
    single, noise = rng.beta(1, 4, (7, 30)), rng.beta(1, 9, (7, 30))
    curve = epsilon_delta(estimates_of(single, noise), 30, 1.0)
    wanted = [epsilon for epsilon in EPSILONS.values() if epsilon <= 1]
    assert [point.epsilon for point in curve] == wanted
    for point in curve:
        hits = [sum(value >= point.epsilon for value in row) for row in single.tolist()]
        assert point.worst == max(hits) / 30
        assert point.mean == pytest.approx(np.mean(hits) / 30)
        assert point.noise_worst == max(sum(value >= point.epsilon for value in row) for row in noise.tolist()) / 30
        level = 1 - 2 * 0.05 / (7 * len(wanted))  # two sides of 0.05 each, for 7 persons and all epsilons
        interval = binomtest(max(hits), 30).proportion_ci(level, "exact")
        assert (point.at_least, point.at_most) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_rows_of_a_person_are_one_test_of_the_curve() -> None:
    single = np.repeat(np.array([[0.3] * 9 + [0.0], [0.0] * 10]), 2, axis=0)
    by_row, by_person = (
        epsilon_delta(estimates_of(single, single * 0, person), 10, 2.0) for person in (None, np.array([0, 0, 1, 1]))
    )
    for rows, persons in zip(by_row, by_person, strict=True):
        assert (rows.worst, rows.mean) == (persons.worst, persons.mean)
        assert persons.at_most <= rows.at_most
    assert by_person[0].at_most < 1


def test_the_bounds_fail_in_fewer_than_one_of_twenty_runs() -> None:
    repeats, persons, runs, wrong = 12, 6, 400, np.zeros(2)
    chances = np.linspace(0.02, 0.9, persons)  # Pr[d >= 0.1] of each person; d is 0.2 or nothing
    for run in range(runs):
        single = 0.2 * (np.random.default_rng(run).random((persons, repeats)) < chances[:, None])
        point = next(one for one in epsilon_delta(estimates_of(single, single), repeats, 2.0) if one.epsilon == 0.1)
        wrong += point.at_most < 0.9, point.at_least > 0.9
    assert (wrong / runs <= 0.05).all()


@pytest.mark.parametrize(("counts", "epsilon"), [([1, 0, 0], 0.1), ([3, 1, 0, 0, 0], 0.1), ([1, *[0] * 19], 1.0)])
def test_the_bias_is_estimated_where_noise_decides(counts: list[int], epsilon: float) -> None:
    vector = np.array(counts)
    own = int(np.flatnonzero(vector == vector[0])[-1])
    exact = laplace.distances(vector[None], np.array([own]), len(vector), epsilon)[0]
    x, y = (draw_beliefs(side, epsilon, (300, 40)) for side in (vector, vector - (np.arange(len(vector)) == 0)))
    true = law_distance(x, y).mean() - exact
    assert true > exact  # most of the distance is noise
    assert bias(x, y).mean() == pytest.approx(true, rel=0.25)  # 4 standard errors, and terms beyond the root


def test_laws_that_are_apart_have_no_bias() -> None:
    x, y = (draw_beliefs(np.array(counts), 20.0, (100, 20)) for counts in ([9, 0], [2, 0]))
    assert x[..., 0].min() > y[..., 0].max()
    assert (bias(x, y) < 1e-12).all()


def draw_beliefs(counts: np.ndarray, epsilon: float, shape: tuple[int, int]) -> np.ndarray:
    """Beliefs from counts with Laplace noise, independent for every side."""
    rng = np.random.default_rng([int(counts.sum()), len(counts)])
    noisy = 1 + np.maximum(0.0, counts + rng.laplace(0.0, 1 / epsilon, (*shape, len(counts))))
    return noisy / noisy.sum(axis=-1, keepdims=True)


def test_thresholds_of_a_summary_are_points_of_the_curve() -> None:
    assert THRESHOLDS.items() <= EPSILONS.items()
