"""Sequential data: from a table of events to one flat row for each subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def flatten_events(
    events: pd.DataFrame,
    subjects: pd.DataFrame | None = None,
    *,
    subject: str,
    order: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a row for each subject: two random subsequent events side by side, and the subject's own attributes.

    The events' columns become NAME.1 and NAME.2. A subject with one event has no second one, a subject without events has none:
    these cells are missing. The identifier itself is left out. Which pair is taken depends on the seed and on the subject's
    position among the sorted identifiers.

    Parameters
    ----------
    events
        One row for each event.
    subjects
        One row for each subject, if there is such a table.
    subject
        The column that both tables share.
    order
        The events' column to sort by; without it events stay as they come, and so do events that are equal in it.
    seed
        The seed of what is drawn.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> visits = pd.DataFrame({"person": [1, 1, 2], "ward": ["A", "B", "C"]})
    >>> dit.flatten_events(visits, subject="person").columns.tolist()
    ['ward.1', 'ward.2']
    """
    import pandas as pd

    _check(events, subjects, subject, order)
    identifiers = pd.Index(events[subject].unique() if subjects is None else subjects[subject]).sort_values()
    position = identifiers.get_indexer(pd.Index(events[subject]))
    if (position < 0).any():
        raise InputError(f"events: {int((position < 0).sum())} rows name a subject that is not in subjects")
    rank = np.arange(len(events)) if order is None else events[order].rank(method="first").to_numpy()
    if np.isnan(rank).any():
        raise InputError(
            f"events: column {order!r} must be known in every row to sort by; it is missing in {int(np.isnan(rank).sum())}"
        )
    sequence = np.lexsort([rank, position])
    lengths = np.bincount(position, minlength=len(identifiers))
    starts = np.cumsum(lengths) - lengths
    pick = np.floor(seeds.stream(seed, "events").random(len(identifiers)) * np.maximum(lengths - 1, 1)).astype(np.int64)
    attributes = events.drop(columns=subject).iloc[sequence]
    sides = []
    for step in (0, 1):
        rows = pd.Series(np.where(pick + step < lengths, starts + pick + step, -1))
        side = attributes.reset_index(drop=True).reindex(rows.where(rows >= 0)).reset_index(drop=True)
        sides.append(side.add_suffix(f".{step + 1}"))
    if subjects is not None:
        attributes_of_subjects = subjects.set_index(subject).loc[identifiers].reset_index(drop=True)
        sides.insert(0, attributes_of_subjects)
    flat = pd.concat(sides, axis=1)
    if flat.columns.duplicated().any():
        raise InputError(
            f"subjects: column {flat.columns[flat.columns.duplicated()][0]!r} has the name of a flattened event column"
        )
    return flat


def _check(events: pd.DataFrame, subjects: pd.DataFrame | None, subject: str, order: str | None) -> None:
    """Raise InputError unless both tables name their subjects, and `subjects` each of them once."""
    for role, frame, needed in (("events", events, [subject, order]), ("subjects", subjects, [subject])):
        for column in needed:
            if frame is not None and column is not None and column not in frame.columns:
                raise InputError(f"{role}: no column {column!r} among {frame.shape[1]}")
        if frame is not None and frame[subject].isna().any():
            raise InputError(
                f"{role}: column {subject!r} must name a subject in every row; it is missing in {frame[subject].isna().sum()}"
            )
    if not len(events):
        raise InputError("events must have rows; got none")
    if subjects is not None and subjects[subject].duplicated().any():
        raise InputError(
            f"subjects: column {subject!r} must name each subject once; {subjects[subject].duplicated().sum()} are repeated"
        )
