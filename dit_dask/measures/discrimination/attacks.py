"""The attacks of the discrimination-rate deck, each as a profile of what a release tells about a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.discrimination.contingency import ContingencyTable, Profile, combined, entropy_of, summed
from dit_dask.measures.discrimination.published import Members, Published, members
from dit_dask.values.release import Release
from dit_dask.values.schema import MIN_DISCLOSED_COUNT, Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Floats, Ints

ATTACKS = ("identity", "homogeneity", "background-knowledge", "skewness", "semantic")
KNOWLEDGE = ("black-box", "grey-box", "white-box")
MOST_COMBINATIONS = 2**24


@dataclass(frozen=True, eq=False)
class Attacked:
    """What an attack found: the profile over published values, the joint it came from if there is one, and what to add."""

    published: Published
    profile: Profile
    joint: ContingencyTable | None
    more: Mapping[str, Any]


def homogeneity(release: Release, places: Sequence[int], groups: Ints | None, estimator: str) -> Attacked:
    """X is the sensitive attribute, read through groups if given; Y the published values of the keys."""
    published = Published.of(release, places)
    holder, secret = np.nonzero(release.counts)
    joint = ContingencyTable.of(published.group[holder], secret, release.counts[holder, secret])
    joint = joint if groups is None else joint.grouped(groups)
    return Attacked(published, joint.profile(estimator), joint, {})


def skewness(
    release: Release, places: Sequence[int], estimator: str, min_disclosed_count: int = MIN_DISCLOSED_COUNT
) -> Attacked:
    """Try the partition {v, rest} for every sensitive value v that is there; report the one that is told most about."""
    plain = homogeneity(release, places, None, estimator)
    assert plain.joint is not None  # noqa: S101 - homogeneity always counts  # nosec B101
    levels, held = release.schema.sensitive.levels, release.counts.sum(axis=0)
    found = []
    for value in np.flatnonzero(held):
        joint = plain.joint.grouped((np.arange(len(levels)) != value).astype(np.int64))
        found.append((joint.profile(estimator), joint, value))
    best = max(range(len(found)), key=lambda place: found[place][0].rate.value)
    lines = [
        {
            "value": levels[value] if held[value] >= min_disclosed_count else None,
            "count": int(held[value]),
            "rate": profile.rate.value,
        }
        for profile, _, value in found
    ]
    profile, joint, _ = found[best]
    return replace(plain, profile=profile, joint=joint, more={"worst": lines[best], "partitions": lines})


def white_box(release: Release, table: Table, places: Sequence[int], estimator: str) -> tuple[Attacked, Members]:
    """X is the original tuple of the keys and Y the published one, as they really occur together."""
    published, held = Published.of(release, places), members(release, table)
    original = combined([table.codes[:, place].astype(np.int64) for place in places])[held.record]
    weight = table.weights[held.record] * held.share
    weight = weight.round().astype(np.int64) if held.exact else weight
    joint = ContingencyTable.of(published.group[held.holder], original, weight)
    more = {} if held.exact else {"assignment": "records that several classes cover are shared out among them"}
    return Attacked(published, joint.profile(estimator), joint, more), held


def guessed(release: Release, places: Sequence[int], known: Sequence[Floats | None]) -> Attacked:
    """X is guessed from what is published: evenly over the covered values, or as a known table has them."""
    published = Published.of(release, places)
    combinations = math.prod(len(attribute.levels) for attribute in published.attributes)
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"black-box and grey-box need at most {MOST_COMBINATIONS:,} combinations of the keys' values; "
            f"got {combinations:,} (name fewer keys, or use white-box)"
        )
    count = summed(published.group, release.counts.sum(axis=1), len(published.first))
    beliefs = [
        _belief(sets, weights)[value[published.first]]
        for sets, value, weights in zip(published.coverage, published.value, known, strict=True)
    ]
    conditional = np.zeros(len(count))
    for belief in beliefs:  # independent given the published values, so entropies add up
        conditional -= (belief * np.log2(np.where(belief > 0, belief, 1.0))).sum(axis=1)
    marginal = _mixture(count / count.sum(), beliefs)
    return Attacked(published, Profile.mixed(entropy_of(marginal), count, np.maximum(0.0, conditional)), None, {})


def _belief(sets: Bools, weights: Floats | None) -> Floats:
    """Return (values, levels): what is believed about a level where a value is published."""
    believed = sets.astype(float) if weights is None else sets * weights
    nothing = believed.sum(axis=1) == 0
    believed[nothing] = sets[nothing]
    share: Floats = believed / believed.sum(axis=1, keepdims=True)
    return share


def _mixture(shares: Floats, beliefs: Sequence[Floats]) -> Floats:
    """Return the (combinations,) marginal: the products of beliefs, averaged over groups, a few groups at a time."""
    half = len(beliefs) // 2
    widths = [math.prod(belief.shape[1] for belief in part) for part in (beliefs[:half], beliefs[half:])]
    total = np.zeros(widths)
    step = max(1, MOST_COMBINATIONS // sum(widths))
    for start in range(0, len(shares), step):
        block = slice(start, start + step)
        left = shares[block, None]
        for belief in beliefs[:half]:
            left = (left[:, :, None] * belief[block, None, :]).reshape(len(left), -1)
        right = np.ones((len(left), 1))
        for belief in beliefs[half:]:
            right = (right[:, :, None] * belief[block, None, :]).reshape(len(left), -1)
        total += left.T @ right
    return total.ravel()


def frequencies(attribute: Attribute, cells: pd.Series[Any], where: str) -> Floats:
    """Return (levels,): how often another table has each level; other values are not possible here and do not count."""
    import pandas as pd

    cells = cells.dropna()
    if attribute.kind == "numeric":
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.isna().any():
            raise InputError(f"{where}: the column {attribute.name!r} must be numbers, as in the table under audit")
        found = numbers.value_counts().reindex(pd.Index(attribute.levels), fill_value=0)
    else:
        found = cells.astype(str).value_counts().reindex(list(attribute.levels), fill_value=0)
    return found.to_numpy().astype(np.float64)
