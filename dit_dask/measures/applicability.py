"""Whether the rows of a release belong to persons: what attacks on persons say of other rows means nothing."""

from __future__ import annotations

import numpy as np

from dit_dask.measures.base import MeasureInput

NO_PERSONS = (
    "the release has other records or counts than the table, as synthetic and noised releases have: its values belong to no "
    "person, so the figure says what the release looks like, not what it tells about anybody; judge it by the inference test"
)


def is_about_persons(inputs: MeasureInput) -> bool:
    """Tell whether the published records stand for the persons of the table: noisy counts and synthetic rows do not."""
    release, table = inputs.release, inputs.rows.table
    if release is None or inputs.is_random:
        return False
    in_table = np.bincount(table.secret, table.weights, release.counts.shape[1])
    return bool((release.counts.sum(axis=0) <= in_table).all())
