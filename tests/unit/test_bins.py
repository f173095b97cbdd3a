"""Bins that cannot be used end in one clear line, without a value of anyone."""

from __future__ import annotations

import datetime
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from dit_dask.engines.noisy_counts import COUPLINGS, Patterns, Sampling, binned, check_samples, simulate
from dit_dask.errors import InputError
from dit_dask.kernels.mechanisms import Laplace
from tests.audits import WORKED, WORKED_SCHEMA, loaded
from tests.counts import pattern

TABLE = loaded(WORKED, WORKED_SCHEMA).table


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ({"age": 0}, r"b\.age must be an integer >= 1 \(bins of equal frequency\) or a list of edges; got 0"),
        ({"age": True}, r"b\.age must be an integer >= 1 .* got True"),
        ({"age": 2.5}, r"b\.age must be an integer >= 1 .* got 2.5"),
        ({"age": "4"}, r"b\.age must be an integer >= 1 .* got '4'"),
        ({"age": []}, r"b\.age must be at least 2 edges in ascending order; got \[\]"),
        ({"age": [20]}, r"b\.age must be at least 2 edges in ascending order; got \[20\]"),
        ({"age": [0, 60, 40, 80]}, r"b\.age must be at least 2 edges in ascending order; got \[0, 60, 40, 80\]"),
        ({"age": [0, 40, 40, 80]}, r"b\.age must be at least 2 edges in ascending order"),
        ({"age": [0, float("nan"), 80]}, r"b\.age: an edge must be a number or an ISO date; got nan"),
        ({"age": [0, "young", 80]}, r"b\.age: an edge must be a number or an ISO date; got 'young'"),
        ({"age": [0, True, 80]}, r"b\.age: an edge must be a number or an ISO date; got True"),
        ({"age": [30, 40, 60]}, r"b\.age: the edges \[30, 40, 60\] leave out 2 of the 5 rows of column 'age'$"),
        ({"agee": 4}, r"b: column: unknown 'agee'; did you mean 'age'\? known: age, gender"),
        ({"disease": 4}, r"b: column: unknown 'disease'"),
        ({"gender": 2}, r"b\.gender: only numeric attributes have bins; column 'gender' is categorical"),
        ({"age": ["9999999-01-01", "2020-01-01"]}, r"b\.age: an edge must be a number or an ISO date"),
    ],
)
def test_wrong_bins_are_one_clear_line(bins: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        binned(TABLE, bins, "b")
    assert "\n" not in str(caught.value)


def test_intervals_are_closed_on_the_right_and_the_first_on_both_sides() -> None:
    table, index = binned(TABLE, {"age": [28, 36, 47, float("inf")]}, "b")
    assert table.codes[index, 0].tolist() == [0, 0, 1, 2, 2]
    assert table.schema.quasi_identifiers[0].levels == ("bin 1 of 3", "bin 2 of 3", "bin 3 of 3")


def test_one_bin_merges_all_rows_and_weights_add_up() -> None:
    table, index = binned(TABLE, {"age": 1}, "b")
    assert table.weights[index].tolist() == [3, 3, 1, 3, 1]
    assert (table.rows, TABLE.rows) == (5, 5)


def test_equal_frequency_counts_rows_not_distinct_values() -> None:
    frame = pd.DataFrame({"x": [1] * 6 + [2, 3, 4, 5, 6, 7], "s": ["a", "b"] * 6})
    rows = loaded(frame, {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"})
    table, index = binned(rows.table, {"x": 2}, "b")
    assert table.codes[index[rows.index], 0].tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    "edges", [["2020-01-01", "2020-01-31", "2021-01-01"], [datetime.date(2020, 1, 1), "2020-01-31T00:00:00Z", "9999-12-31"]]
)
def test_dates_take_dates_as_edges(edges: list) -> None:
    frame = pd.DataFrame({"day": ["2020-01-01", "2020-01-31", "2020-02-01", "2020-12-31"], "s": list("abab")})
    rows = loaded(frame, {"quasi_identifiers": {"day": {"kind": "numeric"}}, "sensitive": "s"})
    table, index = binned(rows.table, {"day": edges}, "b")
    assert table.codes[index[rows.index], 0].tolist() == [0, 0, 1, 1]


def test_integers_beyond_doubles_are_compared_exactly() -> None:
    frame = pd.DataFrame({"x": [str(2**63 + step) for step in range(4)], "s": list("abab")})
    rows = loaded(frame, {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"})
    table, index = binned(rows.table, {"x": [2**63, 2**63 + 1, 2**64]}, "b")
    assert table.codes[index[rows.index], 0].tolist() == [0, 0, 1, 1]


def test_unbinned_tables_stay_as_they_are() -> None:
    table, index = binned(TABLE, {}, "b")
    assert index.tolist() == list(range(TABLE.distinct))
    assert (table.codes == TABLE.codes).all()


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (1, r"t\.samples must be an integer >= 2; got 1"),
        (10**7, r"t\.samples must be at most 333,333 for a secret of 14 values"),
    ],
)
def test_samples_that_cannot_be_used_are_one_clear_line(samples: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_samples(samples, 14, "t")


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_simulation_stays_within_its_memory(coupling: str) -> None:
    patterns = Patterns(14, np.arange(1, 31)[:, None], np.zeros(30, np.int64))
    sampling = Sampling(Laplace(1.0), 0, 60_000, coupling)
    simulate(patterns.take(np.arange(1)), sampling)
    tracemalloc.start()
    simulate(patterns, sampling)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6 < 31 * 14 * 60_000 * 8


def test_no_pattern_is_no_work() -> None:
    none = pattern([1], 1, 3).take(np.zeros(0, np.int64))
    assert len(simulate(none, Sampling(Laplace(1.0), 0, 10)).distance) == 0
