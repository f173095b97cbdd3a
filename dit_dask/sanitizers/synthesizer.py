"""Synthesizers: sanitizers that publish new records, drawn from a model of the table or from the table itself.

`marginals` draws from counts: of the sensitive values, and of each quasi-identifier, either alone (independent) or within
every sensitive value (star: the tree whose root is the sensitive attribute). `resample` draws whole rows with replacement,
as a synthesizer does that has memorised its training records.

With epsilon every cell of every table of counts, empty ones too, gets Laplace noise; all else is computed from these.
Neighbours are tables that differ in one record, added or removed. A record counts in one cell of each of the d + 1 tables,
so each gets epsilon / (d + 1), which is noise of scale (d + 1) / epsilon, and together they spend epsilon. How many records
are drawn comes from the noisy counts of the sensitive values too. The domain of every attribute counts as public
knowledge, as in the whole package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dit_dask.config.constraints import Choice, Field, Number, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.values.release import Ranges, Release
from dit_dask.values.table import Table, collapse

if TYPE_CHECKING:
    from dit_dask.sanitizers.claims import Claim
    from dit_dask.values.arrays import Codes, Floats

MAX_ROWS = 10_000_000  # limits the records of a tiny epsilon


@dataclass(frozen=True)
class Marginals:
    """Draws records from counts of one or two attributes at a time, with noise if an epsilon is given."""

    structure: str
    epsilon: float | None = None
    claim: Claim | None = None
    randomised: ClassVar[bool] = True

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        """Count, add the noise, draw as many records as were counted."""
        levels = len(table.schema.sensitive.levels)
        scale = 0.0 if self.epsilon is None else noise_scale(table.codes.shape[1], self.epsilon)
        of_secret = add_noise(np.bincount(table.secret, table.weights, levels).astype(np.float64), scale, rng)
        rows = min(max(1, round(float(of_secret.sum()))), MAX_ROWS)
        secret = draw_codes(normalise(of_secret)[None], np.zeros(rows, np.int32), rng)
        codes = np.empty((rows, table.codes.shape[1]), np.int32)
        for position, attribute in enumerate(table.schema.quasi_identifiers):
            group, groups = (table.secret, levels) if self.structure == "star" else (np.zeros_like(table.secret), 1)
            cells = len(attribute.levels)
            cell = group * np.int64(cells) + table.codes[:, position]
            counts = np.bincount(cell, table.weights, groups * cells).astype(np.float64)
            model = normalise(add_noise(counts, scale, rng).reshape(groups, cells))
            codes[:, position] = draw_codes(model, secret if groups > 1 else np.zeros_like(secret), rng)
        return release_records(table, codes, secret)


@dataclass(frozen=True)
class Resample:
    """Publishes rows of the table, drawn with replacement: the extreme case of overfitting."""

    claim: Claim | None = None
    randomised: ClassVar[bool] = True

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        """Draw as many rows as there are."""
        weights = rng.multinomial(table.rows, table.weights / table.rows)
        index = np.repeat(np.arange(table.distinct), weights)
        return release_records(table, table.codes[index], table.secret[index])


def noise_scale(attributes: int, epsilon: float) -> float:
    """The scale of the Laplace noise: a record is counted once in each of attributes + 1 tables."""
    return (attributes + 1) / epsilon


def add_noise(counts: Floats, scale: float, rng: np.random.Generator) -> Floats:
    """Add Laplace noise to all cells."""
    return counts + rng.laplace(0.0, scale, counts.shape) if scale else counts


def normalise(noisy_counts: Floats) -> Floats:
    """Turn the last axis into probabilities, none below zero; where nothing is left all values are equally likely."""
    counts = np.maximum(0.0, noisy_counts)
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / counts.shape[-1])


def draw_codes(model: Floats, group: Codes, rng: np.random.Generator) -> Codes:
    """Draw a code for each record from the probabilities model[group] of its group."""
    steps = np.cumsum(model, axis=1)
    steps /= steps[:, -1:]
    # all groups in one sorted line: group g takes the numbers from g to g + 1
    line = (steps + np.arange(len(model))[:, None]).ravel()
    positions = np.searchsorted(line, group + rng.random(len(group)), "right") - group * np.int64(model.shape[1])
    codes: Codes = np.minimum(positions, model.shape[1] - 1).astype(np.int32)
    return codes


def release_records(table: Table, codes: Codes, secret: Codes) -> Release:
    """Publish records as they are: one class for each distinct tuple of quasi-identifiers."""
    drawn, _ = collapse(table.schema, codes, secret)
    new = np.ones(drawn.distinct, bool)
    new[1:] = (drawn.codes[1:] != drawn.codes[:-1]).any(axis=1)
    counts = np.zeros((new.sum(), len(table.schema.sensitive.levels)), np.int64)
    counts[np.cumsum(new) - 1, drawn.secret] = drawn.weights
    return Release(table.schema, Ranges(drawn.codes[new], drawn.codes[new]), counts)


def _build(parameters: Mapping[str, Any], _context: Context) -> Marginals:
    return Marginals(parameters["structure"], parameters["epsilon"])


def _build_resample(_parameters: Mapping[str, Any], _context: Context) -> Resample:
    return Resample()


KIND = Kind(
    Record(
        {
            "structure": Field(
                Choice(("star", "independent")),
                "star",
                sweep=True,
                description="star: quasi-identifiers depend on the sensitive value; independent: on nothing",
            ),
            "epsilon": Field(Number(0), None, sweep=True, description="of Laplace noise on all counts; none without it"),
        }
    ),
    _build,
    disjoint=True,
)
RESAMPLE = Kind(Record(), _build_resample, disjoint=True)
