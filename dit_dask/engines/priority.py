"""Which records are likely to matter most, without sanitising again: what would change if only their own row went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dit_dask.adversaries import Adversary
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.narrowest_class import NarrowestClass
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

CHEAP = (BernoulliNB, ConditionalFrequency, NarrowestClass)  # others train a model for each record


def estimated_influence(table: Table, release: Release, procedure: ReleaseProcedure) -> Floats:
    """Return (records,): the distance if the record's row left its published class and nothing else changed.

    The smaller its class and the rarer its secret there, the larger; a record that no class covers has none of it to lose.
    """
    cheap = [adversary for adversary in procedure.adversaries.values() if isinstance(adversary, CHEAP)]
    estimates = [_estimate(table, release, procedure, adversary) for adversary in cheap or [BernoulliNB()]]
    largest: Floats = np.maximum.reduce(estimates)
    return largest


def _estimate(table: Table, release: Release, procedure: ReleaseProcedure, adversary: Adversary) -> Floats:
    joint, inverse = np.unique(np.column_stack([table.codes, table.secret]), axis=0, return_inverse=True)
    size = release.counts.sum(axis=1)
    whole = int(size.sum())
    sides = np.zeros((2, len(joint), release.counts.shape[1]))
    for place, (*target, secret) in enumerate(joint):
        codes = np.array(target, np.int32)
        sides[:, place] = adversary.beliefs(release, procedure.encoder, codes)
        own = np.flatnonzero(release.covers(codes).all(axis=1) & (release.counts[:, secret] > 0))
        if len(own) and whole > 1:
            left = release.without_row(int(own[size[own].argmin()]), int(secret))
            sides[1, place] = adversary.beliefs(left, procedure.encoder, codes)
    codes = joint[:, :-1].astype(np.int32)
    found: Floats = np.nan_to_num(procedure.distance(*(procedure.weigh(side, codes) for side in sides)), posinf=np.inf)
    return found[inverse.ravel()]
