"""What utility compares a release with: the frequencies of the original table, and the true answers of random queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.values.bins import equal_frequency
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

MOST_BUCKETS = 10
MOST_PAIRS = 36  # of columns, for 2-way tables: all pairs of nine columns
QUERIES = 200


@dataclass(frozen=True, eq=False)
class Buckets:
    """At most MOST_BUCKETS groups of codes: of[code] is a group; group g has the codes first[g]..last[g].

    `has_rest`: one more group has the codes that are in no other.
    """

    of: Ints
    first: Ints
    last: Ints
    has_rest: bool

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.first) + self.has_rest


@dataclass(frozen=True)
class Query:
    """How many rows have codes first..last of each of one or two attributes; `spans` has (attribute, first, last)."""

    spans: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Original:
    """The original table, counted once for all releases of it.

    The last of the buckets and of the marginals are those of the sensitive attribute; tables[p] is of the columns pairs[p].
    """

    rows: int
    buckets: Sequence[Buckets]
    marginals: Sequence[Floats]
    pairs: Sequence[tuple[int, int]]
    tables: Sequence[Floats]
    queries: Sequence[Query]
    answers: Floats


@lru_cache(maxsize=2)
def count_original(table: Table, seed: int) -> Original:
    """Count the marginals and 2-way tables of a table in buckets, and answer random queries on it."""
    attributes, columns = table.schema.quasi_identifiers, np.ascontiguousarray(table.codes.T)
    sizes = [len(attribute.levels) for attribute in attributes]
    weights = [np.bincount(codes, table.weights, size).astype(np.int64) for codes, size in zip(columns, sizes, strict=True)]
    secrets = np.bincount(table.secret, table.weights, len(table.schema.sensitive.levels)).astype(np.int64)
    buckets = [*map(_bucket, attributes, weights), _most_common(secrets)]
    of_record = [bucket.of[codes] for bucket, codes in zip(buckets, (*columns, table.secret), strict=True)]
    pairs = choose_pairs(len(buckets), seed)
    queries = draw_queries(sizes, seed)
    return Original(
        table.rows,
        buckets,
        [
            np.bincount(bucket.of, each, bucket.count).astype(np.float64)
            for bucket, each in zip(buckets, (*weights, secrets), strict=True)
        ],
        pairs,
        [_cross(of_record, buckets, pair, table.weights) for pair in pairs],
        queries,
        np.array([_answer(query, columns, table.weights) for query in queries]),
    )


def _bucket(attribute: Attribute, weights: Ints) -> Buckets:
    """Numbers, dates and ordered labels: bins of equal frequency; other labels: the most common, and the rest."""
    if attribute.values is None:
        return _most_common(weights)
    of = equal_frequency(weights, MOST_BUCKETS).astype(np.int64)
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    return Buckets(of, starts, np.append(starts[1:], len(of)) - 1, has_rest=False)


def _most_common(weights: Ints) -> Buckets:
    size = len(weights)
    if size <= MOST_BUCKETS:
        return Buckets(np.arange(size), np.arange(size), np.arange(size), has_rest=False)
    common = np.sort(np.argsort(-weights, kind="stable")[: MOST_BUCKETS - 1])
    of = np.full(size, MOST_BUCKETS - 1, np.int64)
    of[common] = np.arange(MOST_BUCKETS - 1)
    return Buckets(of, common, common, has_rest=True)


def choose_pairs(columns: int, seed: int) -> list[tuple[int, int]]:
    """All pairs of columns, or so many at random where there are more."""
    pairs = list(combinations(range(columns), 2))
    if len(pairs) <= MOST_PAIRS:
        return pairs
    chosen = seeds.stream(seed, "utility", "pairs").choice(len(pairs), MOST_PAIRS, replace=False)
    return [pairs[place] for place in np.sort(chosen)]


def draw_queries(sizes: Sequence[int], seed: int) -> list[Query]:
    """Draw ranges of two attributes each: both the attributes and the ends of the ranges are uniform."""
    rng = seeds.stream(seed, "utility", "queries")
    queries = []
    for _ in range(QUERIES):
        chosen = np.sort(rng.choice(len(sizes), min(2, len(sizes)), replace=False))
        ends = [np.sort(rng.integers(sizes[attribute], size=2)) for attribute in chosen]
        spans = zip(chosen, ends, strict=True)
        queries.append(Query(tuple((int(attribute), int(low), int(high)) for attribute, (low, high) in spans)))
    return queries


def _answer(query: Query, columns: Codes, weights: Ints) -> int:
    inside = np.ones(len(weights), bool)
    for attribute, first, last in query.spans:
        codes = columns[attribute]
        inside &= (first <= codes) & (codes <= last)
    return int(weights[inside].sum())


def _cross(of_record: Sequence[Ints], buckets: Sequence[Buckets], pair: tuple[int, int], weights: Ints) -> Floats:
    (one, other), width = pair, buckets[pair[1]].count
    shape = buckets[one].count, width
    counted = np.bincount(of_record[one] * width + of_record[other], weights, shape[0] * width)
    return counted.reshape(shape).astype(np.float64)
