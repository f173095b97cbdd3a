"""P-values by full enumeration in plain Python, distances between laws by scipy, and what has no noise is exact."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import false_discovery_control, t, wasserstein_distance

from dit_dask.engines import permutation
from dit_dask.engines.exceedance import ERROR, holm_cutoff, lower_ends, row_bounds
from dit_dask.engines.influence import Estimates
from dit_dask.engines.permutation import divisions, expected_noise, number_of_divisions, p_value, smallest_p_value
from dit_dask.engines.witness import Slopes, excess

LEVELS = np.array([0.0, 0.1, 0.25, 0.5, 0.9])


def draws(rng: np.random.Generator, repeats: int, adversaries: int = 2, secrets: int = 3) -> list[np.ndarray]:
    return [rng.choice(LEVELS, (repeats, secrets)) for _ in range(adversaries)]


def distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """The largest over adversaries of the summed distances of coordinates."""
    return max(
        sum(wasserstein_distance(x[:, one], y[:, one]) for one in range(x.shape[1])) for x, y in zip(first, second, strict=True)
    )


def all_divided(first: list[np.ndarray], second: list[np.ndarray]) -> np.ndarray:
    pools, repeats = [np.concatenate(pair) for pair in zip(first, second, strict=True)], len(first[0])
    found = []
    for chosen in combinations(range(2 * repeats), repeats):
        rest = [one for one in range(2 * repeats) if one not in chosen]
        found.append(distance([pool[list(chosen)] for pool in pools], [pool[rest] for pool in pools]))
    return np.array(found)


@pytest.mark.parametrize("repeats", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_p_value_of_few_repeats_is_that_of_all_divisions(repeats: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = draws(rng, repeats), draws(rng, repeats)
    divided = all_divided(first, second)
    wanted = (divided >= distance(first, second) - 1e-9).mean()  # scipy adds in another order
    assert p_value(first, second, divisions(repeats, 0)) == wanted
    assert expected_noise(first, second, divisions(repeats, 0)) == pytest.approx(divided.mean(), abs=1e-12)


def test_a_sampled_p_value_is_close_to_that_of_all_divisions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    first, second = draws(rng, 6), [one + 0.15 for one in draws(rng, 6)]
    exact = p_value(first, second, divisions(6, 0))
    monkeypatch.setattr(permutation, "MOST_DIVISIONS", 900)  # one fewer than there are, so that they are sampled
    sampled = divisions(6, 0)
    assert sampled.shape == (12, 900)
    assert (sampled.sum(axis=0) == 0).all()
    assert 0.01 < exact < 0.5
    assert p_value(first, second, sampled) == pytest.approx(exact, abs=0.06)  # five standard deviations of 900, or 99, draws


@pytest.mark.parametrize("repeats", [2, 6, 20])
def test_p_values_are_uniform_or_larger_where_nothing_is_removed(repeats: int) -> None:
    rng, sides = np.random.default_rng(repeats), divisions(repeats, 1)
    found = np.array([p_value(draws(rng, repeats, 1), draws(rng, repeats, 1), sides) for _ in range(300)])
    for level in (0.02, 0.05, 0.2, 0.5):
        assert (found <= level).mean() <= level + 4 * np.sqrt(level / 300)


@pytest.mark.parametrize("repeats", [2, 6, 30])
def test_equal_draws_have_p_value_1_and_separate_ones_the_smallest_that_there_is(repeats: int) -> None:
    certain, other = [np.tile([1.0, 0.0], (repeats, 1))], [np.tile([0.25, 0.75], (repeats, 1))]
    sides = divisions(repeats, 5)
    assert p_value(certain, certain, sides) == 1
    assert expected_noise(certain, certain, sides) == 0
    assert p_value(certain, other, sides) == smallest_p_value(repeats)
    assert sides.shape == (2 * repeats, number_of_divisions(repeats))


@pytest.mark.parametrize("repeats", [4, 5, 20])
def test_what_has_no_noise_has_its_whole_distance_above_the_noise(repeats: int) -> None:
    certain, other = [np.tile([1.0, 0.0], (repeats, 1))], [np.tile([0.25, 0.75], (repeats, 1))]
    assert excess(certain, other, certain) == (1.5, 0.0)
    assert excess(certain, certain, certain) == (0.0, 0.0)
    value, error = excess(certain[:1], [other[0][:3]], certain)
    assert (value, error) == (1.5, np.inf)  # one draw in a half shows no spread


def test_the_best_function_of_the_known_draws_shows_their_whole_distance() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        x, y = rng.choice(LEVELS, (7, 3)), rng.random((4, 3))
        slopes = Slopes.of(x, y)
        assert slopes.distance == pytest.approx(distance([x], [y]), abs=1e-12)
        assert (slopes.values(y).sum(axis=1).mean() - slopes.values(x).sum(axis=1).mean()) == pytest.approx(slopes.distance)
        new = np.sort(rng.random((50, 3)), axis=0)
        for (low, at_low), (high, at_high) in pairwise(zip(new, slopes.values(new), strict=True)):
            assert (np.abs(at_high - at_low) <= high - low + 1e-12).all()  # no steeper than 1


def test_the_excess_is_zero_on_average_where_nothing_is_removed_and_the_distance_is_not() -> None:
    rng = np.random.default_rng(2)
    found, plain = [], []
    for _ in range(400):
        full, without, again = (draws(rng, 8) for _ in range(3))
        found.append(excess(full, without, again)[0])
        plain.append(distance(full, without))
    assert abs(np.mean(found)) < 4 * np.std(found) / 20
    assert np.mean(plain) > 10 * abs(np.mean(found))


def test_the_excess_is_at_most_the_true_distance_and_close_to_it() -> None:
    rng = np.random.default_rng(4)
    found = []
    for _ in range(200):
        full, again, without = (rng.normal(shift, 0.1, (40, 1)) for shift in (0.0, 0.0, 0.1))
        found.append(excess([full], [without], [again])[0])
    assert 0.09 < np.mean(found) < 0.1 + 4 * np.std(found) / np.sqrt(200)


def test_ends_are_students_for_all_records_at_once_with_room_for_what_was_not_seen() -> None:
    by_record = {"excess": np.array([0.5, 0.4, 0.3]), "excess_stderr": np.array([0.02, 0.0, 0.01])}
    by_record |= {"p_value": np.array([0.001, 0.001, 0.2]), "stderr": np.array([0.03, 0.0, 0.05])}
    distance = np.array([0.6, 0.4, 0.5])
    bounds = row_bounds(Estimates(np.arange(3), by_record, by_record, distance), 20, 2.0)
    tail = ERROR / 3
    assert bounds.low == pytest.approx([0.5 - t.ppf(1 - tail / 2, 9) * 0.02, 0.4, 0.0])  # the last is not significant
    unseen = 2 * (1 - tail ** (1 / 20))
    assert bounds.high == pytest.approx(distance + t.ppf(1 - tail, 19) * by_record["stderr"] + unseen)
    low, high = 0.4 - t.ppf(1 - ERROR / 2, 9) * 0.01, 0.5 + t.ppf(1 - ERROR, 19) * 0.08 / 3 + 2 * (1 - ERROR ** (1 / 20))
    assert bounds.mean.interval == pytest.approx((low, high))


def test_few_repeats_show_nothing_for_sure_whatever_they_show() -> None:
    estimates = {"excess": np.array([1.0, 1.0]), "excess_stderr": np.zeros(2), "p_value": np.zeros(2)}
    assert lower_ends(estimates, 4, 1).tolist() == [1.0, 1.0]
    assert lower_ends(estimates, 4, 2).tolist() == [0.0, 0.0]  # 2 of 70 divisions is more than 0.05 / 2
    assert lower_ends(estimates, 3, 1).tolist() == [0.0, 0.0]


def test_holms_correction_is_that_of_its_definition() -> None:
    assert holm_cutoff(np.array([0.2, 0.01, 0.02])) == 0.02
    assert holm_cutoff(np.array([0.03, 0.03])) == -1
    assert holm_cutoff(np.array([0.001, np.nan, 0.04])) == 0.04
    rng = np.random.default_rng(6)
    for _ in range(50):
        values = rng.random(6) ** 4
        # Holm's step-down rejects between Bonferroni and Benjamini-Hochberg
        count = int((values <= holm_cutoff(values)).sum())
        assert (values <= ERROR / 6).sum() <= count <= (false_discovery_control(values) <= ERROR).sum()
