"""Gain and accuracy against brute force on rows, the exact paired interval against scipy's binomial test.

The reference sanitises again for every row and asks scikit-learn; figures are computed from its beliefs row by row.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

import dit_dask as dit
from dit_dask.audit.adversary_summary import accuracy_of, paired_interval
from dit_dask.engines.gain import GainTally, Shift, merge_tallies
from tests.oracles import reference

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "stay": {"kind": "numeric"}}, "sensitive": "illness"}
BELIEVE = {"bernoulli-nb": reference.naive_bayes, "conditional-frequency": reference.conditional_frequency}
ROUNDING = 1e-9  # of beliefs that are computed in another order


def patients(rows: int, seed: int) -> pd.DataFrame:
    """Patients whose illness depends on their age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, rows)
    illness = np.where(rng.random(rows) < 0.6, age // 14, rng.integers(1, 5, rows))
    return pd.DataFrame({"age": age, "stay": rng.integers(1, 9, rows), "illness": [f"i{number}" for number in illness]})


def brute_force(frame: pd.DataFrame, k: int, name: str) -> dict[str, Any]:
    """Mean and largest gain, and the counts that accuracies are made of."""
    records = [tuple(row) for row in frame[["age", "stay"]].to_numpy().tolist()]
    secrets, domain = frame["illness"].tolist(), sorted(frame["illness"].unique())
    attributes = [reference.Numeric([record[place] for record in records]) for place in range(2)]
    gains, right, sure = [], [], {level: [] for level in (0.5, 0.9)}
    for secret, sides in zip(
        secrets, reference.leave_one_out(records, secrets, attributes, BELIEVE[name], k=k, domain=domain), strict=True
    ):
        own = domain.index(secret)
        gains.append(sides[0][own] - sides[1][own])
        guesses = [max(range(len(domain)), key=lambda place, side=side: round(side[place], 9)) for side in sides]
        right.append([guess == own for guess in guesses])
        for level, found in sure.items():
            found.append([round(side[guess], 9) >= level for side, guess in zip(sides, guesses, strict=True)])
    return {"gains": gains, "right": np.array(right), "sure": {level: np.array(found) for level, found in sure.items()}}


@pytest.mark.parametrize(("rows", "k", "seed"), [(70, 2, 1), (90, 7, 2), (60, 20, 3)])
def test_gain_and_accuracy_are_those_of_brute_force(rows: int, k: int, seed: int) -> None:
    frame = patients(rows, seed)
    tests = [{"sanitizer": {"name": "mondrian", "k": k}, "adversary": list(BELIEVE)}]
    entry = dit.audit(frame, schema=SCHEMA, tests=tests).tests[0]
    means, largest = [], []
    for name in BELIEVE:
        expected, found = brute_force(frame, k, name), entry["adversaries"][name]
        means.append(math.fsum(expected["gains"]) / rows)
        largest.append(max(expected["gains"]))
        assert found["mean_gain"] == pytest.approx(means[-1], abs=ROUNDING)
        assert found["largest_gain"] == pytest.approx(largest[-1], abs=ROUNDING)
        check_accuracy(found["accuracy"], expected, rows)
    assert entry["mean_gain"] == pytest.approx(max(means), abs=ROUNDING)
    assert entry["largest_gain"] == pytest.approx(max(largest), abs=ROUNDING)


def check_accuracy(found: dict[str, Any], expected: dict[str, Any], rows: int) -> None:
    right = expected["right"]
    assert [found["with_record"], found["without_record"]] == pytest.approx((right.sum(axis=0) / rows).tolist(), abs=1e-12)
    gained, lost = int((right[:, 0] & ~right[:, 1]).sum()), int((right[:, 1] & ~right[:, 0]).sum())
    assert found["difference"] == pytest.approx((gained - lost) / rows, abs=1e-12)
    assert found["interval"] == pytest.approx(independent_interval(gained, lost, rows), abs=1e-9)
    for level, sure in expected["sure"].items():
        shown = found["confident"][str(level)]
        for side, suffix in enumerate(("", "_without")):
            assert shown[f"coverage{suffix}"] == pytest.approx(sure[:, side].sum() / rows, abs=1e-12)
            held = right[sure[:, side], side]
            assert shown[f"accuracy{suffix}"] == (pytest.approx(held.mean(), abs=1e-12) if len(held) >= 10 else None)


def independent_interval(gained: int, lost: int, rows: int) -> list[float]:
    """Given the rows that are right on one side only, the share that is right with the record is binomial."""
    if not gained + lost:
        return [0.0, 0.0]
    limits = binomtest(gained, gained + lost).proportion_ci(0.95, "exact")
    return [(2 * share - 1) * (gained + lost) / rows for share in (limits.low, limits.high)]


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 40))
def test_the_paired_interval_is_the_exact_binomial_one(gained: int, lost: int, equal: int) -> None:
    rows = gained + lost + equal
    low, high = paired_interval(gained, lost, rows)
    assert [low, high] == pytest.approx(independent_interval(gained, lost, rows), abs=1e-9)
    assert low <= (gained - lost) / rows <= high


@given(st.integers(1, 40), st.integers(0, 40))
def test_the_ends_of_the_interval_have_the_stated_tails(gained: int, lost: int) -> None:
    unequal = gained + lost
    low, high = (end + 1 for end in paired_interval(gained, lost, unequal))
    assert binom.sf(gained - 1, unequal, low / 2) == pytest.approx(0.025, rel=1e-6)
    if lost:
        assert binom.cdf(gained, unequal, high / 2) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 2


rows_of_shifts = st.lists(
    st.tuples(st.floats(-1, 1), st.integers(0, 127), st.integers(1, 1000), st.booleans()), min_size=1, max_size=30
)


def tally(rows: list[tuple[float, int, int, bool]]) -> GainTally:
    gain, marks, weights, tested = (np.array(column) for column in zip(*rows, strict=True))
    distance = np.where(tested, 0.5, np.nan)
    return GainTally.of(Shift(distance, gain.astype(float), marks.astype(np.uint8)), weights.astype(np.int64))


@given(rows_of_shifts, st.data())
def test_tallies_are_the_same_however_the_rows_are_cut(rows: list, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    merged = merge_tallies([GainTally.read(tally(part).document()) for part in parts if part])
    assert merged == tally(rows)
    assert accuracy_of(merged) == accuracy_of(tally(rows))


@given(rows_of_shifts)
def test_the_mean_is_the_exact_one_to_a_unit_of_the_sum(rows: list) -> None:
    tested = [(Fraction(gain), weight) for gain, _, weight, is_tested in rows if is_tested]
    if not tested:
        assert math.isnan(tally(rows).mean)
        assert accuracy_of(tally(rows)) is None
        return
    exact = sum(gain * weight for gain, weight in tested) / sum(weight for _, weight in tested)
    assert abs(Fraction(tally(rows).mean) - exact) <= Fraction(2) ** -52  # units of 2^-60, then one division
    assert tally(rows).largest == max(float(gain) for gain, _ in tested)
