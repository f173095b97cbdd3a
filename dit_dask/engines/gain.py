"""Gain: how far beliefs move towards the true value, and whether predictions are right, with and without the record.

Sums are integers that merge in any order. True values stay in the process that compares beliefs: what leaves it are marks of
predictions, and only counts of them are ever written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dit_dask.distances import Distance
    from dit_dask.values.arrays import Codes, Floats, Ints

    Marks = NDArray[np.uint8]

CONFIDENCE_LEVELS = {"0.5": 0.5, "0.9": 0.9}  # a prediction is confident if its belief is at least this
RIGHT, RIGHT_WITHOUT, CHANGED = 1, 2, 4
CONFIDENT, CONFIDENT_WITHOUT = (8, 16), (32, 64)  # in the order of the levels
MARKS = 128  # how many combinations there are
UNIT_BITS = 30  # of each of the two integers that a sum of gains is made of


@dataclass(frozen=True, eq=False)
class Shift:
    """How the beliefs of one adversary about m records shift: the distance, the gain, and marks of both predictions.

    A record that could not be tested has no number for a distance.
    """

    distance: Floats
    gain: Floats
    marks: Marks
    knows_confidence: bool = True

    def take(self, chosen: Any) -> Shift:
        """The entries of some records, in the given order."""
        return Shift(self.distance[chosen], self.gain[chosen], self.marks[chosen], self.knows_confidence)


def join_shifts(parts: Sequence[Shift]) -> Shift:
    """Put shifts of several sets of records one behind the other."""
    return Shift(
        np.concatenate([part.distance for part in parts]),
        np.concatenate([part.gain for part in parts]),
        np.concatenate([part.marks for part in parts]),
        all(part.knows_confidence for part in parts),
    )


def shift_of_persons(shifted: Shift, person: Ints, rank: Ints) -> Shift:
    """Take, for each person in ascending order, the row with the largest distance; of equals, that of the lowest rank.

    The gain is the mean over equals. That choice does not look at the sign of the gain, so what moves at random cancels out. A
    prediction changes if that about any row does.
    """
    order = np.lexsort((rank, -shifted.distance, person))
    owner, distance = person[order], shifted.distance[order]
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    is_largest = distance >= np.repeat(distance[starts], sizes)
    gains = np.add.reduceat(np.where(is_largest, shifted.gain[order], 0.0), starts)
    ties = np.maximum(1, np.add.reduceat(is_largest.astype(np.int64), starts))
    changed = np.bitwise_or.reduceat(shifted.marks[order] & CHANGED, starts)
    worst = order[starts]
    return Shift(shifted.distance[worst], gains / ties, shifted.marks[worst] | changed, shifted.knows_confidence)


def tally_persons(shifted: Shift, person: Ints, rank: Ints) -> GainTally:
    """Count each person once; the largest gain is that of any row. `rank` orders rows by what they hold, not by place."""
    if not len(person):
        return GainTally.of(shifted, np.empty(0, np.int64))
    persons = shift_of_persons(shifted, person, rank)
    gains = shifted.gain[~np.isnan(shifted.distance)]
    tally = GainTally.of(persons, np.ones(len(persons.gain), np.int64))
    return replace(tally, largest=float(gains.max()) if len(gains) else None)


def shift(with_record: Floats, without: Floats, secrets: Codes, distance: Distance) -> Shift:
    """Compare (m, n) beliefs with and without each record, whose true values are secrets[m]."""
    everyone = np.arange(len(secrets))
    gain = with_record[everyone, secrets] - without[everyone, secrets]
    predicted, predicted_without = with_record.argmax(axis=1), without.argmax(axis=1)
    marks = mark_predictions(predicted, predicted_without, secrets)
    belief, belief_without = with_record[everyone, predicted], without[everyone, predicted_without]
    for level, bit, bit_without in zip(CONFIDENCE_LEVELS.values(), CONFIDENT, CONFIDENT_WITHOUT, strict=True):
        marks |= np.where(belief >= level, bit, 0).astype(np.uint8)
        marks |= np.where(belief_without >= level, bit_without, 0).astype(np.uint8)
    return Shift(distance(with_record, without), gain, marks)


def mark_predictions(predicted: Ints | Codes, predicted_without: Ints | Codes, secrets: Codes) -> Marks:
    """Return (m,): which predictions are right, and whether they differ."""
    marks = np.where(predicted == secrets, RIGHT, 0) | np.where(predicted_without == secrets, RIGHT_WITHOUT, 0)
    return (marks | np.where(predicted != predicted_without, CHANGED, 0)).astype(np.uint8)


@dataclass(frozen=True)
class GainTally:
    """The rows of some records by their marks, the sum of their gains in units of 2^-60, and the largest gain."""

    rows: tuple[int, ...] = (0,) * MARKS
    total: int = 0
    largest: float | None = None
    knows_confidence: bool = True

    @classmethod
    def of(cls, shifted: Shift, weights: Ints) -> GainTally:
        """Count each record as so many rows; those that could not be tested do not count."""
        tested = ~np.isnan(shifted.distance)
        gain, weights = shifted.gain[tested], weights[tested]
        rows = np.bincount(shifted.marks[tested], weights, minlength=MARKS).astype(np.int64)  # exact below 2^53
        scaled = gain * 2.0**UNIT_BITS  # scaling by a power of two and cutting off the fraction are exact
        high = np.floor(scaled)
        low = np.floor((scaled - high) * 2.0**UNIT_BITS)
        total = (int((high.astype(np.int64) * weights).sum()) << UNIT_BITS) + int((low.astype(np.int64) * weights).sum())
        largest = float(gain.max()) if len(gain) else None
        return cls(tuple(rows.tolist()), total, largest, shifted.knows_confidence)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(self.rows)

    @property
    def mean(self) -> float:
        """The mean gain over rows."""
        return self.total / (self.count << (2 * UNIT_BITS)) if self.count else float("nan")

    def marked(self, bits: int, absent: int = 0) -> int:
        """How many rows have all of these marks, and none of the absent ones."""
        return sum(count for marks, count in enumerate(self.rows) if marks & bits == bits and not marks & absent)

    def document(self) -> dict[str, Any]:
        """As a part file holds it."""
        rows = {str(marks): count for marks, count in enumerate(self.rows) if count}
        return {"rows": rows, "total": str(self.total), "largest": self.largest, "confidence": self.knows_confidence}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> GainTally:
        """The inverse of `document`."""
        rows = tuple(int(document["rows"].get(str(marks), 0)) for marks in range(MARKS))
        return cls(rows, int(document["total"]), document["largest"], document["confidence"])


def merge_tallies(tallies: Sequence[GainTally]) -> GainTally:
    """Add tallies up."""
    largest = [tally.largest for tally in tallies if tally.largest is not None]
    return GainTally(
        tuple(map(sum, zip(*(tally.rows for tally in tallies), strict=True))),
        sum(tally.total for tally in tallies),
        max(largest, default=None),
        all(tally.knows_confidence for tally in tallies),
    )
