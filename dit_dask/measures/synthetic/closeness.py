"""Whether synthetic records are closer to the training records than records that the synthesizer has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, unknown
from dit_dask.measures.synthetic.buckets import check_bins
from dit_dask.measures.synthetic.columns import align
from dit_dask.measures.synthetic.dominance import Comparison, holm, nearer, smaller, smallest_p, tail
from dit_dask.measures.synthetic.space import (
    DISTANCES,
    Index,
    Metric,
    Neighbours,
    build_index,
    encode,
    join_blocks,
    unique_rows,
)

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Floats

LEVEL = 0.01
TAILS = (0.01, 0.05)
BLOCK = 10_000
CANNOT_SHOW = (
    "distances to the closest record cannot show that nobody can be recognised or inferred: "
    "decide with the inference test on the synthesizer"
)

Piece = tuple[str, int, int]
"""Whose records (a key of SEARCHES) are looked up, and which of them."""


@dataclass(frozen=True, eq=False)
class Records:
    """The encoded records of all three tables, and the trees that neighbours are searched in."""

    metric: Metric
    training: Floats
    synthetic: Floats
    holdout: Floats

    @cached_property
    def training_index(self) -> Index:
        """Index the training records."""
        return build_index(self.metric, self.training)

    @cached_property
    def pooled_index(self) -> Index:
        """Index training and holdout together, without a mark of which record is in which."""
        return build_index(self.metric, np.concatenate([self.training, self.holdout]))

    def pieces(self) -> list[Piece]:
        """Cut all searches into blocks of records."""
        return cut({name: len(getattr(self, queries)) for name, (queries, _) in SEARCHES.items()})

    def search(self, piece: Piece) -> Neighbours:
        """Find the neighbours of one block."""
        name, start, stop = piece
        queries, among = SEARCHES[name]
        searched: Index = getattr(self, among)
        return searched.nearest(getattr(self, queries)[start:stop])


SEARCHES = {
    "synthetic": ("synthetic", "training_index"),
    "holdout": ("holdout", "training_index"),
    "pooled": ("synthetic", "pooled_index"),
}


def cut(sizes: Mapping[str, int]) -> list[Piece]:
    """Cut each search of so many records into blocks, so that no step needs memory for all of them."""
    return [(name, start, min(size, start + BLOCK)) for name, size in sizes.items() for start in range(0, size, BLOCK)]


def search_in_process(records: Records) -> Sequence[Neighbours]:
    """Search all pieces one after the other in this process."""
    return [records.search(piece) for piece in records.pieces()]


@dataclass(frozen=True, eq=False)
class Closeness:
    """Distances of synthetic and of holdout records to their closest training records, and tests of them.

    dcr is the distance to the closest record, nndr that distance divided by the one to the second closest; arrays are in the
    order of the records. `passed` says that no test found synthetic records closer than the holdout, no more than that.
    """

    distance: str
    dcr: Floats
    nndr: Floats
    holdout_dcr: Floats
    holdout_nndr: Floats
    ties: float
    """The share of synthetic records whose nearest two training records are equally far; likewise of the holdout."""
    holdout_ties: float
    share_nearer_training: float
    """The share of synthetic records whose nearest record, of training and holdout together, is a training record."""
    share_expected: float
    """That share if the synthesizer had not seen who is in training: training's share of both."""
    share_interval: tuple[float, float]
    tests: tuple[Comparison, ...]
    passed: bool
    reason: str
    level: float

    @property
    def identical(self) -> float:
        """The share of synthetic records at distance zero from a training record."""
        return float((self.dcr == 0).mean())

    @property
    def holdout_identical(self) -> float:
        """The share of holdout records at distance zero from a training record: what chance alone does."""
        return float((self.holdout_dcr == 0).mean())


def closeness(
    training: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    distance: str = "buckets",
    *,
    bins: int = 10,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    level: float = LEVEL,
    search: Callable[[Records], Sequence[Neighbours]] = search_in_process,
) -> Closeness:
    """Compare the distances synthetic → training with holdout → training; `search` runs the pieces."""
    records = encode_tables({"training": training, "synthetic": synthetic, "holdout": holdout}, distance, bins, columns, kinds)
    return conclude(records, search(records), check_level(level))


def encode_tables(
    frames: Mapping[str, pd.DataFrame],
    distance: str,
    bins: int,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Records:
    """Check the three tables and encode them for a distance."""
    if distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    metric, rows = encode(align(frames, columns, kinds), distance, check_bins(bins))
    return Records(metric, *rows)


def check_level(level: Any) -> float:
    """Accept a probability of false alarm."""
    if not isinstance(level, float) or not 0 < level < 1:
        raise InputError(f"level must be a number between 0 and 1; got {level!r}")
    return level


def conclude(records: Records, results: Sequence[Neighbours], level: float) -> Closeness:
    """Combine the pieces, given in their order, and test the distances."""
    parts = {
        name: [part for (role, _, _), part in zip(records.pieces(), results, strict=True) if role == name] for name in SEARCHES
    }
    of_synthetic, of_holdout, pooled = (join_blocks(parts[name]) for name in SEARCHES)
    distinct, group, members = unique_rows(np.concatenate([records.training, records.holdout]))
    inside = np.bincount(group[: len(records.training)], minlength=len(distinct))
    share = nearer("nearer to training", np.bincount(pooled.row, minlength=len(distinct)), inside, members, level)
    tests = holm([*compare(of_synthetic, of_holdout, level), share], level)
    passed, reason = verdict(tests, len(records.synthetic), len(records.holdout), level)
    return Closeness(
        distance=records.metric.name,
        dcr=_make_read_only(of_synthetic.first),
        nndr=_make_read_only(of_synthetic.ratio),
        holdout_dcr=_make_read_only(of_holdout.first),
        holdout_nndr=_make_read_only(of_holdout.ratio),
        ties=float((of_synthetic.first == of_synthetic.second).mean()),
        holdout_ties=float((of_holdout.first == of_holdout.second).mean()),
        share_nearer_training=share.effect,
        share_expected=len(records.training) / (len(records.training) + len(records.holdout)),
        share_interval=share.interval,
        tests=tests,
        passed=passed,
        reason=reason,
        level=level,
    )


def _make_read_only(values: Floats) -> Floats:
    values.flags.writeable = False
    return values


def compare(synthetic: Neighbours, holdout: Neighbours, level: float) -> list[Comparison]:
    """Test the distances and the ratios, over all records and among the closest ones."""
    comparisons = []
    for name, of_synthetic, of_holdout in (("dcr", synthetic.first, holdout.first), ("nndr", synthetic.ratio, holdout.ratio)):
        comparisons.append(smaller(name, of_synthetic, of_holdout, level))
        comparisons += [tail(f"{name}, closest {share:.0%}", of_synthetic, of_holdout, share, level) for share in TAILS]
    return comparisons


def verdict(tests: Sequence[Comparison], synthetic: int, holdout: int, level: float) -> tuple[bool, str]:
    """Return whether no test found a difference, and the reason, which always states what the tests cannot show."""
    if smallest_p(synthetic, holdout) * len(tests) > level:
        few = (
            f"{synthetic} synthetic and {holdout} holdout records are too few to find anything at an overall level of {level:g}"
        )
        return False, f"undecided: {few}; {CANNOT_SHOW}"
    closer = [test for test in tests if test.closer]
    if closer:
        descriptions = "; ".join(map(_describe_test, closer))
        return False, f"synthetic records are closer to the training records than the holdout is: {descriptions}"
    result = f"none of {len(tests)} tests finds synthetic records closer to the training records than the holdout is"
    return True, f"{result} (overall level {level:g}); {CANNOT_SHOW}"


def _describe_test(test: Comparison) -> str:
    low, high = test.interval
    return f"{test.name}: effect {test.effect:.3g} ({low:.3g} to {high:.3g}), p = {test.adjusted:.2g}"
