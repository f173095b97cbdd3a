"""Attacks on membership against scikit-learn, scipy, plain Python, closed forms and brute force; error rates simulated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import roc_auc_score

from dit_dask import seeds
from dit_dask.engines import NoisyCounts, ReleaseProcedure
from dit_dask.kernels.mechanisms import Laplace
from dit_dask.measures.base import MeasureInput, MeasureResult
from dit_dask.measures.membership.attack import AttackResult, attack
from dit_dask.measures.membership.claim import Claim
from dit_dask.measures.membership.epsilon import attainable_epsilon, releases_to_refute, smallest_leak
from dit_dask.measures.membership.measure import MembershipMeasure
from dit_dask.measures.membership.rates import auc, auc_rate, likelihood_ratios, tpr_at
from dit_dask.measures.membership.releases import fingerprint, nearest_distance
from dit_dask.sanitizers.synthesizer import Marginals, release_records
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Rows, Table
from tests.audits import loaded, points

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}
LEVEL, ERRORS, REPETITIONS = 0.95, 0.05, 400


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(20, 60, rows), "town": rng.choice(list("abc"), rows)}
    return pd.DataFrame(columns | {"illness": rng.choice(["flu", "cold", "gout"], rows)})


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


def measure(**keys: Any) -> MembershipMeasure:
    plain = {
        "releases": 100,
        "persons": 20,
        "sample": 20,
        "seed": 1,
        "statistic": "all",
        "claim": Claim(None),
        "confidence": LEVEL,
    }
    return MembershipMeasure(**plain | keys)


def inputs_of(rows: Rows, procedure: Any) -> MeasureInput:
    return MeasureInput(pd.DataFrame(), rows, {}, None, 7, "membership", procedure)


def found(frame: pd.DataFrame, test: dict[str, Any], sanitizer: Any = None, **keys: Any) -> MeasureResult:
    """Attack the sanitizer of a test, or another one in its place."""
    (point,) = points(loaded(frame, SCHEMA), SCHEMA, [test], seed=3)
    procedure = point.procedure
    if sanitizer is not None:
        assert isinstance(procedure, ReleaseProcedure)
        procedure = replace(procedure, sanitizer=sanitizer)
    return measure(**keys).find(inputs_of(point.rows, procedure))


RANDOM = {"sanitizer": "resample", "repeats": 2, "adversary": "conditional-frequency"}


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


@dataclass(frozen=True)
class Leaks:
    """Publishes records drawn from the domain without its largest values, and with some probability a person of the table."""

    person: tuple[int, int, int]
    chance: float
    claim: None = None
    randomised: ClassVar[bool] = True

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        levels = [len(attribute.levels) for attribute in table.schema.quasi_identifiers]
        codes = np.column_stack([rng.integers(0, size - 1, 60) for size in levels]).astype(np.int32)
        secret = rng.integers(0, len(table.schema.sensitive.levels), 60).astype(np.int32)
        is_there = (np.column_stack([table.codes, table.secret]) == self.person).all(axis=1).any()
        if is_there and rng.random() < self.chance:
            codes[0], secret[0] = self.person[:2], self.person[2]
        return release_records(table, codes, secret)


def with_one_old_person(rows: int) -> pd.DataFrame:
    """A frame whose first person has the largest value of every attribute, which nobody else has."""
    frame = people(rows, 1)
    frame.loc[0, ["age", "town", "illness"]] = [99, "z", "plague"]
    return frame


@pytest.mark.parametrize("chance", [0.3, 0.0])
def test_a_planted_leak_of_one_person_is_found(chance: float) -> None:
    frame = with_one_old_person(24)
    rows = loaded(frame, SCHEMA)
    record = rows.index[0]
    person = (*rows.table.codes[record].tolist(), int(rows.table.secret[record]))
    keys = {"statistic": "distance", "persons": 24, "sample": None, "releases": 200, "claim": Claim(0.5)}
    result = found(frame, RANDOM, Leaks(person, chance), **keys)
    more, column = result.more, result.columns["auc"]
    assert more["passed"] is (chance == 0)
    assert (more["epsilon_lower"] > 0.5) is (chance > 0)
    if chance:
        assert more["epsilon_shown_by"] == "person"
        assert int(np.argmax(column)) == 0
        assert column[0] == pytest.approx(0.5 + chance / 2, abs=0.1)  # recognised when copied, else guessed


@pytest.mark.parametrize(("factor", "passed"), [(1.0, True), (2.0, False)])
def test_laplace_noise_of_half_the_claimed_scale_is_found(factor: float, passed: bool) -> None:
    """The mechanism loses twice what it claims; an honest one does not exceed its epsilon."""
    frame = people(80, 2)
    (point,) = points(loaded(frame, SCHEMA), SCHEMA, [{"sanitizer": {"name": "laplace", "epsilon": 1.0}}])
    procedure = point.procedure
    assert isinstance(procedure, NoisyCounts)
    procedure = replace(procedure, sampling=replace(procedure.sampling, mechanism=Laplace(factor)))
    result = measure(releases=400).find(inputs_of(point.rows, procedure))
    assert result.more["passed"] is passed
    assert result.more["epsilon_claimed"] == 1.0
    assert (result.more["epsilon_lower"] > 1.0) is not passed
    assert result.more["epsilon_lower"] <= factor
    # a statistic by itself: Laplace(x − 1) against Laplace(x), P(X > Y) in closed form
    expected = 1 - (0.5 + factor / 4) * math.exp(-factor)
    single = {one["statistic"]: one["auc"] for one in result.more["statistics"]}
    assert single["noisy-count"] == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(400 * 20))


@dataclass(frozen=True)
class Overdrawn(Marginals):
    """Adds the noise of thirty times the epsilon that it claims."""

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        return Marginals(self.structure, 30 * (self.epsilon or 0.0)).release(table, rng)


@pytest.mark.parametrize("sanitizer", [Marginals("star", 1.0), Overdrawn("star", 1.0)])
def test_an_honest_synthesizer_stays_below_its_epsilon(sanitizer: Marginals) -> None:
    test = RANDOM | {"sanitizer": {"name": "marginals", "epsilon": 1.0}}
    result = found(with_one_old_person(40), test, sanitizer, releases=120, sample=None)
    assert result.more["epsilon_claimed"] == 1.0
    assert result.more["passed"] is (not isinstance(sanitizer, Overdrawn)), result.more["reason"]


def test_too_few_releases_are_no_pass_and_say_how_many_are_needed() -> None:
    test = {"sanitizer": {"name": "marginals", "epsilon": 1.0}, "repeats": 2, "adversary": "conditional-frequency"}
    result = found(people(30, 3), test, releases=20)
    assert result.more["passed"] is None
    assert result.more["attainable"]["epsilon_lower"] == pytest.approx(0.598, abs=0.001)
    assert "20 releases a side cannot show more than 0.598 of one person" in result.more["reason"]
    assert result.more["reason"].endswith("set releases to 27 or more")


def released(release: Release) -> Counter[tuple[object, ...]]:
    """The published rows, counted, in plain Python."""
    assert isinstance(release.published, Ranges)
    rows: Counter[tuple[object, ...]] = Counter()
    for low, high, counts in zip(release.published.low.tolist(), release.published.high.tolist(), release.counts, strict=True):
        for secret, count in enumerate(counts.tolist()):
            rows[(*low, *high, secret)] += count
    return +rows


@pytest.mark.parametrize(
    "sanitizer",
    [
        {"name": "mondrian", "k": 4},
        {"name": "full-domain", "k": 3, "bands": {"age": [5, 10]}},
        "suppressed",
        {"name": "mondrian", "l": 2},
    ],
)
def test_the_share_of_changed_releases_is_that_of_brute_force(sanitizer: Any) -> None:
    frame = people(40, 4)
    (point,) = points(loaded(frame, SCHEMA), SCHEMA, [{"sanitizer": sanitizer}])
    procedure, table = point.procedure, point.rows.table
    assert isinstance(procedure, ReleaseProcedure)
    whole = released(procedure.sanitizer.release(table, seeds.stream(0)))
    changed = [
        released(procedure.sanitizer.release(table.without(int(record)), seeds.stream(0))) != whole
        for record in point.rows.index
    ]
    result = measure(sample=None, persons=40).find(inputs_of(point.rows, procedure))
    assert result.columns["changed"].tolist() == [float(one) for one in changed]
    assert result.more["changed"] == sum(changed) / 40
    assert result.more["epsilon_lower"] == "inf"


@dataclass(frozen=True)
class Presence:
    """Publishes which ages occur, not how often: without one of several persons of an age it is the same."""

    claim: None = None

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        codes = np.unique(table.codes[:, :1])
        low = np.zeros((len(codes), table.codes.shape[1]), np.int32)
        high = np.tile([len(one.levels) - 1 for one in table.schema.quasi_identifiers], (len(codes), 1)).astype(np.int32)
        low[:, 0] = high[:, 0] = codes
        counts = np.zeros((len(codes), len(table.schema.sensitive.levels)), np.int64)
        counts[:, 0] = 1
        return Release(table.schema, Ranges(low, high), counts)


@pytest.mark.parametrize("subject", [False, True])
def test_only_those_who_change_the_release_are_given_away(subject: bool) -> None:
    """An age that only one person has goes with them; with a subject all of their rows leave together."""
    frame = people(60, 6)
    schema: dict[str, Any] = SCHEMA
    who = np.arange(60)
    if subject:
        who = np.random.default_rng(1).integers(0, 25, 60)
        frame, schema = frame.assign(who=who), SCHEMA | {"subject": "who"}
    (point,) = points(loaded(frame, schema), schema, [{"sanitizer": "suppressed"}])
    assert isinstance(point.procedure, ReleaseProcedure)
    procedure = replace(point.procedure, sanitizer=Presence())
    ages = {person: set(frame["age"][who == person]) for person in np.unique(who)}
    changed = {person: not own <= set(frame["age"][who != person]) for person, own in ages.items()}
    result = measure(sample=None).find(inputs_of(point.rows, procedure))
    assert result.columns["changed"].tolist() == [float(changed[person]) for person in who]
    share = sum(changed.values()) / len(changed)
    assert 0 < share < 1
    assert result.more["changed"] == share
    # all pairs of a release with somebody and one without: told apart unless neither person changes anything
    assert result.value == pytest.approx(1 - (1 - share) ** 2 / 2)
    assert result.records == len(changed)


def test_which_ages_occur_as_in_the_documentation() -> None:
    frame = pd.DataFrame({"age": [20, 20, 30, 40], "town": list("abab"), "illness": ["flu", "cold", "flu", "cold"]})
    result = found(frame, {"sanitizer": "suppressed"}, Presence())
    assert result.columns["changed"].tolist() == [0, 0, 1, 1]
    assert (result.more["changed"], result.value) == (0.5, 0.875)


def test_a_release_that_nobody_changes_is_no_pass() -> None:
    @dataclass(frozen=True)
    class Constant(Presence):
        def release(self, table: Table, _rng: np.random.Generator) -> Release:
            return release_records(table, np.zeros((1, table.codes.shape[1]), np.int32), np.zeros(1, np.int32))

    result = found(people(20, 7), {"sanitizer": "suppressed"}, Constant(), claim=Claim(1.0))
    assert (result.value, result.more["changed"], result.more["passed"]) == (0.5, 0.0, None)
    assert result.more["doubts"][0].startswith("no removal changed the release")


def plain_distance(record: tuple[int, str, str], published: Iterable[tuple[int, str, str]], ages: list[int]) -> float:
    """Gower's distance on ranks, of labels."""
    place = {age: rank for rank, age in enumerate(sorted(set(ages)))}
    distances = []
    for age, town, illness in published:
        gap = abs(place[age] - place[record[0]]) / (len(place) - 1)
        distances.append((gap + (town != record[1]) + (illness != record[2])) / 3)
    return min(distances)


def test_the_nearest_record_is_that_of_plain_python() -> None:
    frame = people(50, 8)
    rows = loaded(frame, SCHEMA)
    table = rows.table
    released = release_records(table, table.codes[rows.index[:20]], table.secret[rows.index[:20]])
    records = list(frame.itertuples(index=False, name=None))
    for place in range(50):
        record = rows.index[place]
        expected = plain_distance(records[place], records[:20], frame["age"].tolist())
        assert nearest_distance(released, table.codes[record], int(table.secret[record])) == pytest.approx(expected, abs=1e-15)


def test_a_fingerprint_is_of_rows_not_of_classes() -> None:
    table = loaded(people(30, 9), SCHEMA).table
    release = release_records(table, table.codes, table.secret)
    order = np.random.default_rng(0).permutation(len(release.counts))
    assert fingerprint(release) == fingerprint(release.only(order))
    halves = Release(
        release.schema,
        release.published.only(np.repeat(np.arange(len(order)), 2)),
        np.repeat(release.counts, 2, axis=0) * np.tile([[1], [0]], (len(order), 1)),
    )
    assert fingerprint(release) == fingerprint(halves)
    assert fingerprint(release) != fingerprint(release.without_row(0, int(release.counts[0].argmax())))


def test_neither_blocks_nor_the_order_of_rows_change_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(30, 10)
    frame.loc[1] = frame.loc[0]  # two equal persons have releases of their own
    attack_all = measure(releases=12, persons=30, sample=None)
    results = []
    for shuffled, tasks in ((frame, 256), (frame, 4), (frame.sample(frac=1, random_state=1), 7)):
        monkeypatch.setattr("dit_dask.measures.membership.measure.MOST_TASKS", tasks)
        (point,) = points(loaded(shuffled.reset_index(drop=True), SCHEMA), SCHEMA, [RANDOM], seed=3)
        result = attack_all.find(inputs_of(point.rows, point.procedure))
        results.append((result.more, pd.DataFrame(result.columns, shuffled.index).sort_index()))
    (more, columns), cut, (more_shuffled, columns_shuffled) = results
    assert more == cut[0] == more_shuffled
    pd.testing.assert_frame_equal(columns, cut[1], check_exact=True)
    pd.testing.assert_frame_equal(columns.loc[2:], columns_shuffled.loc[2:], check_exact=True)
    both = [sorted(one.loc[:1, "auc"]) for one in (columns, columns_shuffled)]
    assert both[0] == both[1]
    assert both[0][0] != both[0][1]
