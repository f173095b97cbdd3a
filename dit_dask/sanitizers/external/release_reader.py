"""Reads a table that someone else sanitised into a release, whatever forms its values have."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import NULLS, Reader
from dit_dask.values.release import Release, Sets
from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Ints

SUPPRESSED = "*"


@dataclass(frozen=True, eq=False)
class ReadRelease:
    """A release that was read: how many rows it holds, how many were suppressed, how many hold a number read as the nearest."""

    release: Release
    rows: int
    suppressed: int
    nearest: int

    def fingerprint(self) -> bytes:
        """The same for releases that differ only in the order of rows or in how they write a set."""
        return self.pack()

    def pack(self) -> bytes:
        """Write it down without any label."""
        published, counts = self.release.published, self.release.counts
        sets = {f"sets{place}": np.packbits(rows, axis=1) for place, rows in enumerate(_sets(published))}
        where, secret = np.nonzero(counts)
        tally = np.array([self.rows, self.suppressed, self.nearest, len(counts)])
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {"tally": tally, "value": published.keys(), **sets}
        np.savez_compressed(buffer, **arrays, where=where, secret=secret, count=counts[where, secret])
        return buffer.getvalue()


def _sets(published: Any) -> Sequence[Bools]:
    sets: Sequence[Bools] = published.sets
    return sets


def unpack(content: bytes, schema: Schema) -> ReadRelease | None:
    """Read what `pack` wrote; None if it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as kept:
            rows, suppressed, nearest, classes = (int(number) for number in kept["tally"])
            sizes = [len(attribute.levels) for attribute in schema.quasi_identifiers]
            sets = [np.unpackbits(kept[f"sets{place}"], axis=1, count=size).astype(bool) for place, size in enumerate(sizes)]
            counts = np.zeros((classes, len(schema.sensitive.levels)), np.int64)
            counts[kept["where"], kept["secret"]] = kept["count"]
            return ReadRelease(Release(schema, Sets(kept["value"], tuple(sets)), counts), rows, suppressed, nearest)
    except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile):
        return None


def _hashable(cell: Any) -> Any:
    """Lists of values, as Parquet has them, become tuples."""
    return tuple(cell.tolist()) if isinstance(cell, np.ndarray) else tuple(cell) if isinstance(cell, list) else cell


class Vocabulary:
    """The published values of one attribute met so far; equal sets are one, however they are written."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Any, tuple[int, bool, bool]] = {}
        self._number: dict[bytes, int] = {}
        self.sets: list[Bools] = []
        self.keys: list[bytes] = []

    def __call__(self, cells: pd.Series[Any]) -> Ints:
        """Return (3, rows): the number of each cell's set, whether it is suppressed, whether it was read as the nearest."""
        import pandas as pd

        if cells.dtype == object:
            cells = cells.map(_hashable)
        code, distinct = pd.factorize(cells)
        found = [self._lookup(value) for value in distinct]
        if (code < 0).any():
            found.append(self._lookup(None))  # -1 is the last
        return np.array(found, np.int64).reshape(-1, 3).T[:, code]

    def _lookup(self, value: Any) -> tuple[int, bool, bool]:
        known = self._known.get(value)
        if known is None:
            reading = self._reader(value)
            key = np.packbits(reading.covers).tobytes()
            if key not in self._number:
                self._number[key] = len(self.sets)
                self.sets.append(reading.covers)
                self.keys.append(key)
            known = self._known[value] = (self._number[key], reading.suppressed, reading.nearest)
        return known

    def compact(self, numbers: Ints) -> tuple[Ints, Bools]:
        """Renumber the sets in use, in an order that does not depend on what was read before."""
        used, inverse = np.unique(numbers, return_inverse=True)
        order = sorted(range(len(used)), key=lambda place: self.keys[used[place]])
        rank = np.empty(len(used), np.int64)
        rank[order] = np.arange(len(used))
        return rank[inverse], np.stack([self.sets[used[place]] for place in order])


class ReleaseReader:
    """Reads the releases of one sanitizer; what a value means is worked out once."""

    def __init__(self, schema: Schema, mapping: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        self._schema = schema
        self._vocabularies = [
            Vocabulary(Reader(attribute, mapping.get(attribute.name))) for attribute in schema.quasi_identifiers
        ]
        self._secrets = {label: code for code, label in enumerate(schema.sensitive.levels)}

    @property
    def columns(self) -> list[str]:
        """The columns that a release must have."""
        return [*(attribute.name for attribute in self._schema.quasi_identifiers), self._schema.sensitive.name]

    def __call__(self, frame: pd.DataFrame) -> ReadRelease:
        """Read a release; rows that are suppressed altogether, or in their sensitive value, count as absent."""
        for name in self.columns:
            if name not in frame.columns:
                raise InputError(f"it returned no column {name!r}")
        if not len(frame):
            raise InputError("it returned an empty table")
        read = [words(frame[name]) for words, name in zip(self._vocabularies, self.columns, strict=False)]
        secret = self._secret(frame[self.columns[-1]])
        hidden = np.logical_and.reduce([suppressed.astype(bool) for _, suppressed, _ in read])
        if hidden.all():  # one class of everybody, not a table of nobody
            hidden[:] = False
        kept = ~hidden & (secret >= 0)
        if not kept.any():
            raise InputError("it suppressed every row")
        nearest = int(sum(numbers[2][kept].sum() for numbers in read))
        release = self._release([numbers[0][kept] for numbers in read], secret[kept])
        return ReadRelease(release, int(kept.sum()), int((~kept).sum()), nearest)

    def _release(self, numbers: Sequence[Ints], secret: Ints) -> Release:
        compacted = [words.compact(column) for words, column in zip(self._vocabularies, numbers, strict=True)]
        group = np.zeros(len(secret), np.int64)
        for column, sets in compacted:  # sorted by the first attribute, then the second, …
            _, group = np.unique(group * len(sets) + column, return_inverse=True)
        _, first = np.unique(group, return_index=True)
        domain = len(self._schema.sensitive.levels)
        counts = np.bincount(group * domain + secret, minlength=len(first) * domain).reshape(len(first), domain)
        value = np.column_stack([column[first] for column, _ in compacted]).astype(np.int32)
        return Release(self._schema, Sets(value, tuple(sets for _, sets in compacted)), counts.astype(np.int64))

    def _secret(self, cells: pd.Series[Any]) -> Ints:
        """Return (rows,): the code of the sensitive value, -1 where it is suppressed."""
        import pandas as pd

        code, distinct = pd.factorize(cells)
        return np.array([*(self._secret_code(value) for value in distinct), -1], np.int64)[code]

    def _secret_code(self, value: Any) -> int:
        text = str(value)
        if text not in self._secrets and isinstance(value, float | np.floating) and float(value).is_integer():
            text = str(int(value))
        for label in (text, text.strip()):
            if label in self._secrets:
                return self._secrets[label]
        if text.strip() in NULLS or not text.strip().strip(SUPPRESSED):
            return -1
        shown = f"{text[:60]!r}"
        raise InputError(f"column {self.columns[-1]!r}: {shown} is not among its {len(self._secrets)} values in the data")
