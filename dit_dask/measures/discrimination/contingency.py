"""Columns as codes, and the joint counts of keys and a target that every discrimination rate is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.discrimination.histogram import NOTHING_TO_REFINE, CountHistogram, Rate, compute_rate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Bools, Floats, Ints

MISSING = ("category", "drop")


CONFIG_KEY, OPTION, ARGUMENT = "missing: {}", "--missing {}", 'missing="{}"'


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as codes[n] of labels; the code after the last label stands for missing cells."""

    codes: Ints
    labels: Any

    @property
    def span(self) -> int:
        """Return the number of codes, that of missing cells included."""
        return len(self.labels) + 1

    def label(self, code: int) -> Any:
        """Return the label of a code; None for missing cells."""
        return self.labels[code] if code < len(self.labels) else None

    def all_labels(self) -> list[Any]:
        """All labels, None last."""
        return [*self.labels, None]


def encode_columns(
    columns: Mapping[str, pd.Series[Any]], missing: str | None, key: str = CONFIG_KEY, counts: Ints | None = None
) -> tuple[list[CodedColumn], Bools]:
    """Encode columns of one length; also return which rows are kept. With `counts[n]` each row stands for so many.

    Missing cells are an error unless `missing` is set; `key` is how the error says that it can be set.
    """
    pairs = [factorize(name, cells) for name, cells in columns.items()]
    rows = len(pairs[0][0])
    if not rows:
        raise InputError("a discrimination rate needs at least one row; the table has none")
    is_missing = np.zeros(rows, bool)
    for codes, _ in pairs:
        is_missing |= codes < 0
    if is_missing.any() and missing is None:
        names = ", ".join(repr(name) for name, (codes, _) in zip(columns, pairs, strict=True) if (codes < 0).any())
        raise missing_values_error(int(is_missing.sum() if counts is None else counts[is_missing].sum()), names, key)
    if missing == "drop":
        if is_missing.all():
            raise InputError("a discrimination rate needs at least one row; every row misses a value")
        return [CodedColumn(codes[~is_missing], labels) for codes, labels in pairs], ~is_missing
    if is_missing.any():
        pairs = [(np.where(codes < 0, len(labels), codes), labels) for codes, labels in pairs]
    return [CodedColumn(codes, labels) for codes, labels in pairs], np.ones(rows, bool)


def missing_values_error(rows: int, names: str, key: str) -> InputError:
    """Return the error for missing cells where `missing` is not set."""
    choices = f"{key.format('category')} (its own value) or {key.format('drop')}"
    return InputError(f"{rows:,} rows miss a value of {names}; choose {choices}")


def factorize(name: str, cells: pd.Series[Any]) -> tuple[Ints, Any]:
    """Return the codes of the cells, -1 where there is none, and their labels, in the order in which they first appear."""
    import pandas as pd

    try:
        codes, labels = pd.factorize(cells)
    except TypeError as error:
        raise InputError(f"column {name!r} must hold single values that can be compared") from error
    return codes.astype(np.int32, copy=False), labels


def sum_by_code(codes: Ints, weights: NDArray[Any], minimum_length: int = 0) -> Floats:
    """Return the total weight of each code."""
    return np.bincount(codes, weights, minimum_length).astype(np.float64)


def number_combinations(columns: Sequence[Ints]) -> Ints:
    """Return (n,): the combinations of codes[n], numbered from 0 without gaps."""
    import pandas as pd

    return pd.factorize(combine_codes(columns))[0]


def combine_codes(columns: Sequence[Ints], factor: int = 1) -> Ints:
    """Return (n,) numbers below 2^62 / factor that differ where the codes do; with gaps, unless they would overflow."""
    import pandas as pd

    combination, size = columns[0].astype(np.int64, copy=False), int(columns[0].max()) + 1
    for codes in columns[1:]:
        span = int(codes.max()) + 1
        if size * span * factor >= 2**62:
            combination = pd.factorize(combination)[0]
            size = int(combination.max()) + 1
        combination, size = combination * span + codes, size * span
    return pd.factorize(combination)[0] if size * factor >= 2**62 else combination


def run_starts(ordered: Ints) -> Ints:
    """Return where each run of equal numbers starts."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def compute_rate_from_codes(
    keys: Sequence[Ints], target: Ints, estimator: str = "plug-in", weights: Ints | None = None
) -> Rate:
    """Return the rate without a profile: one sort of the pairs also groups equal keys. Row n counts weights[n] times, not 0."""
    span = int(target.max()) + 1
    pairs, counts = count_equal(combine_codes(keys, span) * span + target, weights)
    of_keys = np.add.reduceat(counts, run_starts(pairs // span))
    of_target = np.bincount(target, weights).astype(np.int64)
    return compute_rate(CountHistogram.of(of_target), CountHistogram.of(of_keys), CountHistogram.of(counts), estimator)


def count_equal(numbers: Ints, weights: Ints | None = None) -> tuple[Ints, Ints]:
    """Return the distinct numbers, ascending, and how often each occurs, row n so many times as weights[n] says."""
    if weights is None:
        ordered = np.sort(numbers)
        starts = run_starts(ordered)
        return ordered[starts], np.diff(starts, append=len(ordered))
    order = np.argsort(numbers)
    ordered = numbers[order]
    starts = run_starts(ordered)
    return ordered[starts], np.add.reduceat(weights[order], starts)


@dataclass(frozen=True, eq=False)
class ContingencyTable:
    """Each pair (key, value) that occurs, once, with how many rows have it; keys and values are numbered from 0."""

    key: Ints
    value: Ints
    count: NDArray[Any]

    @classmethod
    def of(cls, key: Ints, value: Ints, weight: NDArray[Any] | None = None) -> ContingencyTable:
        """Count the pairs of two columns of codes; a row may have a weight, a fraction where several classes share it."""
        span = int(value.max()) + 1
        if weight is None or weight.dtype.kind in "iu":
            pairs, counts = count_equal(key * span + value, weight)
            return cls(pairs // span, pairs % span, counts)
        pairs, pair = np.unique(key * span + value, return_inverse=True)
        return cls(pairs // span, pairs % span, np.bincount(pair, weight, len(pairs)))

    @classmethod
    def of_records(cls, key: Ints) -> ContingencyTable:
        """Return the table of keys and records: every row is a value of its own."""
        return cls(key, np.arange(len(key)), np.ones(len(key), np.int64))

    def group_values(self, groups: Ints) -> ContingencyTable:
        """Replace the values by groups[value], an attacker's partition of them."""
        return ContingencyTable.of(self.key, groups[self.value], self.count)

    def profile(self, estimator: str = "plug-in") -> Profile:
        """Measure the keys together and each of them alone."""
        keys, values = sum_by_code(self.key, self.count), sum_by_code(self.value, self.count)
        conditional = entropy_by_key(self.key, self.count)
        if np.issubdtype(self.count.dtype, np.integer):
            return Profile(
                compute_rate(CountHistogram.of(values), CountHistogram.of(keys), CountHistogram.of(self.count), estimator),
                keys,
                conditional,
            )
        return Profile.from_entropies(compute_entropy(values), keys, conditional)


def entropy_by_key(key: Ints, count: NDArray[Any]) -> Floats:
    """Return (keys,): the entropy H(X|Y=y) in bits; counts are added in ascending order, so equal tables give equal bits."""
    order = np.lexsort((count, key))
    key, count = key[order], count[order]
    total, logs = sum_by_code(key, count), sum_by_code(key, count * np.log2(count))
    total = np.maximum(total, np.finfo(float).tiny)
    return np.maximum(0.0, np.log2(total) - logs / total)


def compute_entropy(weights: Floats) -> float:
    """Return the entropy in bits of weights that need not be integers nor sum to one."""
    positive = weights[weights > 0]
    total = math.fsum(positive.tolist())
    return max(0.0, math.fsum((positive * np.log2(total / positive)).tolist()) / total)


@dataclass(frozen=True, eq=False)
class Profile:
    """A rate, and for each key the number of its rows and the conditional entropy, both (keys,)."""

    rate: Rate
    count: Floats
    conditional: Floats

    @classmethod
    def from_entropies(cls, entropy: float, count: Floats, conditional: Floats) -> Profile:
        """Build a profile from entropies that were computed without counts."""
        conditional_entropy = math.fsum((count * conditional).tolist()) / math.fsum(count.tolist())
        if entropy < 1e-12:
            return cls(Rate(1.0, 0.0, 0.0, NOTHING_TO_REFINE), count, conditional)
        return cls(
            Rate(min(1.0, max(0.0, 1 - conditional_entropy / entropy)), entropy, conditional_entropy), count, conditional
        )

    @property
    def rates(self) -> Floats:
        """Return (keys,): 1 - p(y) H(X|Y=y) / H(X), near 1 for any rare key."""
        share = self.count / self.count.sum()
        rates: Floats = 1 - share * self._relative_entropy
        return rates

    @property
    def refinements(self) -> Floats:
        """Return (keys,): 1 - H(X|Y=y) / H(X), negative where the key leaves more entropy than there was."""
        return 1 - self._relative_entropy

    @property
    def _relative_entropy(self) -> Floats:
        entropy = self.rate.entropy
        return self.conditional / entropy if entropy else np.zeros(len(self.conditional))


def profile_of_records(sizes: Ints) -> Profile:
    """Return the profile of keys that sizes[key] rows have, over the record itself: every row is a value of its own."""
    return Profile(rate_of_records(sizes), sizes.astype(np.float64), np.log2(sizes))


def rate_of_records(sizes: Ints) -> Rate:
    """Return the rate of keys that sizes[key] rows have, over the record itself."""
    records = CountHistogram(np.ones(1, np.int64), np.full(1, sizes.sum()))
    return compute_rate(records, CountHistogram.of(sizes), records)


def bootstrap(table: ContingencyTable, level: float, replicates: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return a bootstrap interval of the rate.

    The plug-in rate of few rows is biased upwards, and that of a resample is biased again by about as much, so the quantiles
    are moved down by twice the difference. Of four intervals tried it kept its level best, also near 0
    (docs/discrimination-rate.md).
    """
    rows = int(table.count.sum())
    estimate, shares = table.profile().rate.value, table.count / rows
    drawn = np.empty(replicates)
    for replicate in range(replicates):
        count = rng.multinomial(rows, shares)
        values, keys = (CountHistogram.of(sum_by_code(codes, count)) for codes in (table.value, table.key))
        drawn[replicate] = compute_rate(values, keys, CountHistogram.of(count)).value
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]) - 2 * (drawn.mean() - estimate)
    low, high = np.clip(ends, 0.0, 1.0).tolist()
    return low, high
