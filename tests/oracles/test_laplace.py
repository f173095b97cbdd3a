"""The exact Laplace test against closed forms, direct integration over the noise, and 40 digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from dit_dask.engines.noisy_counts import exact
from dit_dask.kernels.laplace import mean_beliefs
from tests.counts import pattern

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 2.5, 40.0, 1e4]
CASES = [
    ([1], 1, 14),
    ([10**6], 10**6, 14),
    ([10**6, 1], 1, 14),
    ([10**6] * 3, 10**6, 3),
    ([900, 30, 2, 1], 30, 9),
    ([4, 2, 2, 1], 2, 5),
]


def test_without_noise_the_distance_is_that_of_smoothed_frequencies() -> None:
    for counts, target, cells in CASES:
        size = sum(counts)
        own = Fraction(1 + target, cells + size) - Fraction(target, cells + size - 1)
        other = [*counts, *[0] * (cells - len(counts))]
        other.remove(target)
        rest = sum(Fraction(1 + c, cells + size - 1) - Fraction(1 + c, cells + size) for c in other)
        assert exact(pattern(counts, target, cells), math.inf)[0] == pytest.approx(float(own + rest), rel=1e-14)


def test_hardly_any_noise_is_near_none() -> None:
    one = pattern([3, 2], 2, 4)
    assert exact(one, 1e9)[0] == pytest.approx(exact(one, math.inf)[0], rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-290, 1e-100, 1e-9])
def test_at_tiny_epsilon_the_distance_shrinks_in_proportion(epsilon: float) -> None:
    for counts, target, cells in CASES:
        if sum(counts) * epsilon < 1e-3:
            one = pattern(counts, target, cells)
            slope = exact(one, epsilon)[0] / epsilon
            assert 0 < slope < 1
            assert slope == pytest.approx(exact(one, epsilon / 10)[0] / (epsilon / 10), rel=0.3)  # up to a logarithm of ε


@pytest.mark.parametrize("epsilon", [1e12, 1e100, 1e290])
def test_at_huge_epsilon_the_noise_is_gone(epsilon: float) -> None:
    for case in CASES:
        assert exact(pattern(*case), epsilon)[0] == pytest.approx(exact(pattern(*case), math.inf)[0], rel=1e-10)


def with_digits(counts: Sequence[int], target: int, cells: int, epsilon: float) -> Any:
    """The textbook form of the integral, whose terms cancel, with enough digits to survive that."""
    e = mpmath.mpf(epsilon)
    others = [*counts, *[0] * (cells - len(counts))]
    others.remove(target)

    def phi(c: int, s: Any) -> Any:
        between = (mpmath.exp(-e * c) - mpmath.exp(-s * c)) / (s - e)
        return mpmath.exp(-e * c) / 2 + e / 2 * (between + mpmath.exp(-s * c) / (s + e))

    def psi(c: int, s: Any) -> Any:
        a, r = s - e, 1 / (s + e)
        between = mpmath.exp(-e * c) * (1 - (1 + a * c) * mpmath.exp(-a * c)) / a**2
        return phi(c, s) + e / 2 * (between + mpmath.exp(-s * c) * (c * r + r**2))

    def integrand(s: Any) -> Any:
        return mpmath.exp(-cells * s) * (psi(target, s) - psi(target - 1, s)) * mpmath.fprod(phi(c, s) for c in others)

    start, step = 1 / (cells + sum(counts) + cells / e), mpmath.mpf(1) / 20
    steps = range(-100, int((mpmath.log(100 / (cells * start)) + 2) / step) + 40)
    nodes = ((start * mpmath.exp(k * step - mpmath.exp(-k * step)), 1 + mpmath.exp(-k * step)) for k in steps)
    return 2 * step * mpmath.fsum(integrand(s) * s * w for s, w in nodes)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 1e4])
def test_forty_digits_agree_for_all_sizes_of_counts_and_noise(epsilon: float) -> None:
    with mpmath.workdps(70):
        for counts, target, cells in CASES:
            expected = float(with_digits(counts, target, cells, epsilon))
            assert exact(pattern(counts, target, cells), epsilon)[0] == pytest.approx(expected, rel=1e-12)


def test_two_values_agree_with_a_double_integral_over_the_noise() -> None:
    def mean_share(own: int, other: int, epsilon: float) -> float:
        """E (1+X)/(2+X+Y) straight from the densities of the two clipped counts."""

        def expect(count: int, function: Callable[[float], float]) -> float:
            def weighted(x: float) -> float:
                return function(x) * epsilon / 2 * math.exp(-epsilon * abs(x - count))

            pieces = [(0, count), (count, count + 2 / epsilon), (count + 2 / epsilon, count + 40 / epsilon)]
            smooth = sum(quad(weighted, low, high, epsabs=0, epsrel=1e-11)[0] for low, high in pieces if low < high)
            return function(0.0) * math.exp(-epsilon * count) / 2 + smooth

        return expect(own, lambda x: expect(other, lambda y: (1 + x) / (2 + x + y)))

    for counts, epsilon in [((1, 0), 1.0), ((3, 2), 0.3), ((2, 7), 2.0)]:
        own, other = counts
        expected = 2 * (mean_share(own, other, epsilon) - mean_share(own - 1, other, epsilon))
        # the tail beyond 40/ε, left out, is worth e^-40
        assert exact(pattern(counts, own, 2), epsilon)[0] == pytest.approx(expected, rel=1e-9)
        first = mean_beliefs(np.array([sorted(counts, reverse=True)]), 2, epsilon)[0]
        assert first.max() == pytest.approx(mean_share(max(counts), min(counts), epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_expected_beliefs_sum_to_one_and_their_difference_is_the_distance(epsilon: float) -> None:
    for counts, target, cells in CASES:
        one = pattern(counts, target, cells)
        ours, theirs = mean_beliefs(one.counts, cells, epsilon), mean_beliefs(one.without(), cells, epsilon)
        np.testing.assert_allclose([ours.sum(), theirs.sum()], 1, rtol=1e-13)
        # both sides are near 1, so their difference is only good to a few roundings
        np.testing.assert_allclose(np.abs(ours - theirs).sum(), exact(one, epsilon)[0], atol=1e-14)


def test_no_noise_gives_smoothed_frequencies() -> None:
    np.testing.assert_array_equal(mean_beliefs(np.array([[2, 1]]), 4, math.inf), [[3 / 7, 2 / 7, 1 / 7, 1 / 7]])
