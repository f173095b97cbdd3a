"""Linkability: do two halves of a record have the same nearest published record?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.attacks.neighbours import find_nearest
from dit_dask.measures.attacks.risk import AttackRisk, Attempt, conclude
from dit_dask.measures.attacks.success import CONFIDENCE
from dit_dask.measures.attacks.tables import AttackTables
from dit_dask.measures.synthetic.columns import Column

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

NAME = "linkability"
BLOCK = 4096


def attack_links(
    tables: AttackTables,
    sides: Sequence[Sequence[str]],
    neighbours: int = 1,
    sample: int | None = None,
    confidence: float = CONFIDENCE,
) -> AttackRisk:
    """Try to link the two sides of every training record and of every control record through the release."""
    if len(sides) != 2 or not all(sides):
        raise InputError(f"sides must be two lists of at least one column each; got {len(sides)}")
    both = tables.choose([name for side in sides for name in side], "sides")
    parts = (both[: len(sides[0])], both[len(sides[0]) :])

    def attempt(release: int) -> Attempt:
        def attack(table: int) -> Floats:
            return find_links(tables, parts, (release, table), neighbours)

        return Attempt(attack, naive_links(tables.size(release), neighbours))

    return conclude(NAME, tables, {"links": attempt}, sample, confidence)


def find_links(
    tables: AttackTables, sides: tuple[Sequence[Column], Sequence[Column]], frames: tuple[int, int], neighbours: int
) -> Floats:
    """Return 1 for each record of the second frame whose sides share one of their nearest records of the first, else 0."""
    number = tables.numbers(frames[0])
    one, other = (find_nearest(side, frames, number, neighbours).number for side in sides)
    linked = np.empty(len(one))
    for start in range(0, len(one), BLOCK):
        block = slice(start, start + BLOCK)
        linked[block] = (one[block, :, None] == other[block, None, :]).any(axis=(1, 2))
    return linked


def naive_links(published: int, neighbours: int) -> float:
    """Return how often two random sets of so many published records have one in common."""
    if 2 * neighbours > published:
        return 1.0
    return 1.0 - math.exp(
        2 * math.lgamma(published - neighbours + 1) - math.lgamma(published - 2 * neighbours + 1) - math.lgamma(published + 1)
    )
