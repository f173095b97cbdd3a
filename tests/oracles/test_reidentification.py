"""Risks of re-identification against plain pandas on labels, direct sums, and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from scipy.special import comb

import dit_dask as dit
from dit_dask.errors import InputError
from dit_dask.measures.reidentification.risks import expected_inverse
from dit_dask.measures.reidentification.uniqueness import (
    SizeHistogram,
    estimate_classes,
    estimate_uniques,
    negative_binomial,
    pitman,
    zayatz,
)

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}


def people(rows: int, seed: int, persons: int | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 40, rows),
            "town": rng.choice(["a", "b", "c"], rows),
            "illness": rng.choice(["flu", "cold", "none"], rows),
        }
    )
    return frame if persons is None else frame.assign(who=rng.integers(0, persons, rows))


def measured(frame: pd.DataFrame, schema: dict[str, object], **keys: object) -> tuple[dit.Result, dict[str, object]]:
    measure = {"name": "reidentification", "records": True, **keys}
    tests = [{"sanitizer": {"name": "mondrian", "k": 4}}]
    result = dit.audit(frame, schema=schema, tests=tests, measures=[measure], controls=False)
    (entry,) = [entry for entry in result.measures if entry["sanitizer"] is not None]
    return result, entry


def test_the_original_has_the_risks_of_a_groupby() -> None:
    frame = people(60, 1)
    result, _ = measured(frame, SCHEMA)
    (entry,) = [entry for entry in result.measures if entry["sanitizer"] is None]
    size = frame.groupby(["age", "town"])["illness"].transform("size")
    assert entry["prosecutor"] == 1 / size.min()
    assert entry["marketer"] == pytest.approx((1 / size).mean(), abs=1e-15)
    assert entry["sample_uniques"] == (size == 1).sum()
    for limit, name in {
        0.05: "over_5_percent",
        0.09: "over_9_percent",
        0.2: "over_20_percent",
        0.33: "over_33_percent",
    }.items():
        assert entry[name] == (1 / size > limit).mean()
    np.testing.assert_array_equal(result.measured(entry["id"])["prosecutor"], 1 / size)


def test_the_marketer_links_as_many_as_there_are_classes() -> None:
    frame = people(80, 2)
    result, entry = measured(frame, SCHEMA)
    (summary,) = result.tests
    assert entry["marketer"] == pytest.approx(summary["classes"] / len(frame), abs=1e-15)
    assert entry["prosecutor"] == 1 / summary["smallest_class"]
    assert entry["over_20_percent"] < 1


def test_persons_with_several_rows_count_once_in_a_class() -> None:
    frame = people(90, 3, persons=30)
    result, _ = measured(frame, {**SCHEMA, "subject": "who"})
    (entry,) = [entry for entry in result.measures if entry["sanitizer"] is None]
    size = frame.groupby(["age", "town"])["who"].transform("nunique")
    by_person = (1 / size).groupby(frame["who"]).max()
    assert entry["persons"] == frame["who"].nunique()
    assert entry["prosecutor"] == by_person.max()
    assert entry["marketer"] == pytest.approx(by_person.mean(), abs=1e-15)
    assert entry["over_33_percent"] == (by_person > 0.33).mean()


def test_a_population_counts_whom_each_class_covers(tmp_path: object) -> None:
    frame = people(60, 4)
    rng = np.random.default_rng(5)
    population = pd.DataFrame(
        {"age": rng.integers(15, 45, 900) + 0.5 * rng.integers(0, 2, 900), "town": rng.choice([*"abcd"], 900)}
    )
    path = f"{tmp_path}/population.csv"
    population.to_csv(path, index=False)
    result, _ = measured(frame, SCHEMA, population=path)
    (entry,) = [entry for entry in result.measures if entry["sanitizer"] is None]
    covered = [
        int(((population["age"] == age) & (population["town"] == town)).sum())
        for age, town in zip(frame["age"], frame["town"], strict=True)
    ]
    size = frame.groupby(["age", "town"])["illness"].transform("size")
    assert entry["k_map"] == min(covered)
    assert entry["journalist"] == pytest.approx((1 / np.maximum(covered, size)).max(), abs=1e-15)
    assert entry["journalist_mean"] == pytest.approx((1 / np.maximum(covered, size)).mean(), abs=1e-15)


def test_released_intervals_cover_the_values_between_their_ends(tmp_path: object) -> None:
    frame = pd.DataFrame({"age": [20, 24, 30, 34], "town": ["a"] * 4, "illness": ["x", "y", "x", "y"]})
    population = pd.DataFrame({"age": [20, 22, 24, 27, 30, 31, 34, 50], "town": ["a"] * 7 + ["b"]})
    path = f"{tmp_path}/population.csv"
    population.to_csv(path, index=False)
    tests = [{"sanitizer": {"name": "mondrian", "k": 2}}]  # [20, 24] and [30, 34], town a
    measure = {"name": "reidentification", "population": path}
    result = dit.audit(frame, schema=SCHEMA, tests=tests, measures=[measure], controls=False)
    entry = result.measures[1]
    assert (entry["classes"], entry["k_map"], entry["journalist"]) == (2, 3, 1 / 3)


def test_the_expected_inverse_is_the_sum_over_sizes_of_the_population() -> None:
    for fraction in (0.02, 0.3, 0.9):
        for size in (1, 2, 7):
            population = np.arange(size, 20_000)
            log = np.array([math.lgamma(n) - math.lgamma(size) - math.lgamma(n - size + 1) for n in population])
            chance = np.exp(log + size * math.log(fraction) + (population - size) * math.log1p(-fraction))
            expected = float((chance / population).sum())
            assert expected_inverse(np.array([size]), fraction)[0] == pytest.approx(expected, rel=1e-9)
    # the closed form that sdcMicro documents for a sample unique
    assert expected_inverse(np.array([1]), 0.1)[0] == pytest.approx(0.1 / 0.9 * math.log(10), rel=1e-12)
    assert expected_inverse(np.array([3]), 1.0)[0] == 1 / 3


def test_the_expected_inverse_of_large_classes_is_a_number() -> None:
    # E[1 / F] is the integral of E[exp(-t F)] over t > 0; with u = (π exp(-t) / (1 − (1 − π) exp(-t)))^f it is the one below
    size = np.array([39, 40, 41, 100, 103, 150, 5_000])
    for fraction in (0.0075, 0.05, 0.5):
        expected = [
            integrate.quad(lambda u, f=f, π=fraction: π / (π + (1 - π) * u ** (1 / f)) / f, 0, 1, epsabs=0, epsrel=1e-12)[0]
            for f in size
        ]
        assert expected_inverse(size, fraction) == pytest.approx(expected, rel=1e-10)  # as exact as the integral


def test_row_order_changes_no_bit_of_mean_risks() -> None:
    frame = people(300, 4, persons=150)
    found = []
    for rows in (frame, frame.sample(frac=1, random_state=1)):
        measures = ["reidentification", {"name": "reidentification", "population_size": 20_000}]
        tests = [{"sanitizer": {"name": "mondrian", "k": 3}}]
        schema = SCHEMA | {"subject": "who"}
        found.append(dit.audit(rows, schema=schema, tests=tests, measures=measures, controls=False).measures)
    assert found[0] == found[1]


def test_a_limit_that_no_risk_exceeds_is_no_pass() -> None:
    frame = people(200, 5)
    arguments = {"schema": SCHEMA, "measures": ["reidentification"], "controls": False}
    tests = [{"sanitizer": {"name": "mondrian", "k": 5}}]
    gates = ["reidentification.prosecutor <= 1", "reidentification.smallest_class >= 1", "reidentification <= 0.2"]
    found = dit.audit(frame, tests=tests, gates=gates, **arguments).verdict.verdicts
    assert {one.gate: one.status for one in found if one.gate in gates} == dict(
        zip(gates, ("inconclusive", "inconclusive", "passed"), strict=True)
    )


def test_zayatz_by_hand() -> None:
    # three uniques and one pair of a population of ten: hypergeometric by binomial coefficients
    histogram = SizeHistogram.of(np.array([1, 1, 1, 2]), 10)
    once = {size: comb(size, 1) * comb(10 - size, 4) / comb(10, 5) for size in (1, 2)}
    probability = 0.75 * once[1] / (0.75 * once[1] + 0.25 * once[2])
    assert zayatz(histogram) == pytest.approx(3 * probability / 0.5, rel=1e-12)


def test_the_negative_binomial_model_solves_its_equations_by_summation() -> None:
    rng = np.random.default_rng(6)
    population = 1 + rng.negative_binomial(0.7, 0.2, 4000)
    drawn = rng.binomial(population, 0.4)
    histogram = SizeHistogram.of(drawn[drawn > 0], int(population.sum()))
    uniques, classes = negative_binomial(histogram), estimate_classes(histogram)
    assert uniques == pytest.approx(int((population == 1).sum()), rel=0.3)  # the classes of the population are estimated, too
    # recover both parameters from the estimate alone: uniques = classes · β^α, and α from the expected uniques of the sample
    best = min(
        (
            abs(_expected_once(classes, shape, (uniques / classes) ** (1 / shape), histogram.fraction) - histogram.of_size(1)),
            shape,
        )
        for shape in np.linspace(0.05, 3, 4000)
    )[1]
    success = (uniques / classes) ** (1 / best)
    twice = _expected(classes, best, success, histogram.fraction, 2)
    assert twice == pytest.approx(histogram.of_size(2), rel=0.02)  # the grid of shapes is coarse


def _expected_once(classes: float, shape: float, success: float, fraction: float) -> float:
    return _expected(classes, shape, success, fraction, 1)


def _expected(classes: float, shape: float, success: float, fraction: float, size: int) -> float:
    """Sum over the sizes of the population: the chance of each, and that so many of it are drawn."""
    more = np.arange(400)
    log = np.array([math.lgamma(shape + n) - math.lgamma(shape) - math.lgamma(n + 1) for n in more])
    chance = np.exp(log + shape * math.log(success) + more * math.log1p(-success))
    drawn = comb(1 + more, size) * fraction**size * (1 - fraction) ** np.maximum(1 + more - size, 0)
    return float(classes * (chance * drawn).sum())


def test_pitman_has_the_largest_likelihood_written_as_products() -> None:
    rng = np.random.default_rng(7)
    sizes: list[int] = []
    for drawn in range(600):  # Pitman's process with θ = 20, α = 0.4
        if rng.random() < (20 + 0.4 * len(sizes)) / (20 + drawn):
            sizes.append(1)
        else:
            weights = np.array(sizes) - 0.4
            sizes[rng.choice(len(sizes), p=weights / weights.sum())] += 1

    def log_likelihood(theta: float, alpha: float) -> float:
        total = sum(math.log(theta + number * alpha) for number in range(1, len(sizes)))
        total -= sum(math.log(theta + number) for number in range(1, sum(sizes)))
        return total + sum(math.log(number - alpha) for size in sizes for number in range(1, size))

    grid = [(theta, alpha) for theta in np.geomspace(2, 200, 40) for alpha in np.linspace(0.02, 0.9, 45)]
    theta, alpha = max(grid, key=lambda pair: log_likelihood(*pair))
    found = pitman(SizeHistogram.of(np.array(sizes), 10_000))
    by_grid = math.gamma(theta + 1) / math.gamma(theta + alpha) * 10_000**alpha
    assert found == pytest.approx(by_grid, rel=0.15)  # a grid of 40 by 45


@pytest.mark.parametrize(("fraction", "chosen"), [(0.05, "pitman"), (0.5, "zayatz")])
def test_the_decision_rule_follows_the_sampling_fraction(fraction: float, chosen: str) -> None:
    rng = np.random.default_rng(8)
    population = 1 + rng.geometric(0.2, 3000)
    drawn = rng.binomial(population, fraction)
    histogram = SizeHistogram.of(drawn[drawn > 0], int(population.sum()))
    found = estimate_uniques(histogram)
    smaller = found.negative_binomial is not None and found.negative_binomial <= (found.zayatz or 0)
    assert found.chosen == (chosen if fraction < 0.1 or not smaller else "negative_binomial")


def test_without_uniques_or_with_everybody_there_is_nothing_to_estimate() -> None:
    assert estimate_uniques(SizeHistogram.of(np.array([2, 3]), 50)).estimate == 0
    assert estimate_uniques(SizeHistogram.of(np.array([1, 1, 3]), 5)).estimate == 2


def test_wrong_keys_are_one_clear_line(tmp_path: object) -> None:
    frame, path = people(60, 9), f"{tmp_path}/population.csv"
    with pytest.raises(InputError, match="population_size must be at least the 60 persons"):
        measured(frame, SCHEMA, population_size=5)
    frame[["town"]].to_csv(path, index=False)
    with pytest.raises(InputError, match="exclude each other"):
        measured(frame, SCHEMA, population=path, population_size=90)
    with pytest.raises(InputError, match="population: no column 'age'"):
        measured(frame, SCHEMA, population=path)
    frame.assign(age="old")[["age", "town"]].to_csv(path, index=False)
    with pytest.raises(InputError, match="'age' must be numbers"):
        measured(frame, SCHEMA, population=path)


def test_the_individual_risks_of_sdcmicros_own_tests() -> None:
    """The table, weights and expected risks are those of the tests of sdcMicro's indivRisk, method exact."""
    table = pd.DataFrame(
        {
            "A": [2, 3, 2, 2, 3, 3, 1, 2],
            "B": [3, 3, 3, 3, 3, 3, 4, 3],
            "C": [1, 3, 1, 2, 1, 1, 1, 1],
            "weight": [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0],
            "illness": ["x", "y"] * 4,
        }
    )
    classes = table.groupby(["A", "B", "C"])["weight"]
    size, population = classes.transform("size").to_numpy(), classes.transform("sum").to_numpy()
    found = [expected_inverse(np.array([f]), f / F)[0] for f, F in zip(size, population, strict=True)]
    published = [0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297]
    np.testing.assert_allclose(found, published, atol=5e-9)  # printed with eight decimals
    schema = {"quasi_identifiers": {name: {"kind": "categorical"} for name in "ABC"}, "sensitive": "illness"}
    result = dit.audit(table, schema=schema, measures=[{"name": "reidentification", "records": True}], controls=False)
    (entry,) = result.measures
    without_weights = [0.33333, 1, 0.33333, 1, 0.5, 0.5, 1, 0.33333]
    np.testing.assert_allclose(result.measured(entry["id"])["prosecutor"], without_weights, atol=5e-6)  # five decimals


def test_arxs_attacker_models_by_hand(tmp_path: object) -> None:
    """Classes of 3, 2 and 1 persons, 6, 2 and 4 in the population: as ARX defines highest, average and records at risk."""
    town = ["a"] * 3 + ["b"] * 2 + ["c"]
    frame = pd.DataFrame({"age": [30] * 6, "town": town, "illness": ["x", "y"] * 3})
    path = f"{tmp_path}/population.csv"
    pd.DataFrame({"age": [30] * 12, "town": ["a"] * 6 + ["b"] * 2 + ["c"] * 4}).to_csv(path, index=False)
    result, _ = measured(frame, SCHEMA, population=path)
    (entry,) = [entry for entry in result.measures if entry["sanitizer"] is None]
    assert entry["prosecutor"] == 1  # highest: the smallest class has one person
    assert entry["marketer"] == pytest.approx(3 / 6)  # average prosecutor risk: classes / records
    assert entry["over_33_percent"] == 1  # 1/3 is above 0.33, and so are 1/2 and 1
    assert entry["journalist"] == 1 / 2  # highest: the smallest class of the population has two
    assert entry["journalist_over_20_percent"] == pytest.approx(3 / 6)  # 1/2, 1/2 and 1/4; not 1/6
    assert entry["journalist_mean"] == pytest.approx((3 / 6 + 2 / 2 + 1 / 4) / 6)  # ARX's marketer: Σ f/F over records
    assert entry["k_map"] == 2
