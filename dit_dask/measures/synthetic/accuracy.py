"""How closely a synthetic table keeps the distributions of the original, in all cross-tabulations of a few columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.errors import InputError
from dit_dask.kernels.crosstab import divergences
from dit_dask.measures.synthetic.buckets import BucketedColumn, check_bins, put_in_buckets, stack_codes
from dit_dask.measures.synthetic.columns import Column, align
from dit_dask.measures.synthetic.discriminator import Discriminator, discriminate
from dit_dask.measures.synthetic.guards import describe_unlike, share_unseen
from dit_dask.measures.synthetic.sampling import expected_distances

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Codes, Ints

MOST_WAYS = 4
LIMIT = 1000
SPLITS = 3


@dataclass(frozen=True)
class Score:
    """Three distances between relative frequencies, 0 where they agree; L1D reaches 2, the others 1."""

    l1d: float
    tvd: float
    hellinger: float


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How far a synthetic table is from the original; l1d, tvd and hellinger are means over all combinations.

    `expected` is the mean that a table drawn anew from the same population would have, estimated from the original's counts
    for the sizes of the two tables. `noise` is measured between two random parts of the original, of `noise_rows` rows.
    """

    l1d: float
    tvd: float
    hellinger: float
    noise: Score
    expected: Score
    noise_rows: tuple[int, int]
    columns: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    scores: tuple[Score, ...]
    expected_scores: tuple[Score, ...]
    possible: int
    """How many combinations there are; beyond the limit a seeded subset is scored."""
    rows: tuple[int, int]
    unseen: Mapping[str, float]
    """Of each categorical column: the share of synthetic cells whose label the original does not have."""
    discriminator: Discriminator | None = None
    """How well a classifier tells the tables apart, if asked for; None also if a table is too small for it."""
    doubts: tuple[str, ...] = ()
    """Why a good score says nothing: columns that number or name the rows, labels that the original does not have."""

    @property
    def by_combination(self) -> Mapping[tuple[str, ...], Score]:
        """The score of each combination of columns, in the order of the original's columns."""
        return MappingProxyType(dict(zip(self.combinations, self.scores, strict=True)))

    @property
    def by_ways(self) -> Mapping[int, Score]:
        """The mean over the combinations of so many columns."""
        sizes = sorted({len(names) for names in self.combinations})
        return MappingProxyType(
            {ways: self._mean({names for names in self.combinations if len(names) == ways}) for ways in sizes}
        )

    @property
    def by_column(self) -> Mapping[str, Score]:
        """What each column contributes: the mean over the combinations that it takes part in."""
        combinations = {column: {names for names in self.combinations if column in names} for column in self.columns}
        return MappingProxyType({column: self._mean(names) for column, names in combinations.items()})

    def _mean(self, chosen: set[tuple[str, ...]]) -> Score:
        return mean([score for names, score in zip(self.combinations, self.scores, strict=True) if names in chosen])


def accuracy(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    bins: int = 10,
    ways: int | Sequence[int] = (1, 2, 3),
    *,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    limit: int = LIMIT,
    splits: int = SPLITS,
    seed: int = 0,
    discriminator: bool = False,
) -> Accuracy:
    """Compare the cross-tabulations of a synthetic table with those of the original.

    Parameters
    ----------
    original, synthetic
        The tables to compare.
    bins
        The most buckets that a column is put into; they are learned from the original.
    ways
        How many columns a table has: every combination of so many columns is compared.
    columns
        The columns to compare; all by default.
    kinds
        The kind of a column, such as {"code": "categorical"} for numbers that are names.
    limit
        Of more combinations of one size than this a subset is drawn.
    splits
        How many random splits of the original the noise is the mean of.
    seed
        The seed of what is drawn.
    discriminator
        Also train a classifier to tell the tables apart.

    Returns
    -------
    Accuracy
        `tvd`, `l1d`, `hellinger`, and `expected`, the score of a perfect release.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> table = pd.DataFrame({"age": range(100), "town": ["A", "B"] * 50})
    >>> dit.accuracy(table, table).tvd
    0.0
    >>> dit.accuracy(table, table.assign(town="A"), ways=[1], columns=["town"]).tvd
    0.5
    """
    for name, number in (("limit", limit), ("splits", splits)):
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise InputError(f"{name} must be an integer >= 1; got {number!r}")
    aligned = align({"original": original, "synthetic": synthetic}, columns, kinds)
    return compare_columns(aligned, check_bins(bins), ways, Draws(limit, splits, seed), discriminator=discriminator)


@dataclass(frozen=True)
class Draws:
    """What is drawn: at most so many combinations of a size, so many splits of the original, and the seed."""

    limit: int = LIMIT
    splits: int = SPLITS
    seed: int = 0


def compare_columns(
    aligned: Sequence[Column], bins: int, ways: int | Sequence[int], draws: Draws, *, discriminator: bool
) -> Accuracy:
    """Compare the cross-tabulations of columns of the original and of a synthetic table."""
    seed = draws.seed
    parts = [put_in_buckets(column, bins) for column in aligned]
    names = tuple(part.name for part in parts)
    chosen = list(
        itertools.chain.from_iterable(
            _choose_combinations(len(parts), size, draws.limit, seed) for size in _check_ways(ways, len(parts))
        )
    )
    sizes = np.array([part.size for part in parts], np.int64)
    first, second = (collapse_codes(stack_codes(parts, frame), aligned[0].counts_of(frame)) for frame in (0, 1))
    scores = compare(first, second, sizes, chosen)
    total = mean(scores)
    rows = (first.rows, second.rows)
    noise_rows = _split_sizes(*rows)
    noise = mean([mean(_score_split(first, noise_rows, sizes, chosen, (seed, split))) for split in range(draws.splits)])
    levels = expected_distances(first.codes, first.counts, sizes, chosen, rows)
    expected = tuple(Score(l1d, l1d / 2, hellinger) for l1d, hellinger in levels)
    return Accuracy(
        l1d=total.l1d,
        tvd=total.tvd,
        hellinger=total.hellinger,
        noise=noise,
        expected=mean(expected),
        noise_rows=noise_rows,
        columns=_used_columns(parts, chosen),
        combinations=tuple(tuple(names[position] for position in positions) for positions in chosen),
        scores=tuple(scores),
        expected_scores=expected,
        possible=sum(math.comb(len(parts), size) for size in _check_ways(ways, len(parts))),
        rows=rows,
        unseen=MappingProxyType({column.name: share_unseen(column) for column in aligned if column.kind == "categorical"}),
        discriminator=discriminate(aligned, seed) if discriminator else None,
        doubts=tuple(describe_unlike(aligned)),
    )


@dataclass(frozen=True, eq=False)
class CountedCodes:
    """The distinct rows of codes, sorted, and how many rows have each: what is drawn must not depend on the order of rows."""

    codes: Codes
    counts: Ints

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def split(self, order: Ints | Codes, size: int) -> tuple[CountedCodes, CountedCodes]:
        """Take the first so many of all rows in another order, and the rest."""
        is_rest = np.zeros(len(order), bool)
        is_rest[order[size:]] = True
        rest = np.add.reduceat(is_rest, np.cumsum(self.counts) - self.counts, dtype=np.int64)
        return CountedCodes(self.codes, self.counts - rest), CountedCodes(self.codes, rest)


def collapse_codes(codes: Codes, counts: Ints) -> CountedCodes:
    """Collapse rows of codes, each of which stands for counts[n] rows."""
    order = np.lexsort(codes.T)
    codes = codes[order]
    starts = np.ones(len(codes), bool)
    starts[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    return CountedCodes(codes[starts], np.add.reduceat(counts[order], np.flatnonzero(starts)))


def _check_ways(ways: int | Sequence[int], columns: int) -> list[int]:
    """Return the sizes of combinations, ascending, without sizes above the number of columns."""
    sizes = list(ways) if isinstance(ways, Sequence | np.ndarray) else [ways]
    for size in sizes:
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or not 1 <= size <= MOST_WAYS:
            raise InputError(f"ways must be integers from 1 to {MOST_WAYS}; got {size!r}")
    possible = sorted({int(size) for size in sizes if size <= columns})
    if not possible:
        raise InputError(f"ways must name a size that {columns} columns can have; got {sizes!r}")
    return possible


def _choose_combinations(columns: int, size: int, limit: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Return all combinations of a size, or a random subset as large as the limit, sorted."""
    total = math.comb(columns, size)
    if total <= limit:
        return itertools.combinations(range(columns), size)
    rng = seeds.stream(seed, "accuracy", "combinations", size)
    drawn: set[tuple[int, ...]] = set()
    if total <= 4 * limit:
        every = list(itertools.combinations(range(columns), size))
        return iter(sorted(every[position] for position in rng.choice(total, limit, replace=False)))
    while len(drawn) < limit:
        drawn.add(tuple(sorted(rng.choice(columns, size, replace=False).tolist())))
    return iter(sorted(drawn))


def _used_columns(parts: Sequence[BucketedColumn], chosen: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    positions = sorted(set(itertools.chain.from_iterable(chosen)))
    return tuple(parts[position].name for position in positions)


def compare(first: CountedCodes, second: CountedCodes, sizes: Ints, chosen: Sequence[tuple[int, ...]]) -> list[Score]:
    """Score the chosen combinations of two matrices of codes."""
    scores, sides = [], (first.codes, second.codes, first.counts, second.counts)
    for _, group in itertools.groupby(chosen, key=len):
        for l1d, hellinger in divergences(*sides, sizes, np.array(list(group), np.int64)).tolist():
            scores.append(Score(l1d, l1d / 2, hellinger))
    return scores


def mean(scores: Sequence[Score]) -> Score:
    """Return the mean of each of the three distances."""
    count = len(scores)
    l1d = math.fsum(score.l1d for score in scores) / count
    return Score(l1d, l1d / 2, math.fsum(score.hellinger for score in scores) / count)


def _split_sizes(original: int, synthetic: int) -> tuple[int, int]:
    """Return two halves, unless the synthetic table is smaller than half of the original."""
    small = min(synthetic, original // 2)
    return original - small, small


def _score_split(
    original: CountedCodes,
    rows: tuple[int, int],
    sizes: Ints,
    chosen: Sequence[tuple[int, ...]],
    draw: tuple[int, int],
) -> list[Score]:
    """Score two random parts of the original against each other."""
    order = seeds.shuffled(seeds.stream(draw[0], "accuracy", "split", draw[1]), original.rows)
    return compare(*original.split(order, rows[0]), sizes, chosen)
