from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit.statistics import MOST_POINTS, Distribution, describe, merge, points

distances = st.lists(st.sampled_from([0.0, 0.002, 0.004, 0.05, 0.25, 1 / 3, 2.0]), min_size=1, max_size=60)


def distribution(values: list[float], changed: int = 0) -> Distribution:
    return Distribution.of(np.array(values), np.ones(len(values), bool), changed)


@given(distances)
def test_statistics_are_numpys_over_rows(values: list[float]) -> None:
    found = describe(distribution(values))
    assert found["delta"] == max(values)
    assert found["mean"] == pytest.approx(np.mean(values), abs=1e-14)  # another order of additions
    assert found["std"] == pytest.approx(np.std(values), abs=1e-12)
    for level, value in found["quantiles"].items():
        assert value == pytest.approx(np.quantile(values, float(level)), abs=1e-14)
    assert found["share_over"]["0.00316"] == np.mean(np.array(values) > 10**-2.5)
    assert found["records"] == len(values)


@given(distances, st.lists(st.integers(1, 59), max_size=5))
def test_merging_in_any_cut_and_order_changes_no_bit(values: list[float], cuts: list[int]) -> None:
    edges = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    pieces = [distribution(values[a:b], 1) for a, b in pairwise(edges)]
    whole = merge(pieces[::-1])
    once = distribution(values, len(pieces))
    assert json.dumps(describe(whole)) == json.dumps(describe(once))
    nested = merge([merge(pieces[:1]), merge(pieces[1:])]) if len(pieces) > 1 else merge(pieces)
    assert json.dumps(describe(nested)) == json.dumps(describe(once))


def test_infinite_distances_are_words_and_never_nan() -> None:
    found = describe(distribution([0.0, math.inf]))
    assert (found["delta"], found["mean"], found["std"]) == ("inf", "inf", None)
    assert found["quantiles"]["0.5"] == "inf"
    json.dumps(found, allow_nan=False)


def test_the_distribution_is_exact_at_both_ends_and_bounded_between() -> None:
    values = np.random.default_rng(1).random(30_000)
    drawn = points(Distribution.of(values, np.ones(len(values), bool), 0))
    assert len(drawn["distance"]) == MOST_POINTS
    assert (drawn["distance"][0], drawn["distance"][-1]) == (values.min(), values.max())
    assert drawn["cumulative"][-1] == drawn["cumulative_distinct"][-1] == 1
    share = (values[:, None] <= drawn["distance"][[7, 500, 9000]]).mean(axis=0)
    np.testing.assert_array_equal(drawn["cumulative"][[7, 500, 9000]], share)


def test_duplicates_count_once_among_distinct_records() -> None:
    both = Distribution.of(np.array([0.1, 0.1, 0.3]), np.array([True, False, True]), 0)
    drawn = points(both)
    assert drawn["cumulative"].tolist() == [2 / 3, 1.0]
    assert drawn["cumulative_distinct"].tolist() == [0.5, 1.0]
