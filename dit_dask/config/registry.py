"""Things that a config names: what parameters they take and how they are built."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from dit_dask.config.constraints import Record
from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.table import Table

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, eq=False)
class Context:
    """What a component may know when it is built.

    `read(path, where)` opens a file named in the config, which lies in `folder`; `frame` has the rows' own cells, for those
    that see rows; `secrets` are its columns of all sensitive attributes, of which the schema has one. `table` is the one under
    audit, for those that are fitted to it.
    """

    schema: Schema
    rows: int
    persons: int
    seed: int
    test: str
    where: str
    read: Callable[[str, str], str]
    folder: str = "."
    frame: pd.DataFrame | None = None
    secrets: tuple[str, ...] = ()
    table: Table | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that a sanitizer sees: quasi-identifiers and sensitive attributes."""
        own = self.schema.sensitive.columns
        return (*(attribute.name for attribute in self.schema.quasi_identifiers), *(self.secrets or own))


@dataclass(frozen=True)
class Tunable:
    """A parameter that trades utility for protection: values to try, the weakest first, and what limits them.

    `at_most` says that values beyond the number of persons, or of sensitive values, are not tried unless they are given.
    """

    grid: tuple[float, ...]
    at_most: Literal["persons", "secrets"] | None = None

    @property
    def is_rising(self) -> bool:
        """Whether larger values protect more."""
        return self.grid[0] < self.grid[-1]

    def by_strength(self, values: Iterable[float]) -> list[float]:
        """Sort distinct values, the weakest first."""
        return sorted(set(values), reverse=not self.is_rising)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One registered thing.

    For sanitizers: `sees_rows` where it takes the rows' own cells instead of codes; `procedure` is how it is audited;
    `disjoint` where its releases have a split tree, or classes of which no two cover the same record; `tunable` are the
    parameters, by name, of which `dit tune` tries several values.
    """

    parameters: Record
    build: Callable[[Mapping[str, Any], Context], T]
    sees_rows: bool = False
    procedure: str = "release"
    disjoint: bool = False
    tunable: Mapping[str, Tunable] = field(default_factory=dict)


@lru_cache(maxsize=8)
def _all_entry_points(_path: tuple[str, ...]) -> Any:
    from importlib.metadata import entry_points

    return entry_points()


@lru_cache(maxsize=64)
def _entry_points(group: str, path: tuple[str, ...]) -> dict[str, Any]:
    """What installed packages offer; looked up once for each search path, for a sweep asks hundreds of times."""
    return {point.name: point for point in _all_entry_points(path).select(group=group)}


class Registry(Mapping[str, Kind[T]]):
    """Built-in kinds by name, and those that installed packages offer through an entry-point group.

    A built-in kind may be given as `module:name`, of itself or of a mapping that has it, to import it only where it is used.
    """

    def __init__(self, group: str, builtin: Mapping[str, Kind[T] | str]) -> None:
        self._group = group
        self._builtin = dict(builtin)

    def _offered(self) -> dict[str, Any]:
        return _entry_points(self._group, tuple(sys.path))

    def __getitem__(self, name: str) -> Kind[T]:
        kind: Any = self._builtin[name] if name in self._builtin else self._offered()[name].load()
        if isinstance(kind, str):
            found = resolve_name(kind)
            kind = self._builtin[name] = found[name] if isinstance(found, Mapping) else found
        return cast("Kind[T]", kind)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._builtin, *self._offered()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def records(self) -> Records:
        """The parameters of every kind."""
        return Records(self)


class Records(Mapping[str, Record]):
    """The parameters of each kind of a registry; only those that are looked up are imported."""

    def __init__(self, kinds: Registry[Any]) -> None:
        self._kinds = kinds

    def __getitem__(self, name: str) -> Record:
        return self._kinds[name].parameters

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)
