"""Patterns, bins and samples of random tables against plain Python, and in any order."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.engines.noisy_counts import COUPLINGS, Sampling, binned, count, exact, simulate
from dit_dask.kernels import sampled_beliefs
from dit_dask.kernels.laplace import mean_beliefs
from dit_dask.kernels.mechanisms import Gaussian, Geometric, Laplace
from tests.audits import loaded
from tests.counts import pattern
from tests.properties.strategies import People, people

epsilons = st.floats(-6, 4).map(lambda power: 10.0**power)
count_lists = st.lists(st.floats(0, 6).map(lambda power: int(10**power)), min_size=1, max_size=5)


def flat(schema: dict) -> dict:
    """Hierarchies have no part in this test."""
    quasi = {name: {"kind": entry["kind"]} for name, entry in schema["quasi_identifiers"].items()}
    return {"quasi_identifiers": quasi, "sensitive": schema["sensitive"]}


@settings(deadline=None)
@given(people())
def test_patterns_are_the_counts_of_a_records_tuple_before_and_after_its_removal(population: People) -> None:
    rows = loaded(population.frame, flat(population.schema))
    secrets = list(rows.table.schema.sensitive.levels)
    counted = count(rows.table)
    patterns, after = counted.patterns, counted.patterns.without()
    assert patterns.cells == len(secrets)
    data = list(zip(population.records, population.secrets, strict=True))
    for row, (mine, secret) in enumerate(data):
        record = rows.index[row]
        place = counted.of[record]
        for left, vector, predicted in (
            (data, patterns.counts[place], counted.predicted[record]),
            (data[:row] + data[row + 1 :], after[place], counted.predicted_without[record]),
        ):
            tally = Counter(s for q, s in left if q == mine)
            assert sorted(tally.values(), reverse=True) == [c for c in vector if c]
            assert list(vector) == sorted(vector, reverse=True)
            assert predicted == max(range(len(secrets)), key=lambda code: (tally[secrets[code]], -code))
        assert patterns.counts[place, patterns.own[place]] == sum(pair == (mine, secret) for pair in data)
    keys = {(tuple(vector), own) for vector, own in zip(patterns.counts, patterns.own, strict=True)}
    assert len(keys) == len(patterns) == len(set(counted.of))


@settings(deadline=None)
@given(people(), st.lists(st.integers(-5, 1005), min_size=2, max_size=6, unique=True).map(sorted))
def test_edges_bin_as_pandas_does(population: People, edges: list[int]) -> None:
    edges = [min(edges[0], 0), *edges[1:-1], max(edges[-1], 1000)]
    rows = loaded(population.frame, flat(population.schema))
    numeric = [a.name for a in rows.table.schema.quasi_identifiers if a.kind == "numeric"]
    table, index = binned(rows.table, dict.fromkeys(numeric, edges), "bins")
    frame = population.frame.copy()
    for name in numeric:
        frame[name] = pd.cut(frame[name], edges, include_lowest=True, labels=False)
    assert table.distinct == len(frame.drop_duplicates())
    sizes = frame.groupby(list(frame.columns))["secret"].transform("size")
    np.testing.assert_array_equal(table.weights[index[rows.index]], sizes)


@settings(deadline=None)
@given(people(), st.integers(1, 60))
def test_bins_of_equal_frequency_follow_the_inverted_distribution(population: People, bins: int) -> None:
    rows = loaded(population.frame, flat(population.schema))
    numeric = [a.name for a in rows.table.schema.quasi_identifiers if a.kind == "numeric"]
    table, index = binned(rows.table, dict.fromkeys(numeric, bins), "bins")
    for place, attribute in enumerate(table.schema.quasi_identifiers):
        if attribute.name not in numeric:
            continue
        values = population.frame[attribute.name].to_numpy()
        ordered = np.sort(values)
        edges = {int(ordered[-(-k * len(values) // bins) - 1]) for k in range(1, bins)}
        expected = np.searchsorted(sorted(edges), values)
        _, expected = np.unique(expected, return_inverse=True)
        np.testing.assert_array_equal(table.codes[index[rows.index], place], expected)
    assert table.rows == rows.used


@settings(deadline=None)
@given(count_lists, st.integers(0, 20), epsilons, st.data())
def test_every_distance_is_positive_and_within_the_bound(counts: list[int], zeros: int, epsilon: float, data) -> None:
    n = max(2, len(counts) + zeros)
    found = exact(pattern(counts, data.draw(st.sampled_from(counts)), n), epsilon)[0]
    assert 0 < found <= min(2 * math.tanh(epsilon / 2), 2 * (n - 1) / (n * (n + 1))) * (1 + 1e-12)


@settings(deadline=None)
@given(count_lists, st.integers(0, 20), epsilons)
def test_expected_beliefs_sum_to_one_and_order_as_the_counts(counts: list[int], zeros: int, epsilon: float) -> None:
    ordered = np.array([sorted(counts, reverse=True)])
    beliefs = mean_beliefs(ordered, len(counts) + zeros, epsilon)[0]
    assert abs(beliefs.sum() - 1) < 1e-12
    assert (np.diff(beliefs) <= 1e-15).all()


@settings(max_examples=20, deadline=None)
@given(people(), st.sampled_from(COUPLINGS), st.sampled_from([Laplace(0.3), Geometric(1.0), Gaussian(2.0)]), st.randoms())
def test_order_and_chunks_of_patterns_change_no_bit(population: People, coupling: str, mechanism: Laplace, random) -> None:
    patterns = count(loaded(population.frame, flat(population.schema)).table).patterns
    sampling = Sampling(mechanism, seed=5, samples=50, coupling=coupling)
    whole = simulate(patterns, sampling)
    order = list(range(len(patterns)))
    random.shuffle(order)
    for chunk in np.array_split(np.array(order), 3):
        part = simulate(patterns.take(chunk), sampling)
        for ours, theirs in ((part.distance, whole.distance), (part.unbiased, whole.unbiased), (part.stderr, whole.stderr)):
            np.testing.assert_array_equal(ours, theirs[chunk])
        np.testing.assert_array_equal(exact(patterns.take(chunk), 0.3), exact(patterns, 0.3)[chunk])


def test_a_pattern_has_the_same_bits_in_a_table_with_longer_tuples() -> None:
    sampling = Sampling(Laplace(1.0), seed=1, samples=100)
    short, long = pattern([2, 1], 1, 6), pattern([2, 1], 1, 6)
    padded = type(long)(6, np.pad(long.counts, ((0, 0), (0, 3))), long.own)
    assert simulate(short, sampling).distance == simulate(padded, sampling).distance
    assert exact(short, 1.0) == exact(padded, 1.0)


@settings(deadline=None)
@given(
    st.lists(st.floats(1e-12, 1, width=64), min_size=1, max_size=400),
    st.sampled_from([0.0, 1e-13, 1.0]),
    st.integers(0, 300),
)
def test_coordinates_are_sorted_as_numpy_sorts_them(values: list[float], squeeze: float, repeats: int) -> None:
    base = np.array(values + values[:1] * repeats)
    rows = np.stack([base, base[::-1] * squeeze + 0.25, np.where(base < np.median(base), base * 1e-14, base)])
    expected = np.sort(rows, axis=1)
    sampled_beliefs.ascending(rows)
    np.testing.assert_array_equal(rows, expected)
