"""Noise laws against their distributions in scipy and against OpenDP's samplers."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace, Mechanism, gaussian_delta_dp, gaussian_sigma
from dit_dask.seeds import stream

DRAWS = 20_000
# for fixed streams: far below what chance gives, far above what a wrong scale gives
UNLIKELY = 1e-6


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(0.3), stats.laplace(scale=1 / 0.3)),
        (Laplace(9.0), stats.laplace(scale=1 / 9)),
        (Gaussian(2.5), stats.norm(scale=2.5)),
    ],
)
def test_continuous_noise_follows_its_law(mechanism: Mechanism, law: Any) -> None:
    noise = mechanism.noise(stream(1, mechanism.key), DRAWS)
    assert stats.kstest(noise, law.cdf).pvalue > 0.01
    assert stats.kstest(noise * 1.1, law.cdf).pvalue < UNLIKELY


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_geometric_noise_is_a_discrete_laplace(epsilon: float) -> None:
    noise = Geometric(epsilon).noise(stream(2, epsilon), DRAWS)
    assert (noise == np.round(noise)).all()
    reach = int(stats.dlaplace(epsilon).ppf(0.999))
    cells = np.arange(-reach, reach + 1)
    seen = np.array([(noise == cell).sum() for cell in cells])
    expected = stats.dlaplace(epsilon).pmf(cells) * DRAWS
    seen, expected = np.append(seen, DRAWS - seen.sum()), np.append(expected, DRAWS - expected.sum())
    assert stats.chisquare(seen, expected).pvalue > 0.01


def test_infinite_epsilon_and_zero_sigma_add_nothing() -> None:
    for mechanism in (Laplace(math.inf), Geometric(math.inf), Gaussian(0.0)):
        assert not mechanism.noise(stream(3), 100).any()


def test_noise_does_not_depend_on_what_else_is_drawn_from_other_streams() -> None:
    keys = {Laplace(1.0).key, Laplace(2.0).key, Geometric(1.0).key, Gaussian(1.0).key, Laplace(np.float64(1.0)).key}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("epsilon", "delta_dp"), [(1e-4, 1e-7), (0.01, 1e-3), (0.5, 1e-5), (1.0, 1e-9), (8.0, 1e-6), (50.0, 0.1)]
)
def test_gaussian_sigma_solves_the_definition_of_approximate_privacy(epsilon: float, delta_dp: float) -> None:
    sigma = gaussian_sigma(epsilon, delta_dp)

    def excess(x: float) -> float:
        """How much likelier an output is than ε allows."""
        return max(0.0, stats.norm.pdf(x, 1, sigma) - math.exp(epsilon) * stats.norm.pdf(x, 0, sigma))

    start = 0.5 + epsilon * sigma**2  # below it there is no excess
    found = quad(excess, start, start + 12 * sigma + 12, points=[start + sigma], epsabs=0, epsrel=1e-10, limit=200)[0]
    assert found == pytest.approx(delta_dp, rel=1e-6)
    assert gaussian_delta_dp(sigma, epsilon) == pytest.approx(delta_dp, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1e-6, 1e5), (1e-3, 300.0), (1.0, 4.0), (100.0, 0.05), (1e4, 0.005)])
def test_delta_dp_of_gaussian_noise_keeps_its_digits_where_its_terms_cancel(epsilon: float, sigma: float) -> None:
    with mpmath.workdps(60):
        half, shift = mpmath.mpf(1) / 2 / mpmath.mpf(sigma), mpmath.mpf(epsilon) * mpmath.mpf(sigma)
        expected = float(mpmath.ncdf(half - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-half - shift))
    assert gaussian_delta_dp(sigma, epsilon) == pytest.approx(expected, rel=1e-10)


def test_the_analytic_sigma_is_below_the_classical_one() -> None:
    assert gaussian_sigma(0.5, 1e-5) < math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.5


@pytest.fixture(scope="module")
def opendp() -> Any:
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    dp.enable_features("contrib")
    return dp


def test_laplace_noise_is_that_of_opendp(opendp: Any) -> None:
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l1_distance(T=float)
    measurement = opendp.m.make_laplace(*space, scale=2.0)
    assert measurement.map(1.0) == pytest.approx(0.5)
    theirs = measurement([0.0] * DRAWS)
    assert stats.ks_2samp(theirs, Laplace(0.5).noise(stream(4), DRAWS)).pvalue > UNLIKELY


def test_geometric_noise_is_that_of_opendp(opendp: Any) -> None:
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    theirs = opendp.m.make_laplace(*space, scale=2.0)([0] * DRAWS)
    ours = Geometric(0.5).noise(stream(5), DRAWS)
    edges = [-np.inf, *np.arange(-6.5, 7), np.inf]
    table = [np.histogram(side, edges)[0] for side in (theirs, ours)]
    assert stats.chi2_contingency(table).pvalue > UNLIKELY


def test_gaussian_noise_is_that_of_opendp_and_its_looser_accounting_agrees(opendp: Any) -> None:
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l2_distance(T=float)
    sigma = gaussian_sigma(1.0, 1e-6)
    measurement = opendp.m.make_gaussian(*space, scale=sigma)
    assert stats.ks_2samp(measurement([0.0] * DRAWS), Gaussian(sigma).noise(stream(6), DRAWS)).pvalue > UNLIKELY
    curve = opendp.c.make_zCDP_to_approxDP(measurement).map(1.0)
    assert 1e-6 <= curve.delta(epsilon=1.0) <= 1e-5
