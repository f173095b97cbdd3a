"""A sanitizer that is only known by what it returns."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dit_dask.errors import DitError, ExternalSanitizerError, InputError
from dit_dask.sanitizers.external.calls import Precomputed
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


ASKING = threading.Lock()  # a worker may have several threads; a keeper answers one at a time


class Caller(Protocol):
    """A way to have a table sanitised by someone else."""

    def sanitised(self, frame: pd.DataFrame, ids: Ints, seed: int) -> pd.DataFrame:
        """Sanitise the rows with these ids of the whole frame, or raise ExternalSanitizerError."""
        ...

    def ready(self) -> Mapping[str, str]:
        """Check on this machine that calls can succeed; return digests of the code that will run, by name."""
        ...


@dataclass(frozen=True)
class Policy:
    """What to do when a call fails: how often to try again, and whether the record may then be skipped."""

    retries: int
    skip: bool
    allowed: int


@dataclass(frozen=True, eq=False)
class ExternalSanitizer:
    """Sanitises by asking someone else; releases are remembered by what was asked."""

    schema: Schema
    frame: pd.DataFrame
    caller: Caller
    policy: Policy
    where: str
    identity: str
    mapping: Mapping[str, Mapping[str, list[str]]]
    cache: Folder | None = None
    claim: Claim | None = None
    order_matters: bool | None = None

    def release(self, table: Table, rng: np.random.Generator) -> Release:
        """Sanitise the rows of a table."""
        return self.ask(table, rng).release

    def ask(self, table: Table, rng: np.random.Generator, *, anew: bool = False) -> ReadRelease:
        """Return what is known of this very table, unless it must be asked for anew; else ask, and again if a call fails."""
        with ASKING:
            return self._asked(table, rng, anew)

    def _asked(self, table: Table, rng: np.random.Generator, anew: bool) -> ReadRelease:
        ids = table.ids
        if ids is None:
            raise InputError(f"{self.where}: a sanitizer that sees rows needs a table of rows")
        seed = int(rng.integers(2**31))
        name = f"{self._key(ids, seed)}.npz"
        known = None if anew or self.cache is None else self._recalled(name)
        if known is not None:
            return known
        whole = len(ids) == len(self.frame)
        if whole and not anew and name in self._whole:
            return self._whole[name]
        for attempt in range(self.policy.retries + 1):
            try:
                foreign = self._reader(self.caller.sanitised(self.frame, ids, seed))
                break
            except (ExternalSanitizerError, InputError) as error:
                if attempt == self.policy.retries:
                    raise ExternalSanitizerError(f"{self.where}: {error}", skip=self.policy.skip) from error
        if whole and not anew:
            self._whole[name] = foreign
        if self.cache is not None and not anew:
            self.cache.write(name, foreign.pack())
        return foreign

    def _recalled(self, name: str) -> ReadRelease | None:
        content = None if self.cache is None else self.cache.read(name)
        return None if content is None else unpack(content, self.schema)

    def is_cached(self, table: Table, rng: np.random.Generator) -> bool:
        """Whether the answer about this very table would come from the cache."""
        if self.cache is None or table.ids is None:
            return False
        return self._recalled(f"{self._key(table.ids, int(rng.integers(2**31)))}.npz") is not None

    def ready(self) -> tuple[ExternalSanitizer, Mapping[str, str]]:
        """Check that calls can succeed; an oracle whose code is known is_cached nothing of another version of it."""
        try:
            digests = self.caller.ready()
        except DitError as error:
            raise InputError(f"{self.where}: {error}") from error
        known = hashlib.sha256(json.dumps([self.identity, digests], sort_keys=True).encode()).hexdigest()
        return replace(self, identity=known), digests

    def with_cache(self, cache: Folder | None) -> ExternalSanitizer:
        """The same oracle with a place of its own in a cache."""
        return replace(self, cache=None if cache is None else cache.child(self.identity[:24]))

    @property
    def is_asked(self) -> bool:
        """Whether a table can be sanitised at will; releases made elsewhere are only read."""
        return not isinstance(self.caller, Precomputed)

    @cached_property
    def has_equal_rows(self) -> bool:
        """Whether some rows are equal in every column that the oracle sees."""
        return bool(self.frame.duplicated().any())

    def representatives(self, audited: Ints) -> Ints:
        """Return (rows,): for audited rows the first of them that is equal in every column that the oracle sees."""
        index = np.arange(len(self.frame))
        group = self.frame.iloc[audited].groupby(list(self.frame.columns), sort=False, dropna=False).ngroup().to_numpy()
        _, first = np.unique(group, return_index=True)
        index[audited] = audited[first[group]]
        return index

    @cached_property
    def _whole(self) -> dict[str, ReadRelease]:
        """Releases of the whole table, which every task needs."""
        return {}

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_whole", "_reader")}

    @cached_property
    def _reader(self) -> ReleaseReader:
        return ReleaseReader(self.schema, self.mapping)

    @cached_property
    def _rows(self) -> NDArray[np.uint64]:
        import pandas as pd

        return pd.util.hash_pandas_object(self.frame.astype(str), index=False).to_numpy().astype(np.uint64)

    def _key(self, ids: Ints, seed: int) -> str:
        """Identify a question by the content of the table; where the oracle draws at random, also by its seed."""
        kinds = self.frame.dtypes.astype(str).tolist()
        content = hashlib.sha256(f"{self.identity} {self.schema.digest()} {kinds} {seed}".encode())
        content.update(self._rows[ids].tobytes())
        return content.hexdigest()[:40]
