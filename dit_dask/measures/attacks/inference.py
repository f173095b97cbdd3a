"""Attribute inference: is the secret of the nearest published record that of the attacked one?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.attacks.neighbours import find_nearest
from dit_dask.measures.attacks.risk import AttackRisk, Attempt, conclude
from dit_dask.measures.attacks.success import CONFIDENCE
from dit_dask.measures.attacks.tables import TRAINING, AttackTables
from dit_dask.measures.synthetic.columns import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Floats

NAME = "attribute-inference"
TOLERANCE = 0.05


def attack_secrets(
    tables: AttackTables,
    secrets: Sequence[str],
    known: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
) -> AttackRisk:
    """Guess each secret of every training record and of every control record from the nearest published record."""
    if not secrets:
        raise InputError("secrets must name at least one column; got none")
    if not 0 <= tolerance < 1:
        raise InputError(f"tolerance must be a number from 0 to below 1; got {tolerance!r}")
    attempts = {}
    for secret in tables.choose(secrets, "secrets"):
        names = list(known) if known is not None else [name for name in tables.columns if name not in secrets]
        if secret.name in names:
            raise InputError(f"known must not contain the secret {secret.name!r}")
        if not names:
            raise InputError("known must name at least one column; got none")
        attempts[secret.name] = _attempt(tables, secret, tables.choose(names, "known"), tolerance)
    return conclude(NAME, tables, attempts, sample, confidence)


def _attempt(tables: AttackTables, secret: Column, known: Sequence[Column], tolerance: float) -> Callable[[int], Attempt]:
    cells = [read_secret(secret, table) for table in range(3)]

    def attempt(release: int) -> Attempt:
        def attack(table: int) -> Floats:
            number = tables.numbers(release)
            nearest = find_nearest(known, (release, table), number, 1).number[:, 0]
            guesses = cells[release][np.argsort(number)[nearest]]
            return matches(guesses, cells[table], secret, tolerance).astype(np.float64)

        return Attempt(attack, naive_matches(cells[release], cells[TRAINING], secret, tolerance))

    return attempt


def read_secret(secret: Column, table: int) -> Floats:
    """Return the values of a secret: numbers as they are, else codes; NaN is missing."""
    cells: NDArray[np.float64] = secret.cells[table].astype(np.float64)
    if secret.kind == "categorical":
        return np.where(cells < 0, np.nan, cells)
    return cells + (secret.origin or 0.0)


def matches(guesses: Floats, values: Floats, secret: Column, tolerance: float) -> Bools:
    """Tell which guesses are right: equal, or a number that is at most `tolerance` of the guess away; missing is a value."""
    width = tolerance * np.abs(guesses) if secret.origin is not None else 0.0
    with np.errstate(invalid="ignore"):
        close: Bools = (np.abs(guesses - values) <= width) | (np.isnan(guesses) & np.isnan(values))
    return close


def naive_matches(published: Floats, values: Floats, secret: Column, tolerance: float) -> float:
    """Return how often the secret of a random published record is right for a random record."""
    missing = np.isnan(published).sum() * np.isnan(values).sum()
    known, ordered = published[~np.isnan(published)], np.sort(values[~np.isnan(values)])
    width = tolerance * np.abs(known) if secret.origin is not None else 0.0
    right = np.searchsorted(ordered, known + width, "right") - np.searchsorted(ordered, known - width, "left")
    return float((right.sum() + missing) / (len(published) * len(values)))
