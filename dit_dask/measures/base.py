"""What a measure is: the inputs it declares and gets, its result, and how that is presented."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dit_dask import seeds
from dit_dask.config.constraints import Field, Flag, OneOf, Record, Text
from dit_dask.config.data import STORAGE_OPTIONS
from dit_dask.config.registry import Kind
from dit_dask.inputs.counted import CountedRows
from dit_dask.values.pieces import RowIndex
from dit_dask.values.release import Release
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.engines.influence import Procedure

OTHER_TABLE = OneOf(
    [
        (str, Text()),
        (dict, Record({"source": Field(Text()), "storage_options": STORAGE_OPTIONS})),
    ],
    "a path, a URL, or a mapping of source and storage_options",
)

COMMON_KEYS = {
    "records": Field(Flag(), False, description="also write the figures of each record, which are personal data"),
}


@dataclass(frozen=True)
class Source:
    """Another table that a measure needs, read once, on the client; `columns` None means all."""

    url: str = field(repr=False)
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, value: Any, columns: Sequence[str] | None = None) -> Source:
        """Parse what OTHER_TABLE accepts."""
        wanted = None if columns is None else tuple(columns)
        if isinstance(value, str):
            return cls(value, {}, wanted)
        return cls(value["source"], value["storage_options"], wanted)


@dataclass(frozen=True)
class AuditSource:
    """Another audit that a measure needs: a config file or a finished run, one of its tests, and columns beside its schema."""

    path: str = field(repr=False)
    test: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ReleaseOrigin:
    """What a release is made from: the used rows as read, the rows of the test that publishes it, and how it is published."""

    cells: CountedRows = field(repr=False)
    rows: Rows = field(repr=False)
    procedure: Procedure = field(repr=False)


@dataclass(frozen=True, eq=False)
class MeasureInput:
    """What a measure computes from.

    `cells` are the used rows in order, with the schema's columns and those that the measure declares, as read; missing cells
    are None or NaN. `frame` has all of them (its index is `record`), where a measure needs them one by one. `release` is what
    a sanitizer of the run publishes, where the measure is of releases; `origin` and `audits` are there where the kind says that
    it sanitises, and that it needs other audits.
    `procedure` has the sanitizer itself, where the measure is of sanitizers; `rows` are then those of its test.
    """

    cells: CountedRows
    rows: Rows
    tables: Mapping[str, pd.DataFrame]
    release: Release | None
    seed: int
    measure: str
    origin: ReleaseOrigin | None = None
    audits: Mapping[str, ReleaseOrigin] = field(default_factory=dict)
    is_random: bool = False  # the release is drawn at random: its records belong to nobody
    procedure: Procedure | None = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The used rows one by one."""
        return self.cells.expand()

    def stream(self, *purpose: object) -> np.random.Generator:
        """Open the measure's own random stream for a purpose."""
        return seeds.stream(self.seed, "measure", self.measure, *purpose)


@dataclass(frozen=True, eq=False)
class SanitizerInput:
    """A sanitizer of the run with the rows that its test sanitises, for measures of sanitizers."""

    procedure: Procedure
    rows: Rows


@dataclass(frozen=True, eq=False)
class MeasureResult:
    """What a measure returns.

    `by_value` has one mapping for each value or combination that `value` summarises; `more` joins the object in
    measures.json; `columns` are (used rows,) arrays for measures/<id>.parquet, beside `record`, which is written only if
    the config asks with `records: true`; with an `index`, index[n] is the place in these arrays of what each row has.
    `by_value` and `more` are shared: no figure of fewer than 10 rows.
    """

    value: float | None
    by_value: Sequence[Mapping[str, Any]]
    records: int
    more: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    index: RowIndex | None = None

    def rows_of(self, name: str) -> NDArray[Any]:
        """Return (used rows,): a column."""
        return self.columns[name] if self.index is None else self.columns[name][np.asarray(self.index)]


class Measure(Protocol):
    """Anything that computes a number from its inputs."""

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute the result; all randomness comes from inputs.stream."""
        ...


@runtime_checkable
class DividedMeasure(Protocol):
    """A measure in pieces: made on the client, computed on workers, joined on one worker."""

    def pieces(self, inputs: MeasureInput) -> Sequence[Any]:
        """Describe the pieces, in little memory; inputs.release is None here."""
        ...

    def find_piece(self, inputs: MeasureInput, piece: Any) -> Any:
        """Compute one piece."""
        ...

    def join(self, inputs: MeasureInput, results: Sequence[Any]) -> MeasureResult:
        """Combine the results, which are in the order of the pieces."""
        ...


@dataclass(frozen=True)
class MeasureEntry:
    """One object of measures.json: a result with what was measured and, for a measure of releases, whose release it was."""

    measure: str
    id: str
    parameters: Mapping[str, Any]
    sanitizer: Mapping[str, Any] | None
    value: float | None
    by_value: Sequence[Mapping[str, Any]]
    records: int
    more: Mapping[str, Any]
    columns: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As in measures.json."""
        value = self.value if self.value is None or math.isfinite(self.value) else str(self.value)
        shown: dict[str, Any] = {name: getattr(self, name) for name in ENTRY_FIELDS if name != "columns"}
        return shown | {"value": value, "by_value": list(self.by_value), **self.more, "columns": list(self.columns)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> MeasureEntry:
        """The inverse of `document`; an infinite value is a word there."""
        known = {name: document[name] for name in ENTRY_FIELDS}
        more = {name: value for name, value in document.items() if name not in ENTRY_FIELDS}
        value = float(known["value"]) if isinstance(known["value"], str) else known["value"]
        return cls(**known | {"value": value, "more": more})


ENTRY_FIELDS = tuple(one.name for one in fields(MeasureEntry) if one.name != "more")


@dataclass(frozen=True)
class BarChart:
    """Rates between 0 and 1, for each group one bar a series; where there are several, the first is the one to compare with."""

    groups: Mapping[str, Sequence[float | None]]
    series: Sequence[str]
    title: str


@dataclass(frozen=True)
class CurvePanel:
    """Cumulative shares: the points, and for each series its values there."""

    at: Sequence[float]
    shares: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class CurvePanels:
    """Panels side by side, by their titles."""

    panels: Mapping[str, CurvePanel]
    title: str


Chart = BarChart | CurvePanels


@dataclass(frozen=True)
class Section:
    """A part of the report: a table, and a chart if there is one; cells are texts or numbers and need no escaping.

    A detail is in the report only, not in the terminal.
    """

    title: str
    description: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    chart: Chart | None = None
    detail: bool = False


Entries = Sequence[MeasureEntry]


def present_values(entries: Entries) -> list[Section]:
    """Present any measure: one row for each object in measures.json."""
    rows = [[entry.id, entry.value, entry.records] for entry in entries]
    return [Section(entries[0].measure, "", ("measure", "value", "records"), rows)]


def nothing(_parameters: Mapping[str, Any]) -> dict[str, Any]:
    """No other table or audit is needed."""
    return {}


@dataclass(frozen=True)
class MeasureKind(Kind[Measure]):
    """A registered measure; what it needs must be known from its parameters alone, before any data is read.

    `columns` names columns of the source (None: all); `tables` names other tables; `of_releases` tells whether it is taken
    of every release of the run, and of the original for comparison, instead of the table itself. `audits` names other audits;
    `sanitises` tells whether it needs the sanitizer of each release, and is not taken of the original; `of_sanitizers`,
    whether it makes releases itself, with every sanitizer of the tests. `identifiers` are those of the columns that only tell
    whose a row is: no value of them is compared or shown.
    """

    columns: Callable[[Mapping[str, Any]], Sequence[str] | None] = lambda _parameters: None
    identifiers: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _parameters: ()
    tables: Callable[[Mapping[str, Any]], Mapping[str, Source]] = nothing
    audits: Callable[[Mapping[str, Any]], Mapping[str, AuditSource]] = nothing
    of_releases: Callable[[Mapping[str, Any]], bool] = lambda _parameters: False
    sanitises: bool = False
    present: Callable[[Entries], Sequence[Section]] = present_values
    of_sanitizers: bool = False

    def __post_init__(self) -> None:
        """Give every measure the keys that all measures have."""
        object.__setattr__(self, "parameters", replace(self.parameters, fields={**self.parameters.fields, **COMMON_KEYS}))
