"""Whether synthetic records are nearer to the training records than to records that the synthesizer has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.errors import InputError, unknown
from dit_dask.measures.synthetic.buckets import check_bins
from dit_dask.measures.synthetic.columns import Column, align
from dit_dask.measures.synthetic.dominance import Effect, smaller, tail, wilson
from dit_dask.measures.synthetic.guards import SHARED_LEVEL, count_shared, describe_unseen, find_identifiers
from dit_dask.measures.synthetic.memorised import SEED, Findings, Planting, choose_planted, judge_findings
from dit_dask.measures.synthetic.pool import Pool, View, build_pool
from dit_dask.measures.synthetic.relabelling import FamilyResult, Relabelling
from dit_dask.measures.synthetic.space import DISTANCES, Index, Metric, Neighbours, build_index, encode, join_blocks

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Floats, Ints

LEVEL = 0.01
LEAST_LEVEL = 0.0001  # ten relabellings must reach it by chance: their number would take hours
TAILS = (0.01, 0.05)
BLOCK = 10_000
VIEW_RECORDS = 10_000
PLANTED = 1_000
LARGEST_LEAK = 0.5
CANNOT_SHOW = (
    "distances to the closest record cannot show that nobody can be recognised or inferred: "
    "decide with the inference test on the synthesizer"
)

Piece = tuple[str, int, int]
"""Which search (synthetic, holdout, planted, or the number of a view), and which of its records."""


@dataclass(frozen=True, eq=False)
class Records:
    """The encoded records of all three tables, and what the verdict looks at."""

    metric: Metric
    training: Floats
    synthetic: Floats
    holdout: Floats
    pool: Pool
    doubts: tuple[str, ...] = ()
    """Reasons why nothing can be passed."""
    is_judged: bool = True
    """Whether any column is left that does not number or name the rows."""
    _indexes: dict[View, Index] = field(default_factory=dict, repr=False)

    @cached_property
    def training_index(self) -> Index:
        """Index the training records."""
        return build_index(self.metric, self.training)

    @cached_property
    def planted(self) -> Ints:
        """Return the positions of the real records that are copied on trial."""
        return choose_planted(self.pool, PLANTED)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the indexes out: workers build those that they need."""
        return {name: value for name, value in self.__dict__.items() if name != "training_index"} | {"_indexes": {}}

    def view_records(self, view: View) -> Ints:
        """Return the synthetic records that are searched in a view: a seeded sample of them in a part of the columns."""
        total = len(self.synthetic)
        if total <= VIEW_RECORDS or len(view.columns) == len(self.pool.names):
            return np.arange(total)
        rng = seeds.stream(SEED, "closeness", "records")
        return np.sort(rng.choice(total, VIEW_RECORDS, replace=False))

    def pieces(self) -> list[Piece]:
        """Cut all searches into blocks of records, so that no step needs memory for all of them."""
        sizes = {"synthetic": len(self.synthetic), "holdout": len(self.holdout), "planted": len(self.planted)}
        sizes |= {str(number): len(self.view_records(view)) for number, view in enumerate(self.pool.views)}
        return [(name, start, min(size, start + BLOCK)) for name, size in sizes.items() for start in range(0, size, BLOCK)]

    def search(self, piece: Piece) -> Neighbours:
        """Find the neighbours of one block."""
        name, start, stop = piece
        if name in ("synthetic", "holdout"):
            queries: Floats = getattr(self, name)
            return self.training_index.nearest(queries[start:stop])
        view = self.pool.views[0 if name == "planted" else int(name)]
        metric, real, synthetic = self.pool.rows(view)
        if view not in self._indexes:
            if len(self._indexes) > 1:
                self._indexes.clear()
            self._indexes[view] = build_index(metric, real)
        chosen = real[self.planted[start:stop]] if name == "planted" else synthetic[self.view_records(view)[start:stop]]
        return self._indexes[view].nearest(chosen)


def search_in_process(records: Records) -> Sequence[Neighbours]:
    """Search all pieces one after the other in this process."""
    return [records.search(piece) for piece in records.pieces()]


@dataclass(frozen=True)
class Comparison:
    """One family of tests: the share of training records among those found nearest, in its worst statistic.

    `expected` is training's share of all real records, `p` before and `adjusted` after the correction for all tests.
    """

    name: str
    effect: float
    expected: float
    interval: tuple[float, float]
    p: float
    adjusted: float
    closer: bool
    """Whether the corrected p is at most the overall level."""


@dataclass(frozen=True, eq=False)
class Closeness:
    """Whether synthetic records are nearer to training records than chance explains, and distances as a description.

    dcr is the distance to the closest training record, nndr that distance divided by the one to the second closest; arrays are
    in the order of the records. `passed` is True if no test finds memorised records and a leak could have been found, False if
    a test finds some, None if nothing can be decided.
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
    effects: tuple[Effect, ...]
    """How much smaller the distances of synthetic records to training are than the holdout's: a description, not a test."""
    smallest_leak: float | None
    """The smallest share of copied training records that would have been found; None if none would, or if something was."""
    shared: int
    """How many holdout records equal a training record."""
    passed: bool | None
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
    """Test whether synthetic records are nearer to training than to the holdout; `search` runs the pieces."""
    checked = check_level(level)
    records = encode_tables({"training": training, "synthetic": synthetic, "holdout": holdout}, distance, bins, columns, kinds)
    return conclude(records, search(records), checked)


def encode_tables(
    frames: Mapping[str, pd.DataFrame],
    distance: str,
    bins: int,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Records:
    """Check the three tables and encode them for a distance; columns that number the rows are not judged."""
    if distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    bins = check_bins(bins)
    aligned = align(frames, columns, kinds)
    metric, (training, synthetic, holdout) = encode(aligned, distance, bins)
    identifiers = find_identifiers(aligned)
    judged = [column for column in aligned if column.name not in identifiers]
    pool, doubts = build_pool(judged or aligned, distance, bins, SEED), _find_doubts(judged, identifiers)
    return Records(metric, training, synthetic, holdout, pool, doubts, bool(judged))


def _find_doubts(judged: Sequence[Column], identifiers: Sequence[str]) -> tuple[str, ...]:
    numbered = [
        f"column {name!r} numbers or names the rows, so it is not compared: leave it out with columns" for name in identifiers
    ]
    return (*numbered, *describe_unseen(judged))


def check_level(level: Any, where: str = "level") -> float:
    """Accept a probability of false alarm."""
    if not isinstance(level, int | float | np.number) or isinstance(level, bool) or not LEAST_LEVEL <= level < 1:
        raise InputError(f"{where} must be a number from {LEAST_LEVEL:g} to below 1; got {level!r}")
    return float(level)


def conclude(records: Records, results: Sequence[Neighbours], level: float, doubt: str = "") -> Closeness:
    """Combine the pieces, given in their order, and test them; with a doubt nothing passes."""
    parts: dict[str, list[Neighbours]] = {}
    for (name, _, _), part in zip(records.pieces(), results, strict=True):
        parts.setdefault(name, []).append(part)
    joined = {name: join_blocks(blocks) for name, blocks in parts.items()}
    of_synthetic, of_holdout = joined["synthetic"], joined["holdout"]
    views = {view: joined[str(number)] for number, view in enumerate(records.pool.views)}
    findings = Findings(records.pool, views, joined["planted"])
    relabelling = Relabelling.of(records.pool.is_training, level, SEED)
    judgement, near, density = judge_findings(findings, relabelling)
    expected = relabelling.chosen / len(relabelling.is_training)
    tests = tuple(_compare(result, expected, level) for result in judgement.families if records.is_judged)
    shared, shared_p = count_shared(records.pool.codes, relabelling)
    leak = None
    if judgement.p > level and records.is_judged:
        leak = Planting(near, density, records.planted, joined["planted"], relabelling, judgement, level).smallest_leak()
    doubts = [*records.doubts, *([doubt] if doubt else [])]
    if shared_p <= SHARED_LEVEL:
        doubts.append(
            f"{shared:,} of {len(records.holdout):,} holdout records equal a training record, more than chance explains"
        )
    passed, reason = verdict(tests, leak, doubts, level)
    weight = findings.nearness(records.pool.views[int(records.metric.name != "gower")]).shares
    share = float(weight[records.pool.is_training].sum() / weight.sum())
    return Closeness(
        distance=records.metric.name,
        dcr=_make_read_only(of_synthetic.first),
        nndr=_make_read_only(of_synthetic.ratio),
        holdout_dcr=_make_read_only(of_holdout.first),
        holdout_nndr=_make_read_only(of_holdout.ratio),
        ties=float((of_synthetic.first == of_synthetic.second).mean()),
        holdout_ties=float((of_holdout.first == of_holdout.second).mean()),
        share_nearer_training=share,
        share_expected=expected,
        share_interval=wilson(share, float(weight.sum() ** 2 / (weight**2).sum()), level),
        tests=tests,
        effects=tuple(describe(of_synthetic, of_holdout, level)),
        smallest_leak=leak,
        shared=shared,
        passed=passed,
        reason=reason,
        level=level,
    )


def _make_read_only(values: Floats) -> Floats:
    values.flags.writeable = False
    return values


def _compare(result: FamilyResult, expected: float, level: float) -> Comparison:
    name = result.what if result.what.startswith(result.family) else f"{result.family}: {result.what}"
    interval = wilson(result.share, result.trials, level)
    return Comparison(name, result.share, expected, interval, result.p, result.adjusted, result.adjusted <= level)


def describe(synthetic: Neighbours, holdout: Neighbours, level: float) -> list[Effect]:
    """Compare the distances and the ratios, over all records and among the closest ones."""
    effects = []
    for name, of_synthetic, of_holdout in (("dcr", synthetic.first, holdout.first), ("nndr", synthetic.ratio, holdout.ratio)):
        effects.append(smaller(name, of_synthetic, of_holdout, level))
        effects += [tail(f"{name}, closest {share:.0%}", of_synthetic, of_holdout, share, level) for share in TAILS]
    return effects


def verdict(tests: Sequence[Comparison], leak: float | None, doubts: Sequence[str], level: float) -> tuple[bool | None, str]:
    """Return True (nothing found), False (found) or None (undecided), and the reason with what the tests cannot show."""
    closer = [test for test in tests if test.closer]
    if closer:
        descriptions = "; ".join(map(_describe_test, closer))
        return False, f"synthetic records are nearer to training records than chance explains: {descriptions}"
    if leak is None or leak > LARGEST_LEAK:
        most = "copies of training records in every place" if leak is None else f"fewer than {leak:.1%} copied records"
        doubts = [
            *doubts,
            f"the tables are too small or too coarse: {most} would not be found at an overall level of {level:g}",
        ]
    if doubts:
        return None, f"undecided: {'; '.join(doubts)}; {CANNOT_SHOW}"
    result = f"none of {len(tests)} kinds of tests finds synthetic records nearer to training than to the holdout"
    smallest = f"copies of training records would have been found if they were {leak:.2%} of the records or more"
    return True, f"{result} (overall level {level:g}); {smallest}; {CANNOT_SHOW}"


def _describe_test(test: Comparison) -> str:
    low, high = test.interval
    found = f"{test.effect:.1%} ({low:.1%} to {high:.1%}) are training records where {test.expected:.1%} are expected"
    return f"{test.name}: {found}, p = {test.adjusted:.2g}"
