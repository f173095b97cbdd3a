"""Statistics of attacks on membership against scikit-learn, scipy and closed forms; error rates simulated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score

from dit_dask import seeds
from dit_dask.measures.membership.attack import AttackResult, attack
from dit_dask.measures.membership.epsilon import attainable_epsilon, releases_to_refute, smallest_leak
from dit_dask.measures.membership.rates import auc, auc_rate, likelihood_ratios, tpr_at

LEVEL, ERRORS, REPETITIONS = 0.95, 0.05, 400


def stream(part: object) -> np.random.Generator:
    return seeds.stream(0, "test", part)


def attacked(values: np.ndarray, delta_dp: float = 0.0) -> AttackResult:
    return attack(values, delta_dp, LEVEL, stream)


def randomised_response(epsilon: float, persons: int, releases: int, rng: np.random.Generator) -> np.ndarray:
    """One bit: whether the person is there, told truly with probability e^ε / (1 + e^ε)."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    says = rng.random((persons, 1, 2, releases)) < np.array([truth, 1 - truth])[:, None]
    return says.astype(float)


def laplace_counts(epsilon: float, persons: int, releases: int, rng: np.random.Generator) -> np.ndarray:
    values = rng.laplace(0.0, 1 / epsilon, (persons, 1, 2, releases))
    values[:, :, 0] += 1
    return values


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    present, absent = rng.integers(0, 2 + 10 * seed, 37) / 4, rng.integers(0, 2 + 8 * seed, 53) / 4  # many ties
    labels = np.repeat([1, 0], [37, 53])
    assert auc(present, absent) == pytest.approx(roc_auc_score(labels, np.concatenate([present, absent])), abs=1e-14)


@pytest.mark.parametrize("limit", [0.1, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_tpr_at_fpr_is_the_best_of_all_thresholds_and_its_interval_that_of_scipy(seed: int, limit: float) -> None:
    rng = np.random.default_rng(seed)
    present, absent = (rng.integers(0, 3 + 10 * seed, 60) + 1).tolist(), rng.integers(0, 3 + 10 * seed, 50).tolist()
    best = 0
    for threshold in [*present, *absent]:
        if sum(one >= threshold for one in absent) <= limit * len(absent):
            best = max(best, sum(one >= threshold for one in present))
    rate = tpr_at(np.array(present, float), np.array(absent, float), limit, LEVEL)
    assert rate.value == best / 60
    expected = binomtest(best, 60).proportion_ci(LEVEL, "exact")
    assert rate.interval == pytest.approx([expected.low, expected.high], abs=1e-9)  # scipy searches for roots


def test_intervals_of_auc_contain_it_as_often_as_they_say_also_with_ties() -> None:
    """AUC of normal laws one deviation apart is Φ(1/√2); of coarse values it is summed over all pairs."""
    rng, levels = np.random.default_rng(5), np.arange(4)
    law, other = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    coarse = sum(law[i] * other[j] * (1 if i > j else 0.5 if i == j else 0) for i in levels for j in levels)
    missed = {"normal": 0, "coarse": 0}
    for number in range(REPETITIONS):
        rate = auc_rate(rng.normal(1, 1, 30), rng.normal(0, 1, 30), stream(number), LEVEL)
        missed["normal"] += not rate.low <= norm.cdf(1 / math.sqrt(2)) <= rate.high
        rate = auc_rate(rng.choice(levels, 30, p=law), rng.choice(levels, 30, p=other), stream(number), LEVEL)
        missed["coarse"] += not rate.low <= coarse <= rate.high
        assert rate.low <= rate.value <= rate.high
    assert max(missed.values()) <= most_errors(REPETITIONS), missed


def test_intervals_of_the_pooled_auc_hold_for_persons_whose_laws_differ() -> None:
    """Scores of person i are normal around ±m_i: over all pairs of persons the AUC is the mean of Φ((m_i + m_j) / √2)."""
    rng, centres = np.random.default_rng(6), np.linspace(0, 2, 10)
    expected = norm.cdf((centres[:, None] + centres) / math.sqrt(2)).mean()
    missed = 0
    for number in range(REPETITIONS):
        present, absent = (rng.normal(sign * centres[:, None], 1, (10, 20)).ravel() for sign in (1, -1))
        rate = auc_rate(present, absent, stream(number), LEVEL)
        missed += not rate.low <= expected <= rate.high
    assert missed <= most_errors(REPETITIONS)


def test_likelihood_ratios_are_those_of_normal_laws() -> None:
    rng = np.random.default_rng(2)
    present, absent, scored = rng.normal(2, 3, 50), rng.normal(0, 1, 40), rng.normal(0, 2, 10)
    overall = np.concatenate([present, absent]).var()
    sides = [norm(side.mean(), math.sqrt((len(side) * side.var() + overall) / (len(side) + 1))) for side in (present, absent)]
    expected = sides[0].logpdf(scored) - sides[1].logpdf(scored)
    assert likelihood_ratios(present, absent, scored) == pytest.approx(expected, abs=1e-12)
    assert not likelihood_ratios(np.ones(5), np.ones(5), np.array([1.0, 2.0])).any()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_is_attacked_as_well_as_possible(epsilon: float) -> None:
    """Its AUC is e^ε / (1 + e^ε) = p; TPR at an FPR of 1 − p is p, and 0 below that."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    result = attacked(randomised_response(epsilon, 4, 20_000, np.random.default_rng(1)))
    error = 4 * 0.5 / math.sqrt(10_000)  # four standard errors at most, of the half that is attacked
    assert [one.auc.value for one in result.persons] == pytest.approx([truth] * 4, abs=error)
    assert result.pooled.auc.value == pytest.approx(truth, abs=error)
    for rates in result.persons:
        assert rates.tpr["tpr_at_10_percent"].value == 0
    scores = randomised_response(epsilon, 1, 20_000, np.random.default_rng(3))[0, 0]
    assert tpr_at(*scores, 1 - truth + error, LEVEL).value == pytest.approx(truth, abs=error)
    assert 0.9 * epsilon < result.epsilon.at_least <= epsilon


def most_errors(repetitions: int, error: float = ERRORS) -> float:
    """The nominal number of errors and three standard errors of it."""
    return repetitions * error + 3 * math.sqrt(repetitions * error * (1 - error))


@pytest.mark.parametrize(
    ("law", "persons", "releases"),
    [
        (randomised_response, 1, 40),
        (randomised_response, 30, 20),
        (randomised_response, 10, 200),
        (laplace_counts, 1, 100),
        (laplace_counts, 30, 20),
    ],
)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_bound_exceeds_the_true_epsilon_not_more_often_than_it_says(
    law: Any, persons: int, releases: int, epsilon: float
) -> None:
    rng = np.random.default_rng(releases + persons)
    wrong = sum(attacked(law(epsilon, persons, releases, rng)).epsilon.at_least > epsilon for _ in range(REPETITIONS))
    assert wrong <= most_errors(REPETITIONS)


def test_the_bound_holds_for_persons_whose_laws_differ() -> None:
    """One person has all of epsilon, the others less: rates of all together are means of different ones."""
    rng, wrong = np.random.default_rng(11), 0
    for _ in range(REPETITIONS):
        values = np.concatenate([randomised_response(one, 1, 40, rng) for one in np.linspace(0, 1, 12)])
        wrong += attacked(values).epsilon.at_least > 1.0
    assert wrong <= most_errors(REPETITIONS)


def test_with_a_delta_the_bound_holds_for_a_mechanism_that_fails_so_often() -> None:
    """With probability 0.1 it publishes the bit itself, else randomised response: (ε, 0.1)-differential privacy."""
    rng, wrong, larger = np.random.default_rng(12), 0, 0
    for _ in range(REPETITIONS):
        values = randomised_response(0.5, 1, 200, rng)
        for side, told in ((0, 3.0), (1, -3.0)):
            values[0, 0, side, rng.random(200) < 0.1] = told
        wrong += attacked(values, 0.1).epsilon.at_least > 0.5
        larger += attacked(values, 0.0).epsilon.at_least > 0.5
    assert wrong <= most_errors(REPETITIONS)
    assert larger > most_errors(REPETITIONS)  # so the delta matters


def test_what_could_be_shown_is_the_bound_on_a_perfect_attack() -> None:
    """All of h releases with the person recognised, none without: ln(l / (1 − l)) with the limit l of Clopper and Pearson."""
    for releases, persons in ((20, 1), (20, 50), (101, 7), (1000, 3)):
        size, error = releases - releases // 2, ERRORS / (2 if persons > 1 else 1)
        least = binomtest(size, size, alternative="greater").proportion_ci(1 - error / 2, "exact").low
        expected = max(0.0, math.log(least / (1 - least)))
        assert attainable_epsilon(releases, persons, 0.0, LEVEL) == pytest.approx(expected, abs=1e-9)
        perfect = np.zeros((persons, 1, 2, releases))
        perfect[:, :, 0] = 1 + np.arange(releases)
        perfect[:, :, 1] = -np.arange(releases)
        assert attacked(perfect[:1]).epsilon.at_least == pytest.approx(attainable_epsilon(releases, 1, 0.0, LEVEL), abs=1e-9)


def test_twenty_releases_cannot_show_an_epsilon_of_one() -> None:
    assert attainable_epsilon(20, 1, 0.0, LEVEL) == pytest.approx(0.807, abs=0.001)
    for epsilon in (0.1, 1.0, 3.0):
        needed = releases_to_refute(epsilon, 10, 0.0, LEVEL)
        assert needed is not None
        reached = [attainable_epsilon(needed - less, 10, 0.0, LEVEL) for less in (0, 2)]
        assert reached[0] > epsilon >= reached[1]
    assert releases_to_refute(50.0, 10, 0.0, LEVEL) is None


def test_the_smallest_leak_is_the_least_that_refutes() -> None:
    """Every number of hits of a person who is never taken for somebody else, tried one after the other with scipy."""
    error = ERRORS / 2
    most = binomtest(0, 50, alternative="less").proportion_ci(1 - error / 2, "exact").high
    limits = [binomtest(hits, 50, alternative="greater").proportion_ci(1 - error / 2, "exact").low for hits in range(51)]
    enough = [hits for hits, low in enumerate(limits) if low > 0 and math.log(low / most) > 1.0]
    assert smallest_leak(1.0, 100, 10, 0.0, LEVEL) == min(enough) / 50
    assert smallest_leak(3.0, 100, 10, 0.0, LEVEL) is None
