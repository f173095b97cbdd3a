"""A third-party sanitizer: called with tables, known only by the releases it returns."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from dit_dask.errors import DitError, ExternalSanitizerError, InputError
from dit_dask.sanitizers.external.own_rows import Match, OwnRows, match_rows
from dit_dask.sanitizers.external.release_reader import ReadRelease, ReleaseReader, unpack
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.sanitizers.claims import Claim
    from dit_dask.values.arrays import Ints
    from dit_dask.values.release import Release
    from dit_dask.values.schema import Schema
    from dit_dask.values.table import Table


CALL_LOCK = threading.Lock()  # a worker may have several threads; a sanitizer process runs one call at a time


class Caller(Protocol):
    """A way to have a table sanitised by third-party code."""

    @property
    def is_callable(self) -> bool:
        """Whether any table can be sanitised; releases that were made before can only be read."""
        ...

    def sanitize(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Sanitise the rows with these ids of the whole frame, or raise ExternalSanitizerError."""
        ...

    def prepare(self) -> Mapping[str, str]:
        """Check on this machine that calls can succeed; return digests of the code that will run, by name."""
        ...


@dataclass(frozen=True)
class CallPolicy:
    """What to do when a call fails: how often to try again, and whether the record may then be skipped."""

    retries: int
    skip: bool
    allowed: int


class ProcessState:
    """What one process keeps between calls: releases of the whole table, which every task needs, and their readers.

    Sanitizers that differ only in the sensitive attribute share it, and with it the table that the last call returned. A
    pickle of it is empty: every process starts with a state of its own.
    """

    def __init__(self) -> None:
        self.full_releases: dict[str, ReadRelease] = {}
        self.last: tuple[bytes, int, pd.DataFrame] | None = None
        self.own_rows: dict[str, OwnRows] = {}
        self._readers: dict[str, ReleaseReader] = {}

    def reader(self, sanitizer: ExternalSanitizer) -> ReleaseReader:
        """Return the reader of a sensitive attribute, which has parsed the published values met so far."""
        name = sanitizer.schema.sensitive.name
        if name not in self._readers:
            self._readers[name] = ReleaseReader(sanitizer.schema, sanitizer.mapping, sanitizer.published)
        return self._readers[name]

    def __reduce__(self) -> tuple[type[ProcessState], tuple[()]]:
        return ProcessState, ()


@dataclass(frozen=True, eq=False)
class ExternalSanitizer:
    """Sanitises by calling third-party code; releases are cached by the content of the table.

    `published` are the columns of the schema that it publishes, those of other sensitive attributes among them.
    """

    schema: Schema
    frame: pd.DataFrame
    caller: Caller
    policy: CallPolicy
    where: str
    identity: str
    mapping: Mapping[str, Mapping[str, list[str]]]
    cache: Folder | None = None
    claim: Claim | None = None
    order_matters: bool | None = None
    published: tuple[str, ...] = ()
    match: Match | None = None  # how rows are found in the only release; None where there is one without each record
    whole: Table | None = field(default=None, repr=False)  # all rows, where match is given
    state: ProcessState = field(default_factory=ProcessState)
    is_external: ClassVar[bool] = True  # what runs without one need not import to know

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        """Sanitise the rows of a table; where there is only one release, take rows out of it."""
        if self.match is None or table.ids is None or len(table.ids) == len(self.frame):
            return self.call(table, rng).release
        removed = np.setdiff1d(np.arange(len(self.frame)), table.ids)
        return self.find_own_rows(rng).without(removed)

    def find_own_rows(self, rng: np.random.Generator) -> OwnRows:
        """Which class of the only release publishes each row."""
        name = self.schema.sensitive.name
        if name not in self.state.own_rows:
            if self.whole is None or self.match is None:
                raise TypeError("rows are taken out of the release of the whole table")
            try:
                everyone = np.arange(len(self.frame))
                published = self.caller.sanitize(self.frame, everyone, int(rng.integers(2**31)))
                full = self.state.reader(self)(published)
                holder = np.empty(0, np.int64) if full.holder is None else full.holder
                matched = match_rows(self.match, self.frame, published, holder)
            except (ExternalSanitizerError, InputError) as error:
                raise ExternalSanitizerError(f"{self.where}: {error}", hidden=error.hidden) from error
            self.state.own_rows[name] = OwnRows(self.whole, full, matched)
        return self.state.own_rows[name]

    def call(self, table: Table, rng: np.random.Generator, *, use_cache: bool = True) -> ReadRelease:
        """Return the cached release of this table, or call the sanitizer, again if a call fails."""
        if table.ids is None:
            raise InputError(f"{self.where}: a sanitizer that sees rows needs a table of rows")
        seed = int(rng.integers(2**31))
        with CALL_LOCK:
            if not use_cache:
                return self._call_with_retries(table.ids, seed, use_last=False)
            name = self._file_name(table.ids, seed)
            cached = self._read_cache(name) or self.state.full_releases.get(name)
            if cached is not None:
                return cached
            release = self._call_with_retries(table.ids, seed, use_last=True)
            if len(table.ids) == len(self.frame):
                self.state.full_releases[name] = release
            if self.cache is not None:
                self.cache.write(name, release.pack())
            return release

    def _call_with_retries(self, ids: Ints, seed: int, *, use_last: bool) -> ReadRelease:
        last = self.state.last
        if use_last and last is not None and last[:2] == (ids.tobytes(), seed):  # called for another sensitive attribute
            with suppress(InputError):
                return self.state.reader(self)(last[2])
        for _ in range(self.policy.retries):
            with suppress(ExternalSanitizerError, InputError):
                return self._call_once(ids, seed)
        try:
            return self._call_once(ids, seed)
        except (ExternalSanitizerError, InputError) as error:
            raise ExternalSanitizerError(f"{self.where}: {error}", skip=self.policy.skip, hidden=error.hidden) from error

    def _call_once(self, ids: Ints, seed: int) -> ReadRelease:
        table = self.caller.sanitize(self.frame, ids, seed)
        if self.shares_calls:
            self.state.last = (ids.tobytes(), seed, table)
        return self.state.reader(self)(table)

    @property
    def shares_calls(self) -> bool:
        """Whether there are other sensitive attributes, whose tests learn from the same releases."""
        own = (*(attribute.name for attribute in self.schema.quasi_identifiers), *self.schema.sensitive.columns)
        return bool(self.published) and set(self.published) != set(own)

    def about(self, schema: Schema) -> ExternalSanitizer:
        """The same sanitizer for another sensitive attribute; calls are shared."""
        return self if schema is self.schema else replace(self, schema=schema)

    def _read_cache(self, name: str) -> ReadRelease | None:
        content = None if self.cache is None else self.cache.read(name)
        return None if content is None else unpack(content, self.schema)

    def is_cached(self, table: Table, rng: np.random.Generator) -> bool:
        """Whether the release of this table would come from the cache folder."""
        if self.cache is None or table.ids is None:
            return False
        return self._read_cache(self._file_name(table.ids, int(rng.integers(2**31)))) is not None

    def prepare(self) -> tuple[ExternalSanitizer, Mapping[str, str]]:
        """Check that calls can succeed; the result's identity covers the code, so that other code has another cache."""
        try:
            digests = self.caller.prepare()
        except DitError as error:
            raise InputError(f"{self.where}: {error}", hidden=error.hidden) from error
        identity = hashlib.sha256(json.dumps([self.identity, digests], sort_keys=True).encode()).hexdigest()
        return replace(self, identity=identity), digests

    def with_cache(self, cache: Folder | None) -> ExternalSanitizer:
        """Return the same sanitizer with its own folder in a cache."""
        return replace(self, cache=None if cache is None else cache.child(self.identity[:24]))

    @property
    def is_callable(self) -> bool:
        """Whether any table can be sanitised; releases that were made before can only be read."""
        return self.caller.is_callable

    @cached_property
    def has_equal_rows(self) -> bool:
        """Whether some rows are equal in every column that the sanitizer sees."""
        return bool(self.frame.duplicated().any())

    def representatives(self, audited: Ints) -> Ints:
        """Return (rows,): for audited rows the first of them that is equal in every column that the sanitizer sees."""
        index = np.arange(len(self.frame))
        group = self.frame.iloc[audited].groupby(list(self.frame.columns), sort=False, dropna=False).ngroup().to_numpy()
        _, first = np.unique(group, return_index=True)
        index[audited] = audited[first[group]]
        return index

    @cached_property
    def _row_hashes(self) -> NDArray[np.uint64]:
        import pandas as pd

        return pd.util.hash_pandas_object(self.frame.astype(str), index=False).to_numpy().astype(np.uint64)

    def _file_name(self, ids: Ints, seed: int) -> str:
        """Name a release by the code, the content of the table and the seed of the call."""
        kinds = self.frame.dtypes.astype(str).tolist()
        content = hashlib.sha256(f"{self.identity} {self.schema.digest()} {kinds} {seed}".encode())
        content.update(self._row_hashes[ids].tobytes())
        return f"{content.hexdigest()[:40]}.npz"
