"""A release alone, without releases of smaller tables: what is left of it when a person's own rows are taken out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import ExternalSanitizerError
from dit_dask.sanitizers.external.release_reader import ReadRelease
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints

ORDER, NONE = "order", "none"
Match = str | Mapping[str, str]


class OwnRows:
    """Which class publishes each row of the table: by a key column, by the order of rows, or by what covers it."""

    def __init__(self, table: Table, full: ReadRelease, holder: Ints | None) -> None:
        self._table, self._release, self._holder = table, full.release, holder

    @property
    def holder(self) -> Ints | None:
        """Return (rows,): the class that publishes each row, -1 where none does; None where it is only known by what covers."""
        return self._holder

    def without(self, rows: Ints) -> Release:
        """The release without the published rows of some rows of the table; a row that is not published changes nothing."""
        counts = self._release.counts.copy()
        for row in rows.tolist():
            place, secret = self._place(row), self._table.secret[row]
            if place >= 0 and counts[place, secret] > 0:
                counts[place, secret] -= 1
        kept = np.flatnonzero(counts.sum(axis=1))
        return Release(self._release.schema, self._release.published.only(kept), counts[kept])

    def _place(self, row: int) -> int:
        if self._holder is not None:
            return int(self._holder[row])
        covering = self._release.covers(self._table.codes[row]).all(axis=1) & (
            self._release.counts[:, self._table.secret[row]] > 0
        )
        return int(covering.argmax()) if covering.any() else -1


def match_rows(match: Match, source: pd.DataFrame, published: pd.DataFrame, holder: Ints) -> Ints | None:
    """Return (rows of the source,): the class of each, -1 where it is not published; None without a correspondence.

    holder[n] is the class of each published row.
    """
    if match == NONE:
        return None
    if match == ORDER:
        if len(published) != len(source):
            raise ExternalSanitizerError(
                f"match: order needs as many published rows as the {len(source):,} used ones; got {len(published):,} "
                "(match: {key: COLUMN}, or none)"
            )
        return holder
    key = match["key"] if isinstance(match, Mapping) else str(match)
    for frame, what in ((source, "the data"), (published, "the release")):
        if key not in frame.columns:
            raise ExternalSanitizerError(f"match.key: {what} has no column {key!r}")
        if frame[key].astype(str).duplicated().any():
            raise ExternalSanitizerError(f"match.key: the column {key!r} of {what} has a value twice, so it is not a key")
    places: dict[Any, int] = dict(zip(published[key].astype(str), holder.tolist(), strict=True))
    return np.array([places.get(value, -1) for value in source[key].astype(str)], np.int64)
