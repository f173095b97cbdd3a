"""What a classifier learns from an encoded release: statistics that follow a removal, and sums that are the same to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

LIMBS, LIMB_BITS = 4, 13
FRACTION_BITS = LIMBS * LIMB_BITS  # of a fraction from 0 to 1: as fine as numbers below 1 are
MOST_ROWS = 2**26  # sums of products of two limbs over so many records are below 2^53, which numbers hold exactly


@dataclass(frozen=True, eq=False)
class Encoded:
    """Classes with features[c, f] from 0 to 1, those that may be fractions[f] (others are 0 or 1), and counts[c, n]."""

    features: Floats
    fractions: Bools
    counts: Ints

    @property
    def is_countable(self) -> bool:
        """Whether sums over the records are exact."""
        least, most = self.features.min(initial=0.0), self.features.max(initial=1.0)
        return bool(least >= 0 and most <= 1 and self.counts.sum() <= MOST_ROWS)


@dataclass(frozen=True, eq=False)
class Change:
    """What a removal changes: the places of the classes that are gone, what they were, and the new ones."""

    places: Ints
    gone: Encoded
    new: Encoded


Predict = Callable[["Floats"], "Floats | None"]  # from features of a target to (n,) beliefs; None where rounding could decide


class Statistics(Protocol):
    """What suffices to know of a release for the model that a classifier would train on it."""

    def update(self, model: Any, change: Change) -> Statistics:
        """The statistics of the changed release."""
        ...

    def learn(self, model: Any) -> Predict | None:
        """Return what predicts as the trained model would; None where rounding could decide."""
        ...


Totals = tuple["Floats", ...]


@dataclass(frozen=True, eq=False)
class Sums:
    """Whole numbers, summed over classes: an update gives the same bits as a new sum, in any order."""

    sum_over: Callable[[Any, Encoded], Totals]
    learn_from: Callable[[Any, Totals, Bools], Predict | None]
    fractions: Bools
    totals: Totals

    def update(self, model: Any, change: Change) -> Sums:
        """Subtract the classes that are gone and add the new ones."""
        both = zip(self.totals, self.sum_over(model, change.gone), self.sum_over(model, change.new), strict=True)
        return replace(self, totals=tuple(total - gone + new for total, gone, new in both))

    def learn(self, model: Any) -> Predict | None:
        """Return what predicts as the trained model would."""
        return self.learn_from(model, self.totals, self.fractions)


def weigh_secrets(encoded: Encoded) -> Floats:
    """Return (c, n + 1): the records of each secret, and last how many secrets a class has, its number of training rows."""
    training_rows = np.count_nonzero(encoded.counts, axis=1)
    return np.column_stack([encoded.counts, training_rows]).astype(np.float64)


def split_fractions(fractions: Floats) -> Floats:
    """Return (c, 4 f): fractions[c, f] as four limbs of 13 bits each, the lowest ones of all first."""
    number = np.rint(np.ldexp(fractions, FRACTION_BITS))
    limbs = []
    for _ in range(LIMBS - 1):
        higher = np.floor(np.ldexp(number, -LIMB_BITS))
        limbs.append(number - np.ldexp(higher, LIMB_BITS))
        number = higher
    return np.concatenate([*limbs, number], axis=1)


def join_limbs(sums: Any) -> Any:
    """Return (f, …) integers of any size from sums[4 f, …] of their limbs."""
    limbs = np.split(sums, LIMBS)
    return sum(to_integers(limb) * 2 ** (LIMB_BITS * place) for place, limb in enumerate(limbs))


def join_products(sums: Floats) -> Any:
    """Return (f, …) integers of any size, sums of squares, from sums[10 f, …] of the products of their limbs."""
    pairs = [(one, other) for one in range(LIMBS) for other in range(one, LIMBS)]
    parts = zip(pairs, np.split(sums, len(pairs)), strict=True)
    return sum(to_integers(part) * 2 ** (LIMB_BITS * (one + other) + (one != other)) for (one, other), part in parts)


def multiply_limbs(limbs: Floats) -> Floats:
    """Return (c, 10 f): the products of the limbs[c, 4 f] of each fraction, each pair once."""
    parts = np.split(limbs, LIMBS, axis=1)
    return np.concatenate([parts[one] * parts[other] for one in range(LIMBS) for other in range(one, LIMBS)], axis=1)


def to_integers(numbers: Any) -> Any:
    """Python's integers, which do not overflow."""
    return numbers if numbers.dtype == object else numbers.astype(np.int64).astype(object)


def place_beliefs(scores: Floats, present: Ints, secrets: int) -> Floats:
    """Return (secrets,) beliefs from the logarithmic scores of the secrets that are present."""
    raised = np.exp(scores - scores.max())
    beliefs = np.zeros(secrets)
    beliefs[present] = raised / raised.sum()
    return beliefs
