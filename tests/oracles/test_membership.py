"""Attacks on membership of releases against plain Python, planted leaks and brute force."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from dit_dask import seeds
from dit_dask.engines import NoisyCounts, ReleaseProcedure
from dit_dask.inputs.counted import CountedRows
from dit_dask.kernels.mechanisms import Laplace
from dit_dask.measures.base import MeasureInput, MeasureResult
from dit_dask.measures.membership.claim import Claim
from dit_dask.measures.membership.measure import MembershipMeasure
from dit_dask.measures.membership.releases import fingerprint, nearest_distance
from dit_dask.sanitizers.synthesizer import Marginals, release_records
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Rows, Table
from tests.audits import loaded, points

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}
LEVEL = 0.95


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(20, 60, rows), "town": rng.choice(list("abc"), rows)}
    return pd.DataFrame(columns | {"illness": rng.choice(["flu", "cold", "gout"], rows)})


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
    return MeasureInput(CountedRows.of(pd.DataFrame()), rows, {}, None, 7, "membership", procedure=procedure)


def found(frame: pd.DataFrame, test: dict[str, Any], sanitizer: Any = None, **keys: Any) -> MeasureResult:
    """Attack the sanitizer of a test, or another one in its place."""
    (point,) = points(loaded(frame, SCHEMA), SCHEMA, [test], seed=3)
    procedure = point.procedure
    if sanitizer is not None:
        assert isinstance(procedure, ReleaseProcedure)
        procedure = replace(procedure, sanitizer=sanitizer)
    return measure(**keys).find(inputs_of(point.rows, procedure))


RANDOM = {"sanitizer": "resample", "repeats": 2, "adversary": "conditional-frequency"}


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
