"""Chance levels against shuffling, and the edge cases of rates: names, types, values that cover nothing."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import homogeneity_score

import dit_dask as dit
from dit_dask.inputs.counted import CountedRows
from dit_dask.measures.base import MeasureInput
from dit_dask.measures.discrimination.attacks import guess_identity, homogeneity
from dit_dask.measures.discrimination.chance import chance_by_shuffling, chance_of_table, correct
from dit_dask.measures.discrimination.contingency import ContingencyTable
from dit_dask.measures.discrimination.measure import OfRelease, Sampling
from dit_dask.values.release import Ranges, Release, Sets
from tests.oracles.test_discrimination import FITTING, HIGH, LOW, deck_release

RNG = np.random.default_rng(5)
TABLE = pd.DataFrame({"age": RNG.integers(20, 80, 500), "town": RNG.integers(0, 12, 500), "job": RNG.integers(0, 8, 500)})
SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "job"}


def test_the_formula_is_the_mean_over_shuffles() -> None:
    keys, target = TABLE["town"].to_numpy(), TABLE["job"].to_numpy()
    table = ContingencyTable.of(keys, target)
    shuffled = [homogeneity_score(RNG.permutation(target), keys) for _ in range(300)]
    assert chance_of_table(table) == pytest.approx(np.mean(shuffled), abs=4 * np.std(shuffled) / 300**0.5)
    drawn = chance_by_shuffling(table, lambda one: one.profile().rate.value, np.random.default_rng(1))
    assert drawn == pytest.approx(np.mean(shuffled), abs=4 * np.std(shuffled) / 20**0.5)
    assert correct(0.3, 0.3) == 0
    assert correct(1.0, 0.4) == pytest.approx(1)


def test_every_rate_of_another_target_has_its_chance_level() -> None:
    measures: list[Any] = [
        {"name": "discrimination", "target": "job", "keys": ["age", "town"]},
        {"name": "discrimination", "target": "job", "keys": ["age", "town"], "estimator": "miller-madow"},
        {"name": "discrimination", "keys": ["age", "town"]},
        {"name": "discrimination", "attack": ["homogeneity", "background-knowledge", "skewness", "identity"]},
    ]
    found = dit.audit(TABLE.astype({"town": str, "job": str}), schema=SCHEMA, measures=measures).measures
    for entry in found:
        attack, has_target = entry["parameters"].get("attack"), "target" in entry["parameters"]
        assert ("chance" in entry) == (has_target or attack not in (None, "identity")), entry["id"]
        if "chance" in entry:  # the sensitive values are random: nothing is left above chance
            assert entry["value"] == pytest.approx(entry["chance"], abs=0.03)
            expected = 1 if attack == "background-knowledge" else 0
            assert entry["corrected"] == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("names", [["target", "b"], ["key", "key"], ["target", "target"]])
def test_names_of_keys_do_not_matter(names: list[str]) -> None:
    expected = dit.discrimination_rate(TABLE["job"], TABLE[["age", "town"]])
    renamed = TABLE[["age", "town"]].set_axis(names, axis=1)
    assert dit.discrimination_rate(TABLE["job"], renamed) == expected
    assert len(dit.discrimination_by_value(TABLE["job"], renamed)) == len(TABLE[["age", "town"]].drop_duplicates())


def test_a_number_and_its_text_are_different_values() -> None:
    assert dit.discrimination_rate([0, 1, 0, 1], [1, "1", 1, "1"]) == 1
    assert dit.discrimination_rate([1, "1", 1, "1"], [0, 1, 0, 1]) == 1
    assert dit.discrimination_rate([0, 1, 0, 1], [[1, "a"], ["1", "a"], [1, "a"], ["1", "a"]]) == 1


MIXED: dict[str, list[Any]] = {
    "numbers and texts": [1, "1", 2, "2", 1.0, "1"],
    "decimals": [Decimal("1"), Decimal("1.0"), Decimal("1.10"), Decimal("1.1"), 1, 1.0],
    "decimals and floats": [Decimal("0.5"), 0.5, Decimal("0.1"), 0.1, 1, Decimal(1)],
    "zones": [pd.Timestamp("2020-01-01", tz="UTC"), 2, 3, pd.Timestamp("2020-01-01T01:00", tz="Europe/Madrid"), 2, None],
    "times": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01").to_pydatetime(), 3, "3", None, None],
}


@pytest.mark.parametrize("name", MIXED)
def test_dask_and_pandas_agree_on_values_of_any_type(name: str) -> None:
    cells = pd.Series(MIXED[name] * 5, dtype=object)
    other = pd.Series(np.random.default_rng(2).integers(0, 3, len(cells)))
    with dask.config.set({"dataframe.convert-string": False}):  # or Dask itself turns all values into texts
        for target, keys in ((other, cells), (cells, other)):
            blocks = [dd.from_pandas(series, npartitions=4, sort=False) for series in (target, keys)]
            expected = dit.discrimination_rate(target, keys, missing="category")
            assert dit.discrimination_rate(*blocks, missing="category") == expected


def test_published_values_that_cover_no_value_tell_nothing() -> None:
    release, _ = deck_release(FITTING, as_sets=False)
    empty = np.zeros((len(LOW), len(release.schema.quasi_identifiers[0].levels)), bool)
    sets = Sets(np.arange(len(LOW), dtype=np.int32)[:, None], (empty,))
    nothing = Release(release.schema, sets, release.counts)
    guessed = guess_identity(nothing, [0], [None])
    assert guessed.profile.rate.value == pytest.approx(0, abs=1e-12)
    assert guessed.published.label(0) == "(no value of the table)"
    known = Release(release.schema, Ranges(LOW, HIGH), release.counts)
    assert homogeneity(nothing, [0], None, "plug-in").profile.rate == homogeneity(known, [0], None, "plug-in").profile.rate


@pytest.mark.parametrize("estimator", ["grassberger", "miller-madow"])
def test_estimators_refuse_what_they_cannot_estimate(estimator: str) -> None:
    with pytest.raises(dit.InputError, match="needs values that repeat, and every row has its own value"):
        dit.discrimination_rate(np.arange(500), TABLE["town"], estimator=estimator)
    measure = {"name": "discrimination", "keys": ["age"], "estimator": estimator}
    with pytest.raises(dit.InputError, match="over the person every row is a value of its own"):
        dit.audit(TABLE.astype({"town": str}), schema=SCHEMA, measures=[measure])


def test_a_rate_outside_its_interval_says_why() -> None:
    measure = {"name": "discrimination", "target": "job", "keys": ["age", "town"], "interval": 0.9, "replicates": 50}
    (entry,) = dit.audit(TABLE.astype({"town": str}), schema=SCHEMA, measures=[measure]).measures
    low, high = entry["interval"]
    assert entry["value"] > high > low
    assert entry["interval_reason"].startswith("the rate is above the interval: few rows make it too high")


def test_attacks_on_records_of_nobody_are_marked() -> None:
    tests = [{"sanitizer": name, "repeats": 2, "records": {"sample": 2}} for name in ("marginals", "resample")]
    tests.append({"sanitizer": {"name": "mondrian", "k": 5}, "records": {"sample": 2}})
    attacks = [{"name": "discrimination", "attack": "homogeneity"}, "reidentification"]
    gates = ["reidentification <= 0.9", "reidentification.prosecutor <= 0", "discrimination <= 1"]
    table = TABLE.astype({"town": str, "job": str})
    found = dit.audit(table, schema=SCHEMA, tests=tests, measures=attacks, gates=gates, seed=1)
    for name in ("discrimination", "reidentification"):
        entries = [entry for entry in found.measures if entry["measure"] == name]
        notes = {(entry["sanitizer"] or {"name": "raw"})["name"]: "note" in entry for entry in entries}
        assert notes == {"raw": False, "mondrian": False, "marginals": True, "resample": True}
    judged = [one for one in found.verdict.verdicts if one.gate in gates]
    assert [one.status for one in judged if "marginals" in one.test] == ["inconclusive"] * 3  # neither good nor bad
    assert {one.status for one in judged if "mondrian" in one.test} == {"passed", "failed"}


def test_a_synthetic_table_is_marked_even_if_it_has_no_value_too_often() -> None:
    """Fewer rows than the table of every sensitive value: the counts alone could be those of persons."""
    for is_random in (False, True):
        release, table = deck_release(FITTING, as_sets=False)
        rows = SimpleNamespace(table=table, index=np.arange(table.distinct))
        few = Release(release.schema, release.published, np.minimum(release.counts, 1), release.tree)
        inputs = MeasureInput(CountedRows.of(pd.DataFrame()), cast("Any", rows), {}, few, 0, "m", is_random=is_random)
        attack = OfRelease("homogeneity", (0,), "white-box", None, Sampling("plug-in", None, 50), show_values=True)
        assert ("note" in attack.find(inputs).more) is is_random


def test_an_interval_of_what_remains_unknown_says_why_on_the_right_side() -> None:
    attack = {"name": "discrimination", "attack": "background-knowledge", "interval": 0.9, "replicates": 50}
    found = dit.audit(TABLE.astype({"town": str, "job": str}), schema=SCHEMA, measures=[attack]).measures
    (entry,) = [entry for entry in found if entry["sanitizer"] is None]
    low, high = entry["interval"]
    assert entry["value"] < low < high
    assert entry["interval_reason"].startswith("what remains unknown is below the interval: few rows make it too low")
