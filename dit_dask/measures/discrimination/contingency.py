"""Columns as codes, and the joint counts of keys and a target that every discrimination rate is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.discrimination.histogram import NOTHING_TO_REFINE, CountHistogram, Rate, rate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Floats, Ints

MISSING = ("category", "drop")


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes[n] of labels; the code after the last label stands for missing cells."""

    codes: Ints
    labels: Any

    @property
    def span(self) -> int:
        """How many codes there may be."""
        return len(self.labels) + 1

    def label(self, code: int) -> Any:
        """What a code stands for; None for missing cells."""
        return self.labels[code] if code < len(self.labels) else None

    def shown(self) -> list[Any]:
        """All labels, None last."""
        return [*self.labels, None]


def coded(columns: Mapping[str, pd.Series[Any]], missing: str | None) -> tuple[list[Coded], Bools]:
    """Code columns of one length; also return which rows are kept. Missing cells need a choice, which nobody makes silently."""
    pairs = [_factorized(name, cells) for name, cells in columns.items()]
    rows = len(pairs[0][0])
    if not rows:
        raise InputError("a discrimination rate needs at least one row; the table has none")
    gone = np.zeros(rows, bool)
    for codes, _ in pairs:
        gone |= codes < 0
    if gone.any() and missing is None:
        names = ", ".join(repr(name) for name, (codes, _) in zip(columns, pairs, strict=True) if (codes < 0).any())
        raise missing_unhandled(int(gone.sum()), names)
    if missing == "drop":
        if gone.all():
            raise InputError("a discrimination rate needs at least one row; every row misses a value")
        return [Coded(codes[~gone], labels) for codes, labels in pairs], ~gone
    if gone.any():
        pairs = [(np.where(codes < 0, len(labels), codes), labels) for codes, labels in pairs]
    return [Coded(codes, labels) for codes, labels in pairs], np.ones(rows, bool)


def missing_unhandled(rows: int, names: str) -> InputError:
    """Say that somebody must choose."""
    return InputError(f"{rows:,} rows miss a value of {names}; choose missing: category (its own value) or missing: drop")


def _factorized(name: str, cells: pd.Series[Any]) -> tuple[Ints, Any]:
    import pandas as pd

    try:
        codes, labels = pd.factorize(cells)
    except TypeError as error:
        raise InputError(f"column {name!r} must hold single values that can be compared") from error
    return codes.astype(np.int64, copy=False), labels


def summed(codes: Ints, weights: NDArray[Any], least: int = 0) -> Floats:
    """Return the total weight of each code."""
    return np.bincount(codes, weights, least).astype(np.float64)


def combined(columns: Sequence[Ints]) -> Ints:
    """Number the combinations of codes[n], densely."""
    import pandas as pd

    return pd.factorize(mixed(columns))[0]


def mixed(columns: Sequence[Ints], room: int = 1) -> Ints:
    """Give different combinations of codes[n] different numbers, below 2^62 / room; not densely unless they would overflow."""
    import pandas as pd

    whole, reach = columns[0], int(columns[0].max()) + 1
    for codes in columns[1:]:
        span = int(codes.max()) + 1
        if reach * span * room >= 2**62:
            whole = pd.factorize(whole)[0]
            reach = int(whole.max()) + 1
        whole, reach = whole * span + codes, reach * span
    return pd.factorize(whole)[0] if reach * room >= 2**62 else whole


def runs(ordered: Ints) -> Ints:
    """Return where each run of equal numbers starts."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def rate_of(keys: Sequence[Ints], target: Ints, estimator: str = "plug-in") -> Rate:
    """Return the rate alone: one sort of the pairs brings equal keys together too."""
    span = int(target.max()) + 1
    pairs = np.sort(mixed(keys, span) * span + target)
    starts = runs(pairs)
    counts = np.diff(starts, append=len(pairs))
    of_keys = np.add.reduceat(counts, runs(pairs[starts] // span))
    return rate(CountHistogram.of(np.bincount(target)), CountHistogram.of(of_keys), CountHistogram.of(counts), estimator)


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """Each pair (key, value) that occurs, once, with how many rows have it; keys and values are numbered from 0."""

    key: Ints
    value: Ints
    count: NDArray[Any]

    @classmethod
    def of(cls, key: Ints, value: Ints, weight: NDArray[Any] | None = None) -> ContingencyTable:
        """Count the pairs of two columns of codes; rows may have weights, which are fractions where a row is shared out."""
        span = int(value.max()) + 1
        if weight is None:
            pairs = np.sort(key * span + value)
            starts = runs(pairs)
            return cls(pairs[starts] // span, pairs[starts] % span, np.diff(starts, append=len(pairs)))
        pairs, place = np.unique(key * span + value, return_inverse=True)
        totals = np.bincount(place, weight, len(pairs))
        return cls(pairs // span, pairs % span, totals.astype(weight.dtype if weight.dtype.kind in "iu" else np.float64))

    @classmethod
    def singled_out(cls, key: Ints) -> ContingencyTable:
        """The joint of keys and the record itself: every row is a value of its own."""
        return cls(key, np.arange(len(key)), np.ones(len(key), np.int64))

    def grouped(self, groups: Ints) -> ContingencyTable:
        """Read the values through groups[value], an attacker's partition of them."""
        return ContingencyTable.of(self.key, groups[self.value], self.count)

    def profile(self, estimator: str = "plug-in") -> Profile:
        """Measure the keys together and each by itself."""
        keys, values = summed(self.key, self.count), summed(self.value, self.count)
        conditional = left_by_key(self.key, self.count)
        if np.issubdtype(self.count.dtype, np.integer):
            return Profile(
                rate(CountHistogram.of(values), CountHistogram.of(keys), CountHistogram.of(self.count), estimator),
                keys,
                conditional,
            )
        return Profile.mixed(entropy_of(values), keys, conditional)


def left_by_key(key: Ints, count: NDArray[Any]) -> Floats:
    """Return (keys,): the entropy H(X|Y=y) in bits; counts are added in ascending order, so equal tables give equal bits."""
    order = np.lexsort((count, key))
    key, count = key[order], count[order]
    total, logs = summed(key, count), summed(key, count * np.log2(count))
    total = np.maximum(total, np.finfo(float).tiny)
    return np.maximum(0.0, np.log2(total) - logs / total)


def entropy_of(weights: Floats) -> float:
    """Entropy in bits of weights that need not be whole numbers nor sum to one."""
    positive = weights[weights > 0]
    total = math.fsum(positive.tolist())
    return max(0.0, math.fsum((positive * np.log2(total / positive)).tolist()) / total)


@dataclass(frozen=True, eq=False)
class Profile:
    """A rate, and for each key how many rows have it and the entropy that is left, both (keys,)."""

    rate: Rate
    count: Floats
    conditional: Floats

    @classmethod
    def mixed(cls, entropy: float, count: Floats, conditional: Floats) -> Profile:
        """A profile from the entropies themselves, where nothing was counted."""
        left = math.fsum((count * conditional).tolist()) / math.fsum(count.tolist())
        if entropy < 1e-12:
            return cls(Rate(1.0, 0.0, 0.0, NOTHING_TO_REFINE), count, conditional)
        return cls(Rate(min(1.0, max(0.0, 1 - left / entropy)), entropy, left), count, conditional)

    @property
    def rates(self) -> Floats:
        """The deck's rate of each key, 1 - p(y) H(X|Y=y) / H(X): near 1 for any rare key."""
        share = self.count / self.count.sum()
        found: Floats = 1 - share * self._left
        return found

    @property
    def refinements(self) -> Floats:
        """What each key tells about its own rows, 1 - H(X|Y=y) / H(X): negative where it leaves more doubt than before."""
        return 1 - self._left

    @property
    def _left(self) -> Floats:
        entropy = self.rate.entropy
        return self.conditional / entropy if entropy else np.zeros(len(self.conditional))


def bootstrap(joint: ContingencyTable, level: float, replicates: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return a bootstrap interval of the rate.

    The plug-in rate of few rows is too high, and that of rows drawn again is too high once more; so the quantiles are moved
    down by twice the difference. Of four intervals tried it kept its level best, also near 0 (docs/discrimination-rate.md).
    """
    rows = int(joint.count.sum())
    found, shares = joint.profile().rate.value, joint.count / rows
    drawn = np.empty(replicates)
    for place in range(replicates):
        count = rng.multinomial(rows, shares)
        values, keys = (CountHistogram.of(summed(codes, count)) for codes in (joint.value, joint.key))
        drawn[place] = rate(values, keys, CountHistogram.of(count)).value
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]) - 2 * (drawn.mean() - found)
    low, high = np.clip(ends, 0.0, 1.0).tolist()
    return low, high
