"""Risks of re-identification from the sizes of classes, in the table itself and in its population."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.measures.discrimination.published import find_members

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.table import Table

FEW, TERMS = 40, 64  # the terms of the series of a class of 40 persons fall below 1e-16 after 23
THRESHOLDS = {"over_5_percent": 0.05, "over_9_percent": 0.09, "over_20_percent": 0.2, "over_33_percent": 0.33}


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """The persons of each class of equal published values, and for each distinct record its class; -1 if none covers it.

    `is_exact` is false where several classes may hold a record: it then counts for the smallest of them.
    """

    size: Ints
    holder: Ints
    is_exact: bool


def class_sizes(release: Release, table: Table) -> ClassSizes:
    """Count the persons of each class; rows are persons unless the table says whose rows belong together."""
    keys, group = np.unique(release.published.keys(), axis=0, return_inverse=True)
    group = group.ravel()
    members = find_members(release, table)
    found = group[members.holder]
    size = np.bincount(group, release.counts.sum(axis=1), len(keys)).astype(np.int64)
    if table.subject is not None:  # at most the persons whose rows may be in a class
        base = int(table.subject.max()) + 1
        pairs = np.unique(found * base + table.subject[members.record])
        size = np.minimum(size, np.bincount(pairs // base, minlength=len(keys)))
    order = np.lexsort((size[found], members.record))
    record, first = np.unique(members.record[order], return_index=True)
    holder = np.full(table.distinct, -1, np.int64)
    holder[record] = found[order][first]
    return ClassSizes(size, holder, members.exact)


def person_risks(risk: Floats, table: Table) -> tuple[Floats, Ints]:
    """Return the risk of each person, the largest of their records, and how many persons each entry stands for."""
    if table.subject is None:
        return risk, table.weights
    persons = np.full(table.persons, 0.0)
    np.maximum.at(persons, table.subject, risk)
    return persons, np.ones(table.persons, np.int64)


def expected_inverse(size: Ints, fraction: float) -> Floats:
    """Return (classes,): the expected 1 / F for a class of f persons in a sample, where F are those of the population.

    F given f is negative binomial with the sampling fraction, as Benedetti and Franconi (1998) and sdcMicro have it:
    π^f / f · ₂F₁(f, f; f + 1; 1 − π).
    """
    from scipy.special import hyp2f1

    if fraction >= 1:
        inverse: Floats = 1 / size
        return inverse
    # Euler's transformation, ₂F₁(f, f; f + 1; z) = (1 − z)^(1 − f) ₂F₁(1, 1; f + 1; z), whose terms are positive and small
    total = hyp2f1(1.0, 1.0, np.minimum(size, FEW) + 1.0, 1 - fraction)
    term, series = np.ones(len(size)), np.ones(len(size))
    for n in range(TERMS):
        term *= (n + 1) / (size + 1 + n) * (1 - fraction)
        series += term
    risk: Floats = fraction / size * np.where(size > FEW, series, total)  # scipy's is NaN for some classes above 100
    return risk


@dataclass(frozen=True)
class RiskFigures:
    """The largest and the mean risk over persons, and the shares of persons whose risk is above each threshold."""

    largest: float
    mean: float
    over: dict[str, float]

    @classmethod
    def of(cls, risk: Floats, persons: Ints) -> RiskFigures:
        """Summarise the risks of persons."""
        total = int(persons.sum())
        over = {name: int(persons[risk > limit].sum()) / total for name, limit in THRESHOLDS.items()}
        return cls(float(risk.max()), math.fsum(risk * persons) / total, over)  # the same to the bit in any order
