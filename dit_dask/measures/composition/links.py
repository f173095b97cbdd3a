"""Who is in two tables: rows of the same person, by the subject, a key column, or equal quasi-identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.measures.reidentification.risks import class_sizes

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.measures.base import ReleaseOrigin
    from dit_dask.values.arrays import Bools, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.table import Rows

MOST_LINKS = 5_000_000
SUBJECT, QUASI_IDENTIFIERS = "subject", "quasi-identifiers"
Match = str | None  # subject, quasi-identifiers, or key:COLUMN


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of used rows first[l], second[l] of the same person[l]; `ambiguous` rows of the first table may be of several."""

    first: Ints
    second: Ints
    person: Ints
    ambiguous: int

    @property
    def persons(self) -> int:
        """How many persons are in both tables."""
        return len(np.unique(self.person))


def find_links(first: ReleaseOrigin, second: ReleaseOrigin, match: str, key: str | None) -> Links:
    """Find the persons of both tables; a subject of both may have several rows, and every pair of them is a link."""
    sides = [_ids(origin, other, match, key) for origin, other in ((first, second), (second, first))]
    ids, known = _number_alike(sides)
    subjects = {origin.rows.table.schema.subject for origin in (first, second)}
    has_several = match == SUBJECT or (key is not None and subjects == {key})
    usable = [known_one & (has_several | ~_repeated(one)) for one, known_one in zip(ids, known, strict=True)]
    ambiguous = 0 if has_several else int(np.isin(ids[0], ids[1][known[1]])[known[0] & ~usable[0]].sum())
    rows = [np.flatnonzero(one) for one in usable]
    pairs = _join(ids[0][rows[0]], ids[1][rows[1]])
    return Links(rows[0][pairs[0]], rows[1][pairs[1]], ids[0][rows[0]][pairs[0]], ambiguous)


def _ids(origin: ReleaseOrigin, other: ReleaseOrigin, match: str, key: str | None) -> pd.Series[Any]:
    """The id of each used row; missing ones are None."""
    import pandas as pd

    if match == QUASI_IDENTIFIERS:
        return _quasi_identifiers(origin.rows, [one.name for one in other.rows.table.schema.quasi_identifiers])
    column = origin.rows.table.schema.subject if match == SUBJECT else key
    if column is None:
        raise InputError("composition: match: subject needs schema.subject in both configs; else name {key: COLUMN}")
    cells = origin.cells.expand()[column]
    if pd.api.types.is_float_dtype(cells.dtype) and (cells.dropna() % 1 == 0).all():  # numbers beside missing cells
        cells = cells.astype("Int64")
    return cells.astype(object).where(cells.notna(), None).map(lambda cell: None if cell is None else str(cell))


def _quasi_identifiers(rows: Rows, others: Sequence[str]) -> pd.Series[Any]:
    import pandas as pd

    table = rows.table
    shared = [place for place, one in enumerate(table.schema.quasi_identifiers) if one.name in others]
    if not shared:
        raise InputError("composition: match: quasi-identifiers needs a quasi-identifier that both tables have")
    shared.sort(key=lambda place: table.schema.quasi_identifiers[place].name)
    texts = []
    for place in shared:
        labels = np.array([str(level) for level in table.schema.quasi_identifiers[place].levels], object)
        texts.append(labels[table.codes[rows.index, place]])
    return pd.Series(list(zip(*texts, strict=True)))


def _number_alike(sides: Sequence[pd.Series[Any]]) -> tuple[list[Ints], list[Bools]]:
    """Number the ids of both tables alike; also return which rows have one."""
    import pandas as pd

    together = pd.concat(sides, ignore_index=True)
    numbers, _ = pd.factorize(together)
    cut = len(sides[0])
    parts = [numbers[:cut].astype(np.int64), numbers[cut:].astype(np.int64)]
    return parts, [part >= 0 for part in parts]


def _repeated(ids: Ints) -> Bools:
    counts = np.bincount(ids[ids >= 0], minlength=1)
    repeated: Bools = counts[np.maximum(ids, 0)] > 1
    return repeated


def _join(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the places of all pairs of equal ids, ordered by the first place."""
    order = np.argsort(second, kind="stable")
    low = np.searchsorted(second[order], first, "left")
    count = np.searchsorted(second[order], first, "right") - low
    if count.sum() > MOST_LINKS:
        raise InputError(f"composition: at most {MOST_LINKS:,} pairs of rows of the same persons; got {int(count.sum()):,}")
    left = np.repeat(np.arange(len(first)), count)
    within = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count)
    return left, order[np.repeat(low, count) + within]


@dataclass(frozen=True, eq=False)
class Intersections:
    """Of each link: how many persons and rows are in both its classes, 0 where a release has none for it; sizes of classes."""

    persons: Ints
    rows: Ints
    smallest: tuple[int, int]
    is_exact: bool


def intersect(first: ReleaseOrigin, second: ReleaseOrigin, releases: Sequence[Release], links: Links) -> Intersections:
    """Count the persons of both tables who are in the same two classes as the person of each link."""
    sizes = [class_sizes(one, origin.rows.table) for one, origin in zip(releases, (first, second), strict=True)]
    holder = [
        size.holder[origin.rows.index[row]]
        for size, origin, row in zip(sizes, (first, second), (links.first, links.second), strict=True)
    ]
    is_held = (holder[0] >= 0) & (holder[1] >= 0)
    _, pair = np.unique(holder[0] * len(sizes[1].size) + holder[1], return_inverse=True)
    pair = pair.ravel()
    counts = [_count_distinct(pair, one, is_held) for one in (links.person, links.first, links.second)]
    smallest = int(sizes[0].size.min()), int(sizes[1].size.min())
    is_exact = all(size.is_exact for size in sizes)
    return Intersections(counts[0], np.minimum(counts[1], counts[2]), smallest, is_exact)


def _count_distinct(pair: Ints, number: Ints, is_held: Bools) -> Ints:
    """Return (links,): how many different numbers the held links of the same pair have."""
    base = int(number.max(initial=0)) + 1
    seen = np.unique(pair[is_held] * base + number[is_held])
    counts = np.bincount(seen // base, minlength=int(pair.max(initial=0)) + 1)
    return np.where(is_held, counts[pair], 0)
