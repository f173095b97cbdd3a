"""Attacks on a release, each as a profile of how far published values determine a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.discrimination.contingency import (
    ContingencyTable,
    Profile,
    compute_entropy,
    number_combinations,
    sum_by_code,
)
from dit_dask.measures.discrimination.histogram import CountHistogram, Rate, compute_rate
from dit_dask.measures.discrimination.published import Members, Published, find_members
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Floats, Ints

ATTACKS = ("identity", "homogeneity", "background-knowledge", "skewness", "semantic")
KNOWLEDGE = ("black-box", "grey-box", "white-box")
MAX_COMBINATIONS = 2**24


@dataclass(frozen=True, eq=False)
class AttackResult:
    """The profile over published values, the table it was counted from if there is one, and more for measures.json."""

    published: Published
    profile: Profile
    contingency: ContingencyTable | None
    more: Mapping[str, Any]


def homogeneity(release: Release, positions: Sequence[int], groups: Ints | None, estimator: str) -> AttackResult:
    """X is the sensitive attribute, by groups if given; Y the published values of the keys."""
    published = Published.of(release, positions)
    holder, secret = np.nonzero(release.counts)
    contingency = ContingencyTable.of(published.group[holder], secret, release.counts[holder, secret])
    contingency = contingency if groups is None else contingency.group_values(groups)
    return AttackResult(published, contingency.profile(estimator), contingency, {})


def skewness(release: Release, positions: Sequence[int], estimator: str) -> AttackResult:
    """Try the partition {v, rest} for every sensitive value v that occurs; report the one with the highest rate."""
    plain = homogeneity(release, positions, None, estimator)
    assert plain.contingency is not None  # noqa: S101 - homogeneity always counts  # nosec B101
    levels, totals = release.schema.sensitive.levels, release.counts.sum(axis=0)
    rates = partition_rates(plain.contingency, estimator)
    lines = [{"value": levels[value], "count": int(totals[value]), "rate": rate.value} for value, rate in rates.items()]
    worst = max(rates, key=lambda value: rates[value].value)
    contingency = plain.contingency.group_values((np.arange(len(levels)) != worst).astype(np.int64))
    more = {"worst": lines[list(rates).index(worst)], "partitions": lines}
    return replace(plain, profile=contingency.profile(estimator), contingency=contingency, more=more)


def partition_rates(table: ContingencyTable, estimator: str) -> dict[int, Rate]:
    """Return the rate of each partition {value, rest}, by the value; counts must be whole rows."""
    keys, values = (np.bincount(codes, table.count).astype(np.int64) for codes in (table.key, table.value))
    of_keys, found = CountHistogram.of(keys), {}
    for value in np.flatnonzero(values).tolist():
        own = table.value == value
        rest = keys.copy()
        np.subtract.at(rest, table.key[own], table.count[own])
        sides = CountHistogram.of(np.array([values[value], values.sum() - values[value]]))
        pairs = CountHistogram.merge([CountHistogram.of(table.count[own]), CountHistogram.of(rest)])
        found[value] = compute_rate(sides, of_keys, pairs, estimator)
    return found


def white_box(release: Release, table: Table, positions: Sequence[int], estimator: str) -> tuple[AttackResult, Members]:
    """X is the original tuple of the keys and Y the published one, counted over the records of the table.

    Records that no class covers are a group of their own, the last one: nothing is published of them.
    """
    published, membership = Published.of(release, positions), find_members(release, table)
    numbers = number_combinations([table.codes[:, position].astype(np.int64) for position in positions])
    covered = np.bincount(membership.record, membership.share, table.distinct) > 0
    hidden = np.flatnonzero(~covered)
    original = np.concatenate([numbers[membership.record], numbers[hidden]])
    group = np.concatenate([published.group[membership.holder], np.full(len(hidden), len(published.first))])
    weight = np.concatenate([table.weights[membership.record] * membership.share, table.weights[hidden]])
    weight = weight.round().astype(np.int64) if membership.exact else weight
    contingency = ContingencyTable.of(group, original, weight)
    more: dict[str, Any] = (
        {} if membership.exact else {"assignment": "records that several classes cover are shared among them"}
    )
    if len(hidden):
        more["not_published"] = int(table.weights[hidden].sum())
    return AttackResult(published, contingency.profile(estimator), contingency, more), membership


def guess_identity(release: Release, positions: Sequence[int], known: Sequence[Floats | None]) -> AttackResult:
    """X is estimated from the release: uniform over the covered values, or as frequent as in a known table."""
    published = Published.of(release, positions)
    combinations = math.prod(len(attribute.levels) for attribute in published.attributes)
    if combinations > MAX_COMBINATIONS:
        raise InputError(
            f"black-box and grey-box need at most {MAX_COMBINATIONS:,} combinations of the keys' values; "
            f"got {combinations:,} (name fewer keys, or use white-box)"
        )
    count = sum_by_code(published.group, release.counts.sum(axis=1), len(published.first))
    beliefs = [
        _beliefs_by_value(sets, weights)[value[published.first]]
        for sets, value, weights in zip(published.coverage, published.value, known, strict=True)
    ]
    conditional = np.zeros(len(count))
    for belief in beliefs:  # independent given the published values, so entropies add up
        conditional -= (belief * np.log2(np.where(belief > 0, belief, 1.0))).sum(axis=1)
    entropy = compute_entropy(_mix_beliefs(count / count.sum(), beliefs))
    return AttackResult(published, Profile.from_entropies(entropy, count, np.maximum(0.0, conditional)), None, {})


def _beliefs_by_value(sets: Bools, weights: Floats | None) -> Floats:
    """Return (values, levels): the probability of a level where a value is published."""
    believed = sets.astype(float) if weights is None else sets * weights
    nothing = believed.sum(axis=1) == 0
    believed[nothing] = sets[nothing]
    believed[believed.sum(axis=1) == 0] = 1.0  # a value that covers none of the table tells nothing
    share: Floats = believed / believed.sum(axis=1, keepdims=True)
    return share


def _mix_beliefs(shares: Floats, beliefs: Sequence[Floats]) -> Floats:
    """Return the (combinations,) marginal: the products of beliefs, averaged over groups, a few groups at a time."""
    half = len(beliefs) // 2
    widths = [math.prod(belief.shape[1] for belief in part) for part in (beliefs[:half], beliefs[half:])]
    total = np.zeros(widths)
    step = max(1, MAX_COMBINATIONS // sum(widths))
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
    """Return (levels,): how often another table has each level; its other values are ignored."""
    import pandas as pd

    cells = cells.dropna()
    if attribute.kind == "numeric":
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.isna().any():
            raise InputError(f"{where}: the column {attribute.name!r} must be numbers, as in the table under audit")
        counts = numbers.value_counts().reindex(pd.Index(attribute.levels), fill_value=0)
    else:
        counts = cells.astype(str).value_counts().reindex(list(attribute.levels), fill_value=0)
    return counts.to_numpy().astype(np.float64)
