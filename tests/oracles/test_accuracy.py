"""Accuracy against exact fractions, and against what repeated sampling really does."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dit_dask as dit
from dit_dask.kernels import crosstab
from dit_dask.measures.synthetic.sampling import ChanceLevel
from tests.oracles.nearest import bucket_of
from tests.properties.mixed_frames import mixed_frames


def exactly(original: pd.DataFrame, synthetic: pd.DataFrame, columns: tuple[str, ...], bins: int) -> tuple[Fraction, float]:
    """L1D as a fraction and Hellinger's distance, from counted tuples of buckets."""
    bucket = {name: bucket_of(original[name], bins) for name in columns}
    sides = [
        Counter(
            tuple(bucket[name](cell) for name, cell in zip(columns, row, strict=True))
            for row in zip(*(frame[name] for name in columns), strict=True)
        )
        for frame in (original, synthetic)
    ]
    cells = sides[0].keys() | sides[1].keys()
    p, q = ({cell: Fraction(side[cell], side.total()) for cell in cells} for side in sides)
    affinity = math.fsum((math.sqrt(p[cell]) - math.sqrt(q[cell])) ** 2 for cell in cells)
    return sum((abs(p[cell] - q[cell]) for cell in cells), Fraction(0)), math.sqrt(affinity / 2)


@settings(deadline=None, max_examples=40)
@given(frames=mixed_frames(frames=2), bins=st.integers(2, 6))
def test_every_combination_equals_exact_fractions(frames: list[pd.DataFrame], bins: int) -> None:
    original, synthetic = frames
    ways = (1, 2, 3, 4)
    found = dit.accuracy(original, synthetic, bins, ways)
    wanted = [names for size in ways for names in itertools.combinations(original.columns, size)]
    assert list(found.by_combination) == wanted
    for names, score in found.by_combination.items():
        l1d, hellinger = exactly(original, synthetic, names, bins)
        assert score.l1d == float(l1d)  # rounded once
        assert score.tvd == float(l1d) / 2
        assert score.hellinger == pytest.approx(hellinger, abs=1e-12)
    assert found.l1d == pytest.approx(np.mean([score.l1d for score in found.scores]))
    for column in original.columns:
        own = [score.tvd for names, score in found.by_combination.items() if column in names]
        assert found.by_column[column].tvd == pytest.approx(np.mean(own))


def test_sorted_keys_give_what_counting_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 900, (500, 2), np.int32), rng.integers(0, 900, (300, 2), np.int32)
    sizes, both = np.array([900, 900]), np.array([[0, 1]])
    assert crosstab.DENSE < 900 * 900
    ((l1d, hellinger),) = crosstab.divergences(first, second, np.ones(500, np.int64), np.ones(300, np.int64), sizes, both)
    sides = [Counter(map(tuple, codes.tolist())) for codes in (first, second)]
    cells = sides[0].keys() | sides[1].keys()
    assert l1d == float(sum(abs(Fraction(sides[0][cell], 500) - Fraction(sides[1][cell], 300)) for cell in cells))
    roots = [(math.sqrt(sides[0][cell] / 500) - math.sqrt(sides[1][cell] / 300)) ** 2 for cell in cells]
    assert hellinger == pytest.approx(math.sqrt(sum(roots) / 2), abs=1e-12)


def normals(rng: np.random.Generator, size: int) -> pd.DataFrame:
    x = rng.normal(size=size)
    return pd.DataFrame({"x": x, "y": x + rng.normal(size=size), "z": rng.choice(list("abc"), size, p=[0.7, 0.2, 0.1])})


def nearly_empty(rng: np.random.Generator, size: int) -> pd.DataFrame:
    return pd.DataFrame({name: rng.random(size) for name in "abc"})


def rare_labels(rng: np.random.Generator, size: int) -> pd.DataFrame:
    return pd.DataFrame({name: np.minimum(rng.geometric(0.3, size), 30).astype(str) for name in "abcd"})


@pytest.mark.parametrize("population", [normals, nearly_empty, rare_labels])
@pytest.mark.parametrize(("rows", "drawn"), [(1000, 1000), (1000, 4000), (4000, 1000), (300, 1200)])
def test_two_samples_of_one_population_score_at_the_expected_level(population: Any, rows: int, drawn: int) -> None:
    rng = np.random.default_rng(3)
    scores = [dit.accuracy(population(rng, rows), population(rng, drawn), splits=1, seed=turn) for turn in range(30)]
    for name in ("l1d", "hellinger"):
        found = np.mean([getattr(score, name) for score in scores])
        expected = np.mean([getattr(score.expected, name) for score in scores])
        assert 0.9 < expected / found < 1.07  # cells that were not seen are estimated; scaled by 1/sqrt(rows): 0.6 to 1.05


def test_what_is_expected_and_measured_does_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(5)
    original, synthetic = normals(rng, 400), normals(rng, 300)
    shuffled = [frame.sample(frac=1, random_state=7) for frame in (original, synthetic)]
    first, second = dit.accuracy(original, synthetic), dit.accuracy(*shuffled)
    assert (first.scores, first.noise, first.expected) == (second.scores, second.noise, second.expected)


def test_the_chance_level_of_one_cell_equals_a_sum_over_all_pairs_of_counts() -> None:
    for rows in ((7, 20), (20, 7), (9, 9)):
        level = ChanceLevel.of(rows)
        for position in range(0, len(level.log_p), 40):
            p = float(np.exp(level.log_p[position]))
            first, second = (stats.binom.pmf(np.arange(size + 1), size, p) for size in rows)
            shares = [np.arange(size + 1) / size for size in rows]
            weight = np.outer(first, second)
            gap = (weight * abs(np.subtract.outer(*shares))).sum()
            root = (weight * np.subtract.outer(np.sqrt(shares[0]), np.sqrt(shares[1])) ** 2).sum()
            assert level.gaps[position] == pytest.approx(gap, rel=1e-9, abs=1e-12)
            assert level.roots[position] == pytest.approx(root, rel=1e-9, abs=1e-12)
