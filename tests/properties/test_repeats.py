"""Tests on draws: no cut of the records changes a bit, labels of equal laws do not matter, and determinism has no noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.audit.excess import excess_of, interval_of
from dit_dask.audit.gates import parse
from dit_dask.distances import DISTANCES, THRESHOLDS
from dit_dask.engines import ReleaseProcedure, brute_force, repeated
from dit_dask.engines.influence import Estimates, Excess, RowBounds
from dit_dask.engines.permutation import divisions, expected_noise, p_value
from dit_dask.engines.witness import excess
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.synthesizer import Resample
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"age": RNG.integers(20, 24, 14), "town": RNG.choice(["a", "b"], 14), "illness": RNG.choice(["x", "y", "z"], 14)}
)
ROWS = loaded(FRAME, SCHEMA)


def built(sanitizer: object, repeats: int) -> tuple[object, ReleaseProcedure]:
    (test,) = points(ROWS, SCHEMA, [{"sanitizer": "resample", "repeats": repeats}])
    return test.rows.table, replace(test.procedure, sanitizer=sanitizer)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 4), st.sampled_from([2, 7, 8]))
def test_no_cut_of_the_records_changes_a_bit(size: int, repeats: int) -> None:
    table, procedure = built(Resample(), repeats)
    records = np.arange(min(5, table.distinct))
    whole = repeated.influence(table, records, procedure)
    parts = [repeated.influence(table, records[start : start + size], procedure) for start in range(0, len(records), size)]
    assert tuple(whole.estimates) == tuple(sorted(whole.estimates, key=repeated.ESTIMATES.index)) == repeated.ESTIMATES
    for name, values in whole.estimates.items():
        np.testing.assert_array_equal(values, np.concatenate([part.estimates[name] for part in parts]), name)


@pytest.mark.parametrize("repeats", [4, 10])
def test_a_deterministic_sanitizer_has_exact_distances_and_no_noise(repeats: int) -> None:
    table, procedure = built(Raw(), repeats)
    records = np.arange(table.distinct)
    exact = brute_force.influence(table, records, replace(procedure, repeats=1))
    found = repeated.influence(table, records, procedure)
    np.testing.assert_allclose(found.distance, exact.distance, rtol=1e-12)  # means of equal numbers round
    assert (found.estimates["noise"] == 0).all()
    assert (found.estimates["expected_noise"] == 0).all()
    np.testing.assert_allclose(found.estimates["excess"], exact.distance, rtol=1e-9, atol=1e-12)
    assert (found.estimates["excess_stderr"] < 1e-12).all()
    for name, limit in THRESHOLDS.items():
        np.testing.assert_array_equal(found.estimates[f"over_{name}"], exact.distance >= limit)
        assert (found.estimates[f"noise_over_{name}"] == 0).all()
    assert (found.estimates["p_value"] <= 0.03).all()  # 2 of 70 divisions, or fewer


beliefs = st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=4), min_size=6, max_size=6)


@given(beliefs, beliefs)
def test_swapping_the_two_sides_and_reordering_draws_changes_nothing(x: list, y: list) -> None:
    first, second = [np.array(x)], [np.array(y)]
    sides = divisions(6, 0)
    for other in ([second[0][::-1]], [np.roll(second[0], 2, axis=0)]):
        assert p_value(first, second, sides) == p_value(other, first, sides)
        assert expected_noise(first, second, sides) == pytest.approx(expected_noise(other, first, sides), abs=1e-12)


@given(beliefs, beliefs, beliefs)
def test_the_excess_is_never_larger_than_the_distances_of_the_halves(x: list, y: list, z: list) -> None:
    full, without, again = (np.array(one) for one in (x, y, z))
    value, error = excess([full], [without], [again])
    halves = [(full, without[3:]), (again, without[:3])]
    bound = np.mean([repeated.law_distance(one[None], np.repeat(half, 2, axis=0)[None])[0] for one, half in halves])
    assert value <= bound + 1e-12
    assert error >= 0


def test_bounds_of_rows_bound_every_statistic() -> None:
    table, procedure = built(Resample(), 8)
    records = np.arange(table.distinct)
    found = repeated.influence(table, records, replace(procedure, distance=DISTANCES["tv"].build({}, None)))
    estimates = Estimates(records, found.estimates, found.estimates, found.distance)
    summary = procedure.summarise_estimates(table, estimates, None)
    intervals = excess_of(summary.bounds)
    assert {"delta", "mean", "quantiles[0.5]", "share_over[0.1]"} <= set(intervals)
    for one in intervals.values():
        assert 0 <= one.interval[0] <= one.interval[1]
        assert one.interval[0] <= one.estimate <= one.interval[1]
    assert intervals["delta"].interval[1] >= found.distance.max()
    assert summary.repeats.p_value == found.estimates["p_value"].min()


@given(st.lists(st.floats(0, 2), min_size=1, max_size=40), st.floats(0, 2))
def test_intervals_of_any_key_hold_what_the_bounds_of_rows_give(values: list[float], key: float) -> None:
    estimate = np.array(values)
    low, high = estimate / 2, estimate + 0.1
    excess = excess_of(RowBounds(estimate, low, high, Excess(0.5, (0.0, 1.0))))
    over = interval_of(parse(f"share_over[{key:.9f}] <= 0.1", "g"), excess)
    limit = float(f"{key:.9f}")
    assert over[0] <= (low > limit).mean() + 1e-12
    assert over[1] >= (high > limit).mean() - 1e-12
    level = float(f"{key / 2:.9f}")
    quantile = interval_of(parse(f"quantiles[{level:.9f}] <= 0.1", "g"), excess)
    assert quantile[0] <= np.quantile(low, level) + 1e-12
    assert quantile[1] >= np.quantile(high, level) - 1e-12
    assert excess["share_over[0.3]"].interval == ((low > 0.3).mean(), (high > 0.3).mean())
