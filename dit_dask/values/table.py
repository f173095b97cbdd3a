"""The table under audit: integer codes, each distinct record once with its multiplicity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.arrays import RowNumbers, count_values, first_positions
from dit_dask.values.pieces import figures_of
from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from dit_dask.values.arrays import Bools, Codes, Ints
    from dit_dask.values.pieces import IndexFigures, RowIndex, SourceRows

LARGEST_KEY = 2**63 - 1  # of a record, and of a record with its row


@dataclass(frozen=True, eq=False)
class Table:
    """Records codes[m, d], secret[m], weights[m]: each distinct (q, s) once, in lexicographic order.

    For a sanitizer that sees the rows themselves it has every row once, in file order, and ids[m] are their positions.
    Where persons have several rows, subject[m] is the person of each record, and equal records of two persons are two.
    """

    schema: Schema
    codes: Codes
    secret: Codes
    weights: Ints
    ids: Ints | None = None
    subject: Ints | None = None

    @property
    def distinct(self) -> int:
        """The number of distinct records."""
        return len(self.weights)

    @property
    def rows(self) -> int:
        """The number of rows, duplicates counted."""
        return int(self.weights.sum())

    @property
    def persons(self) -> int:
        """The number of persons: that of rows unless some belong together."""
        return self.rows if self.subject is None else int(np.count_nonzero(np.bincount(self.subject)))

    def ranks(self) -> Ints:
        """Return (records,): the place of each record in lexicographic order of q and s."""
        return np.arange(self.distinct) if self.ids is None else collapse(self.schema, self.codes, self.secret)[1]

    def without(self, record: int) -> Table:
        """Remove one row of a distinct record, or all rows of its person; the domain stays that of the whole table."""
        if self.subject is not None:
            return self._only(self.subject != self.subject[record])
        if self.weights[record] > 1:
            weights = self.weights.copy()
            weights[record] -= 1
            return replace(self, weights=weights)
        keep = np.ones(self.distinct, bool)
        keep[record] = False
        return self._only(keep)

    def removals(self, records: Ints) -> list[tuple[int, Ints]]:
        """Return the removals that make the releases without each of the records, and the places of the records they serve.

        A removal has the number of its record, or of the first record of its person.
        """
        if self.subject is None:
            return [(int(record), np.array([place])) for place, record in enumerate(records)]
        order = np.argsort(self.subject, kind="stable")
        starts = np.searchsorted(self.subject[order], self.subject[records])
        removed, inverse = np.unique(order[starts], return_inverse=True)
        places = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])
        return list(zip(removed.tolist(), places, strict=True))

    def first(self, records: int) -> Table:
        """The first so many distinct records."""
        return self._only(slice(records))

    def reordered(self, order: Ints) -> Table:
        """The same records in another order."""
        return self._only(order)

    def _only(self, chosen: slice | Bools | Ints) -> Table:
        ids = None if self.ids is None else self.ids[chosen]
        subject = None if self.subject is None else self.subject[chosen]
        return Table(self.schema, self.codes[chosen], self.secret[chosen], self.weights[chosen], ids, subject)


@dataclass(frozen=True, eq=False)
class Rows:
    """Where the rows of files went: index[n] is the record of the table that stands for each used row.

    `index` is all that is kept of every row: in a scratch file if it is large, or on the workers that read it.
    `multiplicity[m]` counts the persons who have the q and s of a record, which are rows unless some belong together. `frame`
    has the cells as they were read, where a sanitizer needs them. `source_row[n]` is the row's position in the source, files in
    order, before any row was dropped.
    `further` are the same rows with the other sensitive attributes of the schema.
    """

    table: Table
    index: RowIndex
    read: int
    dropped: int
    multiplicity: Ints
    files: tuple[str, ...] = ()
    frame: pd.DataFrame | None = None
    source_row: SourceRows = field(default_factory=lambda: RowNumbers(0))
    doubts: tuple[str, ...] = ()  # what is strange about the ids of persons
    further: tuple[Rows, ...] = ()
    left_out: int = 0  # complete rows that `only` took away

    @property
    def by_secret(self) -> dict[str, Rows]:
        """The rows with each sensitive attribute of the schema, by its name."""
        return {rows.table.schema.sensitive.name: rows for rows in (self, *self.further)}

    @property
    def columns_of_secrets(self) -> list[str]:
        """The columns that a table has for all sensitive attributes."""
        columns = [column for name in self.by_secret for column in self.by_secret[name].table.schema.sensitive.columns]
        return list(dict.fromkeys(columns))

    def about(self, secret: str | None) -> Rows:
        """The rows with one of the sensitive attributes; with the only one if none is named."""
        return self if secret is None else self.by_secret[secret]

    def with_frame(self, frame: pd.DataFrame) -> Rows:
        """The same rows with the cells as they were read."""
        return replace(self, frame=frame, further=tuple(replace(rows, frame=frame) for rows in self.further))

    @property
    def used(self) -> int:
        """The number of rows under audit."""
        return len(self.index)

    @property
    def known_persons(self) -> int | None:
        """The number of persons, where the schema says whose rows belong together."""
        return None if self.table.schema.subject is None else self.table.persons

    @property
    def person(self) -> Ints | None:
        """The person of each used row, where some have several."""
        return None if self.table.subject is None else self.table.subject[np.asarray(self.index)]

    def record_of(self, audited: SourceRows) -> RowIndex:
        """Return (audited,): the distinct record of each of these rows; a view if they are all."""
        found: RowIndex = self.index if len(audited) == self.used else self.index[np.asarray(audited)]
        return found

    def count_records(self, audited: SourceRows) -> Ints:
        """Return (records,): how many of these rows have each."""
        if len(audited) == self.used:
            return self.table.weights
        return count_values(np.asarray(self.record_of(audited)), self.table.distinct)

    def first_places(self, audited: SourceRows) -> Ints:
        """Return (records,): the place of the first of these rows that has each; their number if none has it."""
        if len(audited) == self.used:
            return self.first_rows
        return first_positions(np.asarray(self.record_of(audited)), self.table.distinct)

    def count_persons(self, audited: SourceRows) -> int:
        """How many persons have these rows."""
        if self.table.subject is None:
            return len(audited)
        if len(audited) == self.used:
            return self.table.persons
        return len(np.unique(self.table.subject[self.record_of(audited)]))

    def row_by_row(self) -> Rows:
        """The same rows, each a record of its own, in file order."""
        base, ones, index = self.table, np.ones(self.used, np.int64), np.asarray(self.index)
        everyone = np.arange(self.used)
        subject = None if base.subject is None else base.subject[index]
        table = Table(base.schema, base.codes[index], base.secret[index], ones, everyone, subject)
        return replace(self, table=table, index=everyone, multiplicity=self.multiplicity[index])

    def only(self, kept: Bools) -> Rows:
        """Some of the used rows, as if no other had been there; the domains stay those of all."""
        base, index = self.table, self.index[kept]
        person = None if base.subject is None else _renumber(base.subject[index])
        table, place = collapse(base.schema, base.codes[index], base.secret[index], person)
        frame = None if self.frame is None else self.frame[kept].reset_index(drop=True)
        return replace(
            self,
            table=table,
            index=place,
            left_out=self.left_out + int(np.count_nonzero(~kept)),
            multiplicity=count_persons(table),
            frame=frame,
            source_row=self.source_row[kept],
            further=tuple(rows.only(kept) for rows in self.further),
        )

    def rows_of_persons(self, records: Ints) -> Bools:
        """Return (n,): the used rows of the persons who have one of these."""
        chosen = np.zeros(self.used, bool)
        chosen[records] = True
        return chosen if self.person is None else np.isin(self.person, self.person[records])

    def described(self) -> str:
        """How many rows there are, in words."""
        counts = [f"{rows.table.distinct:,} distinct" for rows in self.by_secret.values()]
        if self.further:
            counts = [f"{count} by {name}" for count, name in zip(counts, self.by_secret, strict=True)]
        persons = "" if self.known_persons is None else f" of {self.known_persons:,} persons"
        shown = f"{self.used:,} rows{persons} ({', '.join(counts)})"
        left_out = f", {self.left_out:,} left out" if self.left_out else ""
        return f"{shown} of {self.read:,} read, {self.dropped:,} dropped as incomplete{left_out}"

    @cached_property
    def first_rows(self) -> Ints:
        """Return (records,): the first used row of each record."""
        return self._figures.first

    @cached_property
    def _figures(self) -> IndexFigures:
        return figures_of(self.index, self.table.distinct)

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the used values in row order, of which all others are made; it is never shown."""
        content = hashlib.sha256(self.table.schema.digest().encode())
        content.update(np.ascontiguousarray(self.table.codes).data)
        content.update(np.ascontiguousarray(self.table.secret).data)
        content.update(self._figures.digest)
        if self.table.subject is not None:
            content.update(np.ascontiguousarray(self.table.subject).data)
        for rows in self.further:
            content.update(rows.fingerprint)
        return content.digest()

    def digest(self) -> str:
        """What stands for the used values in row order."""
        return hashlib.sha256(b"rows of a table\0" + self.fingerprint).hexdigest()


def collapse(
    schema: Schema, codes: Codes, secret: Codes, subject: Ints | None = None, weights: Ints | None = None
) -> tuple[Table, Ints]:
    """Collapse codes[n, d] and secret[n] to distinct records, of each person alone; also return each row's distinct record.

    With `weights[n]` each of them stands for so many rows.
    """
    index, first = rank_rows((*codes.T, secret, *(() if subject is None else (subject,))))
    counts = np.bincount(index, weights, len(first)).astype(np.int64)  # sums of counts below 2^53 are exact
    table = Table(
        schema,
        codes.take(first, axis=0).astype(np.int32, copy=False),
        secret.take(first).astype(np.int32, copy=False),
        counts,
        subject=None if subject is None else subject.take(first),
    )
    return table, index


def rank_rows(columns: Sequence[Ints | Codes]) -> tuple[Ints, Ints]:
    """Return (n,) the rank of each row in lexicographic order of the columns, and a row that has each rank."""
    key, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        levels = int(column.max(initial=0)) + 1
        if size * levels > LARGEST_KEY:  # the rows so far are fewer than their possible keys
            key, first = _rank(key, size)
            size = len(first)
        key *= levels
        key += column
        size *= levels
    return _rank(key, size)


def recode(table: Table, schema: Schema, codes: Codes) -> tuple[Table, Ints]:
    """Give the records other codes[m, d]; also return which record of the new table each old one became."""
    return collapse(schema, codes, table.secret, table.subject, table.weights)


def _renumber(person: Ints) -> Ints | None:
    """Number persons in the order in which they first appear; None if everyone appears once."""
    _, first, place = np.unique(person, return_index=True, return_inverse=True)
    if len(first) == len(person):
        return None
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place.ravel()]


def count_persons(table: Table) -> Ints:
    """Return (records,): how many persons have the same q and s as a record."""
    if table.subject is None:
        return table.weights
    _, index = collapse(table.schema, table.codes, table.secret)
    return np.bincount(index)[index]


def _rank(key: Ints, size: int) -> tuple[Ints, Ints]:
    """Return (n,) the rank of each key among the distinct ones, all of them below `size`, and a row that has each."""
    rows = len(key)
    if size * rows <= LARGEST_KEY:  # numbers that hold key and row sort ten times as fast as the rows by their keys
        packed = np.sort(key * rows + np.arange(rows))
        order = packed % rows
    else:
        order = np.argsort(key)
    starts = np.ones(rows, bool)
    ascending = key[order]
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    rank = np.empty(rows, np.int64)
    rank[order] = np.cumsum(starts) - 1
    return rank, order[starts]
