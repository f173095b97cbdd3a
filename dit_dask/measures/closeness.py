"""Whether synthetic records are closer to the training records than people who were never seen."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, unknown
from dit_dask.measures.buckets import check_bins
from dit_dask.measures.columns import align
from dit_dask.measures.dominance import Comparison, holm, nearer, smaller, smallest_p, tail
from dit_dask.measures.space import DISTANCES, Index, Metric, Neighbours, encode, index, unique_rows

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LEVEL = 0.01
TAILS = (0.01, 0.05)
BLOCK = 10_000
CANNOT_SHOW = (
    "distances to the closest record cannot show that nobody can be recognised or inferred: "
    "decide with the inference test on the synthesizer"
)

Search = Callable[[Index, Iterable["NDArray[np.float64]"]], Iterable[Neighbours]]


@dataclass(frozen=True, eq=False)
class Closeness:
    """Distances of synthetic and of holdout records to their closest training records, and what they tell.

    dcr is the distance to the closest record, nndr that distance divided by the one to the second closest; arrays are in the order
    of the records. `passed` says that no test found synthetic records closer than the holdout, no more than that.
    """

    distance: str
    dcr: "NDArray[np.float64]"
    nndr: "NDArray[np.float64]"
    holdout_dcr: "NDArray[np.float64]"
    holdout_nndr: "NDArray[np.float64]"
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
    training: "pd.DataFrame",
    synthetic: "pd.DataFrame",
    holdout: "pd.DataFrame",
    distance: str = "buckets",
    *,
    bins: int = 10,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    level: float = LEVEL,
    search: Search | None = None,
) -> Closeness:
    """Compare the distances synthetic → training with holdout → training.

    The holdout must come from the same population as the training records and must not have been shown to the synthesizer.
    `distance` is buckets (columns whose buckets differ), gower or euclidean; `bins` is for buckets only. `level` is the
    probability of any false alarm among all tests. `search` finds neighbours block by block, in this process unless another place is given.
    """
    check_bins(bins)
    if distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    if not isinstance(level, float) or not 0 < level < 1:
        raise InputError(f"level must be a number between 0 and 1; got {level!r}")
    aligned = align({"training": training, "synthetic": synthetic, "holdout": holdout}, columns, kinds)
    metric, (known, new, unseen) = encode(aligned, distance, bins)
    find = search or in_turn
    records = index(metric, known)
    mine, theirs = _found(find, records, new), _found(find, records, unseen)
    share = lean(find, metric, (known, unseen), new, level)
    tests = holm([*compare(mine, theirs, level), share], level)
    passed, reason = verdict(tests, len(new), len(unseen), level)
    return Closeness(
        distance=distance,
        dcr=_fixed(mine.first),
        nndr=_fixed(mine.ratio),
        holdout_dcr=_fixed(theirs.first),
        holdout_nndr=_fixed(theirs.ratio),
        ties=float((mine.first == mine.second).mean()),
        holdout_ties=float((theirs.first == theirs.second).mean()),
        share_nearer_training=share.effect,
        share_interval=share.interval,
        tests=tests,
        passed=passed,
        reason=reason,
        level=level,
        share_expected=len(known) / (len(known) + len(unseen)),
    )


def blocks(rows: "NDArray[np.float64]") -> Iterator["NDArray[np.float64]"]:
    """Cut encoded rows so that no step needs memory for all of them."""
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))


def in_turn(records: Index, queries: Iterable["NDArray[np.float64]"]) -> Iterator[Neighbours]:
    """Search one block after the other in this process."""
    return (records.nearest(block) for block in queries)


def _found(find: Search, records: Index, rows: "NDArray[np.float64]") -> Neighbours:
    parts = list(find(records, blocks(rows)))
    return Neighbours(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("first", "second", "place")))


def _fixed(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    values.flags.writeable = False
    return values


def compare(synthetic: Neighbours, holdout: Neighbours, level: float) -> list[Comparison]:
    """Test the distances and the ratios, over all records and among the closest ones."""
    found = []
    for name, mine, theirs in (("dcr", synthetic.first, holdout.first), ("nndr", synthetic.ratio, holdout.ratio)):
        found.append(smaller(name, mine, theirs, level))
        found += [tail(f"{name}, closest {share:.0%}", mine, theirs, share, level) for share in TAILS]
    return found


def lean(
    find: Search,
    metric: Metric,
    sets: tuple["NDArray[np.float64]", "NDArray[np.float64]"],
    queries: "NDArray[np.float64]",
    level: float,
) -> Comparison:
    """Test whether queries lean on the first of two sets; the search does not know which record is in which."""
    pooled = np.concatenate(sets)
    distinct, place, members = unique_rows(pooled)
    inside = np.bincount(place[: len(sets[0])], minlength=len(distinct))
    leaning = np.bincount(_found(find, index(metric, pooled), queries).place, minlength=len(distinct))
    return nearer("nearer to training", leaning, inside, members, level)


def verdict(tests: Sequence[Comparison], synthetic: int, holdout: int, level: float) -> tuple[bool, str]:
    """Say what the tests found; what they cannot show is always said too."""
    if smallest_p(synthetic, holdout) * len(tests) > level:
        few = f"{synthetic} synthetic and {holdout} holdout records are too few to find anything at an overall level of {level:g}"
        return False, f"undecided: {few}; {CANNOT_SHOW}"
    closer = [test for test in tests if test.closer]
    if closer:
        return False, f"synthetic records are closer to the training records than the holdout is: {'; '.join(map(_told, closer))}"
    found = f"none of {len(tests)} tests finds synthetic records closer to the training records than the holdout is"
    return True, f"{found} (overall level {level:g}); {CANNOT_SHOW}"


def _told(test: Comparison) -> str:
    low, high = test.interval
    return f"{test.name}: effect {test.effect:.3g} ({low:.3g} to {high:.3g}), p = {test.adjusted:.2g}"


def described(result: Closeness) -> dict[str, Any]:
    """The figures of a result without its records."""
    return {
        "passed": result.passed,
        "reason": result.reason,
        "identical": result.identical,
        "holdout_identical": result.holdout_identical,
        "ties": result.ties,
        "holdout_ties": result.holdout_ties,
        "share_nearer_training": result.share_nearer_training,
        "share_interval": list(result.share_interval),
        "share_expected": result.share_expected,
    }
