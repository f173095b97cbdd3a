"""Reads a sanitised table into a release, in every form that published values may have."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.function_call import tells_rows_apart
from dit_dask.sanitizers.external.published_values import NULLS, Reader
from dit_dask.values.release import Release, Sets
from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Ints

SUPPRESSED = "*"
MOST_HIDDEN = 5  # values that an error keeps for --show-values


@dataclass(frozen=True, eq=False)
class ReadRelease:
    """A release as read: the rows it holds, the rows suppressed, and the cells with a number read as the nearest level.

    `further` counts columns that are published but are no part of the schema, and so of no test.
    """

    release: Release
    rows: int
    suppressed: int
    nearest: int
    further: int = 0
    holder: Ints | None = None  # the class of each row that was read, -1 of a suppressed one; a cache does not keep it

    def fingerprint(self) -> bytes:
        """The same for releases that differ only in the order of rows or in how they write a set."""
        return self.pack()

    def pack(self) -> bytes:
        """Write it as a compressed archive without any label."""
        published, counts = self.release.published, self.release.counts
        sets = {f"sets{index}": np.packbits(rows, axis=1) for index, rows in enumerate(_sets(published))}
        row, secret = np.nonzero(counts)
        totals = np.array([self.rows, self.suppressed, self.nearest, self.further, len(counts)])
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {"tally": totals, "value": published.keys(), **sets}
        np.savez_compressed(buffer, **arrays, where=row, secret=secret, count=counts[row, secret])
        return buffer.getvalue()


def _sets(published: Any) -> Sequence[Bools]:
    sets: Sequence[Bools] = published.sets
    return sets


def unpack(content: bytes, schema: Schema) -> ReadRelease | None:
    """Read what `pack` wrote; None if it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            *tallies, classes = (int(number) for number in archive["tally"])
            sizes = [len(attribute.levels) for attribute in schema.quasi_identifiers]
            sets = [np.unpackbits(archive[f"sets{index}"], axis=1, count=size).astype(bool) for index, size in enumerate(sizes)]
            counts = np.zeros((classes, len(schema.sensitive.levels)), np.int64)
            counts[archive["where"], archive["secret"]] = archive["count"]
            rows, suppressed, nearest, further = tallies
            release = Release(schema, Sets(archive["value"], tuple(sets)), counts)
            return ReadRelease(release, rows, suppressed, nearest, further)
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        return None


def _make_hashable(cell: Any) -> Any:
    """Turn lists of values, as Parquet has them, into tuples."""
    return tuple(cell.tolist()) if isinstance(cell, np.ndarray) else tuple(cell) if isinstance(cell, list) else cell


def _locate(is_bad: Bools) -> str:
    """Say where cells of a returned table stand, without showing them."""
    count = int(is_bad.sum())
    return f"it stands in {count:,} row{'s' if count > 1 else ''}, first in row {int(is_bad.argmax())} of what was returned"


class Vocabulary:
    """The published values of one attribute read so far; texts that cover the same set share its number."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._entries: dict[Any, tuple[int, bool, bool]] = {}
        self._number: dict[bytes, int] = {}
        self.sets: list[Bools] = []
        self.keys: list[bytes] = []

    def __call__(self, cells: pd.Series[Any]) -> Ints:
        """Return (3, rows): the number of each cell's set, whether it is suppressed, whether it was read as the nearest."""
        import pandas as pd

        if cells.dtype == object:
            cells = cells.map(_make_hashable)
        code, distinct = pd.factorize(cells)
        entries = []
        for number, value in enumerate(distinct):
            try:
                entries.append(self._lookup(value))
            except InputError as error:
                raise InputError(f"{error}; {_locate(code == number)}", hidden=error.hidden) from error
        if (code < 0).any():
            entries.append(self._lookup(None))  # code -1 is the last entry
        return np.array(entries, np.int64).reshape(-1, 3).T[:, code]

    def _lookup(self, value: Any) -> tuple[int, bool, bool]:
        entry = self._entries.get(value)
        if entry is None:
            reading = self._reader(value)
            key = np.packbits(reading.covers).tobytes()
            if key not in self._number:
                self._number[key] = len(self.sets)
                self.sets.append(reading.covers)
                self.keys.append(key)
            entry = self._entries[value] = (self._number[key], reading.suppressed, reading.nearest)
        return entry

    def compact(self, numbers: Ints) -> tuple[Ints, Bools]:
        """Renumber the sets in use, in an order that does not depend on what was read before."""
        used, inverse = np.unique(numbers, return_inverse=True)
        order = sorted(range(len(used)), key=lambda index: self.keys[used[index]])
        rank = np.empty(len(used), np.int64)
        rank[order] = np.arange(len(used))
        return rank[inverse], np.stack([self.sets[used[index]] for index in order])


class ReleaseReader:
    """Reads the releases of one sanitizer; each published value is parsed once."""

    def __init__(
        self, schema: Schema, mapping: Mapping[str, Mapping[str, Sequence[str]]], published: Sequence[str] = ()
    ) -> None:
        self._schema, self._published = schema, set(published)
        self._vocabularies = [
            Vocabulary(Reader(attribute, mapping.get(attribute.name))) for attribute in schema.quasi_identifiers
        ]
        secret = schema.sensitive
        self._secrets = [
            (one.name, {label: code for code, label in enumerate(one.levels)}) for one in secret.members or (secret,)
        ]
        parts = np.arange(len(secret.levels))[:, None] if secret.parts is None else secret.parts
        self._joint = {tuple(row): code for code, row in enumerate(parts.tolist())}

    @property
    def columns(self) -> list[str]:
        """The columns that a release must have."""
        return [*(attribute.name for attribute in self._schema.quasi_identifiers), *self._schema.sensitive.columns]

    def __call__(self, frame: pd.DataFrame, counts: Ints | None = None) -> ReadRelease:
        """Read a release; rows suppressed in every column or in the sensitive one count as absent.

        With `counts[n]` each row of the frame stands for so many.
        """
        for name in self.columns:
            if name not in frame.columns:
                raise InputError(f"it returned no column {name!r}")
        if not len(frame):
            raise InputError("it returned an empty table")
        read = [vocabulary(frame[name]) for vocabulary, name in zip(self._vocabularies, self.columns, strict=False)]
        secret = self._encode_secrets(frame)
        hidden = np.logical_and.reduce([suppressed.astype(bool) for _, suppressed, _ in read])
        if hidden.all():  # then they are one class, not an empty table
            hidden[:] = False
        kept = ~hidden & (secret >= 0)
        if not kept.any():
            raise InputError("it suppressed every row")
        rows = np.ones(len(frame), np.int64) if counts is None else counts
        nearest = int(sum(rows[kept & (numbers[2] > 0)].sum() for numbers in read))
        release, group = self._build_release([numbers[0][kept] for numbers in read], secret[kept], rows[kept])
        holder = np.full(len(frame), -1, np.int64)
        holder[kept] = group
        known = {*self.columns, *self._published}
        further = sum(tells_rows_apart(frame[name]) for name in frame.columns if name not in known)
        return ReadRelease(release, int(rows[kept].sum()), int(rows[~kept].sum()), nearest, further, holder)

    def _build_release(self, numbers: Sequence[Ints], secret: Ints, rows: Ints) -> tuple[Release, Ints]:
        compacted = [vocabulary.compact(column) for vocabulary, column in zip(self._vocabularies, numbers, strict=True)]
        group = np.zeros(len(secret), np.int64)
        for column, sets in compacted:  # sorted by the first attribute, then the second, …
            _, group = np.unique(group * len(sets) + column, return_inverse=True)
        _, first = np.unique(group, return_index=True)
        domain = len(self._schema.sensitive.levels)
        counts = np.bincount(group * domain + secret, rows, len(first) * domain).reshape(len(first), domain)
        value = np.column_stack([column[first] for column, _ in compacted]).astype(np.int32)
        return Release(self._schema, Sets(value, tuple(sets for _, sets in compacted)), counts.astype(np.int64)), group

    def _encode_secrets(self, frame: pd.DataFrame) -> Ints:
        """Return (rows,): the code of the sensitive value, of a joint one from its columns, -1 where it is suppressed."""
        codes = np.column_stack([self._encode_secret(frame[name], name, known) for name, known in self._secrets])
        if len(self._secrets) == 1:
            return codes[:, 0]
        distinct, place = np.unique(codes, axis=0, return_inverse=True)
        joint = [-1 if min(row) < 0 else self._joint.get(tuple(row), -2) for row in distinct.tolist()]
        found = np.array(joint, np.int64)[place.ravel()]
        if (found == -2).any():
            columns = ", ".join(repr(name) for name, _ in self._secrets)
            raise InputError(
                f"columns {columns}: it published {joint.count(-2):,} joint values that no row of the data has; the first: "
                f"{_locate(found == -2)}"
            )
        return found

    def _encode_secret(self, cells: pd.Series[Any], name: str, known: Mapping[str, int]) -> Ints:
        """Return (rows,): the code of a value of one column, -1 where it is suppressed."""
        import pandas as pd

        code, distinct = pd.factorize(cells)
        codes = [_secret_code(value, known) for value in distinct]
        unknown = [number for number, found in enumerate(codes) if found is None]
        if unknown:
            raise InputError(
                f"column {name!r}: {len(unknown):,} of its published values are not among its {len(known)} "
                f"values in the data; the first: {_locate(code == unknown[0])}",
                hidden=[str(distinct[number]) for number in unknown[:MOST_HIDDEN]],
            )
        return np.array([*codes, -1], np.int64)[code]


def _secret_code(value: Any, known: Mapping[str, int]) -> int | None:
    """The code, -1 for suppression, None for a value that the data does not have."""
    text = str(value)
    if text not in known and isinstance(value, float | np.floating) and float(value).is_integer():
        text = str(int(value))
    for label in (text, text.strip()):
        if label in known:
            return known[label]
    if text.strip() in NULLS or not text.strip().strip(SUPPRESSED):
        return -1
    return None
