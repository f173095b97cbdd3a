"""Buckets: on which side an edge is, what ties do, and where unusual cells go."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.measures.synthetic.buckets import put_in_buckets, quantile_edges
from dit_dask.measures.synthetic.columns import align


def edges(cells: np.ndarray, bins: int) -> np.ndarray:
    return quantile_edges(cells, bins, np.ones(len(cells), np.int64))


def codes(original: list, other: list, bins: int = 10, **options: object) -> list[list[int]]:
    """The buckets of two columns."""
    frames = {"original": pd.DataFrame({"x": original}), "synthetic": pd.DataFrame({"x": other})}
    (column,) = align(frames, **options)
    return [part.tolist() for part in put_in_buckets(column, bins).codes]


def test_ten_values_make_ten_buckets_that_hold_their_lower_edge() -> None:
    assert edges(np.arange(1.0, 11.0), 10).tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert codes([*range(1, 11)], [2, 1.99, -5, 10, 99]) == [[*range(10)], [1, 0, 0, 9, 9]]


def test_coinciding_quantiles_are_kept_once() -> None:
    assert edges(np.array([1.0, 2, 2, 2, 2, 2, 2, 2, 2, 3]), 10).tolist() == [2, 3]
    assert edges(np.array([5.0] * 20), 10).tolist() == []


def test_mostly_zeros_are_still_split_into_zero_and_more() -> None:
    assert edges(np.array([0.0] * 95 + [3, 4, 5, 6, 7]), 10).tolist() == [3]
    assert codes([0] * 95 + [3, 4, 5, 6, 7], [0, 2, 3, 9])[1] == [0, 0, 1, 1]


def test_dates_are_cut_like_numbers() -> None:
    days = [datetime.date(2020, 1, day) for day in range(1, 11)]
    late = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-10"])
    assert codes(days, list(late)) == [[*range(10)], [0, 1, 9]]
    assert codes(list(pd.date_range("9990-01-01", periods=4, unit="s")), [datetime.date(9999, 12, 31)] * 2, bins=4)[1] == [3, 3]


def test_times_in_zones_are_read_as_one_time_line() -> None:
    here = pd.Series(pd.date_range("2020-01-01", periods=4, freq="h", tz="UTC"))
    there = here.dt.tz_convert("Asia/Tokyo")
    assert codes(list(here), list(there), bins=4) == [[0, 1, 2, 3]] * 2


def test_common_categories_keep_their_bucket_and_the_rest_are_other() -> None:
    original = ["b"] * 3 + ["a"] * 3 + ["c"] * 2 + ["d", "e"]
    first, second = codes(original, ["a", "b", "e", "new", None], bins=3)
    assert first == [1, 1, 1, 0, 0, 0, 2, 2, 2, 2]  # equally common: in the order of their labels
    assert second == [0, 1, 2, 2, 3]  # unseen ones are Other, missing ones have their own


def test_missing_numbers_have_a_bucket_of_their_own() -> None:
    assert codes([1.0, None, 2.0, 3.0], [None, 1.0], bins=3) == [[0, 3, 1, 2], [3, 0]]


def test_large_whole_numbers_are_not_rounded() -> None:
    base = 2**62
    assert codes([base, base + 1, base + 2, base + 3], [base + 1, base + 3], bins=4) == [[0, 1, 2, 3], [1, 3]]


def test_numbers_may_be_said_to_be_categories() -> None:
    first, second = codes([7, 7, 1, 1], [7.0, np.nan], bins=10, kinds={"x": "categorical"})
    assert (first, second) == ([1, 1, 0, 0], [1, 2])  # 7 and 7.0 are one label, and labels sort as text


def test_a_seeded_subset_of_many_combinations() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 3, (50, 12)), columns=list("abcdefghijkl"))
    one, same, other = (dit.accuracy(frame, frame[::2], limit=30, ways=(2, 4), seed=seed) for seed in (1, 1, 2))
    assert len(one.by_combination) == len(one.scores) == 60
    assert one.possible == 66 + 495
    assert one.combinations == same.combinations != other.combinations
    assert one.l1d == same.l1d
    assert {len(names) for names in one.combinations} == set(one.by_ways) == {2, 4}


def test_results_are_frozen() -> None:
    frame = pd.DataFrame({"x": range(30), "y": list("abc") * 10})
    accuracy, closeness = dit.accuracy(frame, frame), dit.closeness(frame, frame, frame)
    assert (accuracy.l1d, accuracy.tvd, accuracy.hellinger) == (0, 0, 0)
    for result, name in ((accuracy, "l1d"), (closeness, "passed")):
        with pytest.raises(AttributeError):
            setattr(result, name, 1)
    with pytest.raises(TypeError):
        accuracy.by_combination["x",] = 1  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        closeness.dcr[0] = 1
