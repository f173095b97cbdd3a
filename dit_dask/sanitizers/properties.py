"""The properties of published classes as other tools count them: k, l and t, in rows or persons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints


@dataclass(frozen=True)
class Properties:
    """Of the weakest class each: its size, its number of sensitive values, and its distance from the whole release (t).

    `largest_share` is the largest share of one sensitive value in any class; 1 / largest_share is the l of frequencies.
    """

    classes: int
    k: int
    l: int  # noqa: E741 - the name in the literature
    t: float
    largest_share: float

    def document(self) -> dict[str, Any]:
        """As in a JSON file."""
        return asdict(self)


def group_counts(release: Release) -> Ints:
    """Return (groups, secrets): the rows of each group of equal published values, in the order of these values."""
    keys = release.published.keys()
    order = np.lexsort(keys.T)
    starts = np.ones(len(keys), bool)
    starts[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    counts: Ints = np.add.reduceat(release.counts[order], np.flatnonzero(starts), axis=0, dtype=np.int64)
    return counts


def find_properties(counts: Ints, size: Ints | None = None, whole: Ints | None = None) -> Properties:
    """Find k, l and t of counts[group, secret].

    Where these count persons: `size` has the persons of each group, `whole` those of all groups who have each secret.
    """
    rows = counts.sum(axis=1)
    share = counts / rows[:, None]
    total = counts.sum(axis=0) if whole is None else whole
    distance = float(np.abs(share - total / total.sum()).sum(axis=1).max() / 2)
    largest = float((counts.max(axis=1) / (rows if size is None else size)).max())
    smallest = int((rows if size is None else size).min())
    return Properties(len(counts), smallest, int((counts > 0).sum(axis=1).min()), distance, largest)
