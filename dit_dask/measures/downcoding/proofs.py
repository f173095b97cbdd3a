"""Which cells of a release are proved finer than published, from what its sanitizer is known to minimise.

A sanitizer that generalises no more than it must tells that the values of a class differ. Where a published value has exactly
two parts of which both must occur, at least two cells of the class are finer than published: one in each part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.sanitizers.claims import recheck
from dit_dask.sanitizers.full_domain import FullDomain
from dit_dask.sanitizers.lattice import build_lattice
from dit_dask.sanitizers.mondrian import Mondrian

if TYPE_CHECKING:
    from dit_dask.sanitizers import Sanitizer
    from dit_dask.values.arrays import Bools, Ints
    from dit_dask.values.hierarchy import Hierarchy
    from dit_dask.values.release import Release
    from dit_dask.values.table import Table

CELLS = 2  # that a proof is about: one at each of the two parts


@dataclass(frozen=True, eq=False)
class Proofs:
    """Of each class c and attribute d: whether its value is generalised[c, d], whether two of its cells are proved[c, d] finer.

    The cells of a proof are one with codes low..left[c, d] and one with codes right[c, d]..high. `mixed` attributes are proved
    to have different values within some class, which need not be known. `of_one_class`: only one class can have a proof.
    """

    generalised: Bools
    proved: Bools
    left: Ints
    right: Ints
    mixed: Ints
    of_one_class: bool = False

    @classmethod
    def none(cls, release: Release) -> Proofs:
        """Nothing is proved."""
        ends = [release.published.ends(place) for place in range(len(release.schema.quasi_identifiers))]
        low, high = (np.column_stack([one[side] for one in ends]).astype(np.int64) for side in (0, 1))
        return cls(low < high, np.zeros(low.shape, bool), low.copy(), high.copy(), np.zeros(low.shape[1], np.int64))


def prove(sanitizer: Sanitizer, release: Release, table: Table, *, is_tight: bool = False) -> tuple[Proofs | None, str]:
    """Return what is proved, and why; None where nothing is known of what the sanitizer minimises.

    `is_tight`: the user says that a release of another tool has the narrowest intervals and the lowest common nodes.
    """
    if is_tight:
        return prove_tight(release, has_nodes=True), "bounds are tight, as the config says"
    if isinstance(sanitizer, Mondrian) and sanitizer.predicates.tighten:
        has_nodes = sanitizer.predicates.strict and recheck(release, sanitizer.claim, table).holds is True
        return prove_tight(release, has_nodes=has_nodes), "Mondrian publishes tight bounds"
    if isinstance(sanitizer, FullDomain):
        holds = recheck(release, sanitizer.claim, table).holds is True
        if holds and sanitizer.suppression == 0:
            return prove_full_domain(sanitizer, release), "one level less of any attribute breaks the claim"
        return None, "with suppression a lower level may lose more" if holds else "no level has the claimed property"
    return None, "nothing is known of what the sanitizer minimises"


def prove_tight(release: Release, *, has_nodes: bool) -> Proofs:
    """The ends of an interval occur in its class; so do both children of a node with two, where nodes are the lowest common."""
    proofs = Proofs.none(release)
    for place, attribute in enumerate(release.schema.quasi_identifiers):
        low, high, is_range = release.published.ends(place)
        if attribute.hierarchy is None:
            proofs.proved[:, place] = is_range & (low < high)
        elif has_nodes:
            left = first_of_two(attribute.hierarchy, low.astype(np.int64), high.astype(np.int64))
            is_proved = is_range & (left >= 0)
            proofs.proved[:, place] = is_proved
            proofs.left[is_proved, place], proofs.right[is_proved, place] = left[is_proved], left[is_proved] + 1
        proofs.mixed[place] = bool((is_range & (low < high)).any() and (attribute.hierarchy is None or has_nodes))
    return proofs


def first_of_two(hierarchy: Hierarchy, low: Ints, high: Ints) -> Ints:
    """Return (classes,): the last code of the first child, where the lowest node that covers low..high has two; else -1."""
    split = np.flatnonzero(hierarchy.child_count == 2)
    last = {
        (int(hierarchy.low[node]), int(hierarchy.high[node])): int(hierarchy.high[hierarchy.first_child[node]])
        for node in split.tolist()
    }
    return np.array([last.get(ends, -1) for ends in zip(low.tolist(), high.tolist(), strict=True)], np.int64)


def prove_full_domain(sanitizer: FullDomain, release: Release) -> Proofs:
    """Lowering one attribute by a level must divide some class; if only one class can be divided, it is that one."""
    proofs, lattice = replace(Proofs.none(release), of_one_class=True), build_lattice(release.schema, sanitizer.bands)
    size = release.counts.sum(axis=1)
    for place, levels in enumerate(lattice.levels):
        low, high, _ = release.published.ends(place)
        fits = [np.isin(low, one.low).all() and (one.high[one.group[low]] == high).all() for one in levels]
        level = fits.index(True)  # of equal levels the lowest one is published
        if level == 0:
            continue
        below = levels[level - 1]
        parts = below.group[high] - below.group[low] + 1
        candidates = np.flatnonzero((parts > 1) & (size > 1))
        proofs.mixed[place] = 1
        if len(candidates) == 1 and parts[candidates[0]] == CELLS:
            (only,) = candidates
            proofs.proved[only, place] = True
            proofs.left[only, place] = below.high[below.group[low[only]]]
            proofs.right[only, place] = proofs.left[only, place] + 1
    return proofs
