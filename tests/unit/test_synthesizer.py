"""Synthesizers: they draw from what they counted, and their noise is what epsilon asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dit_dask.sanitizers.synthesizer import Marginals, Resample
from dit_dask.values.release import Release
from dit_dask.values.table import Rows
from tests.audits import loaded

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}


def people(rows: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    illness = rng.choice(["flu", "cold", "gout"], rows, p=[0.6, 0.3, 0.1])
    age = np.where(illness == "gout", rng.integers(60, 64, rows), rng.integers(20, 30, rows))
    return loaded(pd.DataFrame({"age": age, "town": rng.choice(list("abcd"), rows), "illness": illness}), SCHEMA)


def drawn(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """Codes and secrets of all published records."""
    group, secret = np.nonzero(release.counts)
    repeats = release.counts[group, secret]
    assert (release.published.low == release.published.high).all()  # type: ignore[union-attr]
    return release.published.low[np.repeat(group, repeats)], np.repeat(secret, repeats)  # type: ignore[union-attr]


class Recorder(np.random.Generator):
    """A generator that is_cached the noise it was asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.Philox(seed))
        self.asked: list[tuple[float, tuple[int, ...]]] = []

    def laplace(self, loc: float, scale: float, size: Any) -> np.ndarray:
        self.asked.append((scale, tuple(size)))
        return super().laplace(loc, scale, size)


@pytest.mark.parametrize("structure", ["star", "independent"])
def test_every_cell_gets_the_noise_that_epsilon_asks_for(structure: str) -> None:
    table = people(300).table
    rng = Recorder(1)
    Marginals(structure, 0.5).release(table, rng)
    secrets, levels = 3, [len(attribute.levels) for attribute in table.schema.quasi_identifiers]
    cells = [secrets, *(size * (secrets if structure == "star" else 1) for size in levels)]
    assert [int(np.prod(shape)) for _, shape in rng.asked] == cells  # empty cells too
    # one record more or less changes one cell of each table by 1: the densities differ by at most exp(sum of 1 / scale)
    assert sum(1 / scale for scale, _ in rng.asked) == pytest.approx(0.5)


def test_noise_covers_the_same_cells_without_a_record() -> None:
    table = people(300).table
    for record in range(0, table.distinct, 7):
        with_record, without = Recorder(1), Recorder(1)
        Marginals("star", 1.0).release(table, with_record)
        Marginals("star", 1.0).release(table.without(record), without)
        assert with_record.asked == without.asked


def test_marginals_draws_each_attribute_within_the_sensitive_value() -> None:
    table = people(4000).table
    rng = np.random.default_rng(3)
    codes, secret = drawn(Marginals("star").release(table, rng))
    assert len(secret) == table.rows
    for value in range(3):
        for place in range(2):
            own = np.bincount(table.codes[table.secret == value, place], table.weights[table.secret == value], minlength=14)
            got = np.bincount(codes[secret == value, place], minlength=14)
            assert (got[own == 0] == 0).all()
            assert stats.chisquare(got[own > 0], own[own > 0] / own.sum() * got.sum()).pvalue > 1e-4


def test_independent_marginals_forget_who_has_what() -> None:
    table = people(4000).table
    codes, secret = drawn(Marginals("independent").release(table, np.random.default_rng(3)))
    old = table.codes[:, 0] >= 10
    assert table.weights[old & (table.secret == 2)].sum() == table.weights[old].sum()  # only gout is old
    assert stats.chi2_contingency(pd.crosstab(codes[:, 0] >= 10, secret)).pvalue > 1e-4


def test_the_number_of_records_is_noisy_too_and_never_below_one() -> None:
    table = people(50).table
    sizes = {len(drawn(Marginals("star", 0.05).release(table, np.random.default_rng(seed)))[1]) for seed in range(20)}
    assert len(sizes) > 5
    assert min(sizes) >= 1
    assert len(drawn(Marginals("star", float("inf")).release(table, np.random.default_rng(0)))[1]) == 50


def test_resample_publishes_rows_of_the_table_and_nothing_else() -> None:
    table = people(500).table
    codes, secret = drawn(Resample().release(table, np.random.default_rng(1)))
    rows = {(*row, value) for row, value in zip(table.codes.tolist(), table.secret.tolist(), strict=True)}
    found = {(*row, value) for row, value in zip(codes.tolist(), secret.tolist(), strict=True)}
    assert found < rows
    assert len(secret) == 500


@pytest.mark.parametrize("sanitizer", [Marginals("star", 1.0), Marginals("independent"), Resample()])
def test_the_stream_alone_decides(sanitizer: Any) -> None:
    table = people(200).table
    one, same, other = (sanitizer.release(table, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert sanitizer.randomised
    assert one.counts.tobytes() == same.counts.tobytes()
    assert drawn(one)[0].tobytes() != drawn(other)[0].tobytes()
