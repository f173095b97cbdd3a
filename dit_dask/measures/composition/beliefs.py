"""What an adversary believes who combines two releases, with a person in both tables and left out of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import counts_about, shares_of
from dit_dask.encoders.tf import TF
from dit_dask.engines.brute_force import releases_without
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints
    from dit_dask.values.schema import Secret
    from dit_dask.values.table import Table

ADVERSARIES = ("intersection", "evidence")


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two tables with its procedure and release; levels[n] are the places of the common sensitive values in it."""

    table: Table
    procedure: ReleaseProcedure
    release: Release
    levels: Ints

    def known(self, release: Release, target: Codes) -> tuple[Floats, Floats, Floats]:
        """Return (n,) each of the common values: counts of the target's classes, naive Bayes' beliefs, shares of all."""
        counts = counts_about(release, target).sum(axis=0)
        beliefs = BernoulliNB().beliefs(release, TF(), target)
        shares = shares_of(release.counts)
        return _take(counts.astype(float), self.levels), _take(beliefs, self.levels), _take(shares, self.levels)


def common_levels(first: Secret, second: Secret) -> tuple[Ints, Ints]:
    """Return for each value of the first table its place in the first and in the second; -1 where the second has none.

    A value that only the second table has cannot be that of a person in both, unless it has changed.
    """
    places = {level: place for place, level in enumerate(second.levels)}
    return np.arange(len(first.levels)), np.array([places.get(level, -1) for level in first.levels])


def _take(values: Floats, places: Ints) -> Floats:
    return np.where(places >= 0, values[places], 0.0)


def combine_counts(first: Floats, second: Floats) -> Floats:
    """Return (n,): the shares among the persons who can be in both classes, at most the smaller count of each value.

    Where no value is in both, the mean of the two shares.
    """
    common = np.minimum(first, second)
    return common / common.sum() if common.any() else _mean(first, second)


def combine_evidence(beliefs: Sequence[Floats], shares: Sequence[Floats]) -> Floats:
    """Return (n,): naive Bayes on both: the prior of both releases times what each adds to its own prior."""
    prior = (shares[0] + shares[1]) / 2
    ratios = [
        np.divide(one, share, out=np.zeros_like(one), where=share > 0) for one, share in zip(beliefs, shares, strict=True)
    ]
    product = prior * ratios[0] * ratios[1]
    return product / product.sum() if product.any() else _mean(*beliefs)


def _mean(first: Floats, second: Floats) -> Floats:
    """The mean of two distributions, of which one may be empty on the common values."""
    shares = [one / one.sum() for one in (first, second) if one.any()]
    mean: Floats = np.mean(shares, axis=0) if shares else np.full(len(first), 1 / len(first))
    return mean


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs[2, n] of the two adversaries from both releases, and from each alone."""

    both: Floats
    alone: tuple[Floats, Floats]


def believe(sides: Sequence[Side], releases: Sequence[Release], targets: Sequence[Codes]) -> Beliefs:
    """Learn about one person from two releases; targets are its quasi-identifiers in each table."""
    known = [side.known(release, target) for side, release, target in zip(sides, releases, targets, strict=True)]
    counts, beliefs, shares = zip(*known, strict=True)
    both = np.array([combine_counts(*counts), combine_evidence(beliefs, shares)])
    alone = [np.array([_mean(count, count), _mean(belief, belief)]) for count, belief in zip(counts, beliefs, strict=True)]
    return Beliefs(both, (alone[0], alone[1]))


def measure_removals(sides: Sequence[Side], records: Sequence[Ints]) -> Floats:
    """Return (pairs, 4): d of both adversaries from both releases, then the larger one of each release alone.

    A pair of records is of one person, who is left out of both tables; NaN where a sanitizer failed without the person.
    """
    procedure = sides[0].procedure
    found = np.full((len(records[0]), 4), np.nan)
    removed = [releases_without(side.table, own.tolist(), side.procedure) for side, own in zip(sides, records, strict=True)]
    for place, without in enumerate(zip(*removed, strict=True)):
        left = [release for release in without if isinstance(release, Release)]
        if len(left) < len(sides):
            continue
        targets = [side.table.codes[own[place]] for side, own in zip(sides, records, strict=True)]
        before, after = believe(sides, [side.release for side in sides], targets), believe(sides, left, targets)
        codes = np.repeat(targets[0][None], 2, axis=0)

        def distance(full: Floats, less: Floats, codes: Codes = codes) -> Floats:
            return procedure.distance(procedure.weigh(full, codes), procedure.weigh(less, codes))

        found[place, :2] = distance(before.both, after.both)
        found[place, 2:] = [distance(*pair).max() for pair in zip(before.alone, after.alone, strict=True)]
    return found
