"""Patterns of counts from plain lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dit_dask.engines.noisy_counts import Patterns


def pattern(counts: Sequence[int], target: int, cells: int) -> Patterns:
    """One pattern: the counts of a tuple and the count of the record's own cell."""
    ordered = sorted((count for count in counts if count), reverse=True)
    own = len(ordered) - 1 - ordered[::-1].index(target)
    return Patterns(cells, np.array([ordered], np.int64), np.array([own], np.int64))
