"""The tables of a run as frames that can be compared: the original, a synthetic one, and a holdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.constraints import Choice, Field, MapOf, Number, OneOf
from dit_dask.errors import InputError
from dit_dask.measures.base import OTHER_TABLE, MeasureInput, Source
from dit_dask.measures.synthetic.columns import label_of
from dit_dask.values.numbers import DECIMAL, INTEGER
from dit_dask.values.release import Ranges, Release, Sets
from dit_dask.values.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Codes

SYNTHETIC = Field(
    OTHER_TABLE,
    None,
    description="the synthetic table; without it every release of the run that consists of records is measured",
)
COLUMNS = Field(
    MapOf(Choice(("numeric", "categorical")), 1),
    None,
    description="columns to compare and their kinds; those of the schema by default",
)
HOLDOUT = Field(
    OneOf([(str, OTHER_TABLE), (dict, OTHER_TABLE), ((int, float), Number(0))], "a path, a URL, a mapping, or a fraction"),
    description="records that the synthesizer has not seen, or the fraction of the table to set aside",
)


@dataclass(frozen=True)
class Roles:
    """How a measure finds its tables: the columns' kinds (none: the schema's), and the fraction set aside as a holdout."""

    kinds: tuple[tuple[str, str], ...] = ()
    fraction: float | None = None

    def columns(self, schema: Schema) -> dict[str, str]:
        """The kinds of the columns to compare."""
        own = {attribute.name: attribute.kind for attribute in schema.quasi_identifiers}
        return dict(self.kinds) or {**own, schema.sensitive.name: "categorical"}


@dataclass(frozen=True, eq=False)
class Tables:
    """Frames with typed cells, `original` without the holdout where that was split off; and how many rows were incomplete."""

    original: pd.DataFrame
    synthetic: pd.DataFrame
    holdout: pd.DataFrame | None
    kinds: Mapping[str, str]
    dropped: int


@dataclass(frozen=True, eq=False)
class Shown:
    """Evidence that is the same for all pieces of a measure on a worker, so that tables are prepared once there."""

    evidence: MeasureInput

    def _parts(self) -> tuple[object, ...]:
        evidence = self.evidence
        return (evidence.frame, evidence.release, evidence.measure, evidence.seed, *evidence.tables.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shown) or len(self._parts()) != len(other._parts()):
            return False
        return all(
            mine is its or (isinstance(mine, str | int) and mine == its)
            for mine, its in zip(self._parts(), other._parts(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((id(self.evidence.frame), self.evidence.measure))


def sources(parameters: Mapping[str, Any]) -> dict[str, Source]:
    """The other tables that a measure's parameters name."""
    columns = None if parameters["columns"] is None else list(parameters["columns"])
    named = {key: parameters.get(key) for key in ("synthetic", "holdout")}
    return {key: Source.of(value, columns) for key, value in named.items() if isinstance(value, str | Mapping)}


@lru_cache(maxsize=2)
def tables(shown: Shown, roles: Roles) -> Tables | None:
    """Prepare the tables; None where the release does not consist of records."""
    evidence = shown.evidence
    schema = evidence.rows.table.schema
    kinds = roles.columns(schema)
    needed = [*(attribute.name for attribute in schema.quasi_identifiers), schema.sensitive.name]
    found = {"original": evidence.frame, **evidence.tables}
    if evidence.release is not None:
        records = published(evidence.release, evidence)
        if records is None:
            return None
        found["synthetic"] = records
    dropped, frames = 0, {}
    for role, frame in found.items():
        checked = [name for name in needed if name in kinds]
        missing = [name for name in kinds if name not in frame.columns]
        if missing:
            raise InputError(f"{evidence.measure}: {role}: no column {missing[0]!r} among {frame.shape[1]}")
        complete = frame[checked].notna().all(axis=1).to_numpy(bool)
        dropped += int((~complete).sum())
        frames[role] = typed(frame.loc[complete, list(kinds)].reset_index(drop=True), kinds, f"{evidence.measure}: {role}")
    original, holdout = frames["original"], frames.get("holdout")
    if roles.fraction is not None:
        original, holdout = split(original, roles.fraction, evidence)
    return Tables(original, frames["synthetic"], holdout, kinds, dropped)


def split(frame: pd.DataFrame, fraction: float, evidence: MeasureInput) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Set a random fraction of the rows aside, the same in all measures of a run; return the rest and these, in order."""
    order = seeds.stream(evidence.seed, "measure", "holdout").permutation(len(frame))
    aside = np.zeros(len(frame), bool)
    aside[order[: round(fraction * len(frame))]] = True
    return frame[~aside].reset_index(drop=True), frame[aside].reset_index(drop=True)


def published(release: Release, evidence: MeasureInput) -> pd.DataFrame | None:
    """The records of a release that publishes single values, written as in the table; None of one that publishes sets."""
    import pandas as pd

    codes = single_values(release.published)
    if codes is None:
        return None
    group, secret = np.nonzero(release.counts)
    repeats = release.counts[group, secret]
    group, secret = np.repeat(group, repeats), np.repeat(secret, repeats)
    columns: dict[str, Any] = {}
    for place, attribute in enumerate(release.schema.quasi_identifiers):
        cells = np.array(attribute.levels, object)
        used, first = np.unique(evidence.rows.table.codes[evidence.rows.index, place], return_index=True)
        cells[used] = evidence.frame[attribute.name].to_numpy(object)[first]  # a date's level is a number, its cell is not
        columns[attribute.name] = pd.Series(cells[codes[group, place]])
    columns[release.schema.sensitive.name] = [release.schema.sensitive.levels[code] for code in secret]
    return pd.DataFrame(columns)


def single_values(values: Ranges | Sets) -> Codes | None:
    """Return (classes, d) codes where every published value is a single one, else None."""
    if isinstance(values, Ranges):
        return values.low if (values.low == values.high).all() else None
    if not all((sets.sum(axis=1) == 1).all() for sets in values.sets):
        return None
    columns = [sets.argmax(axis=1)[own] for sets, own in zip(values.sets, values.value.T, strict=True)]
    return np.column_stack(columns).astype(np.int32)


def typed(frame: pd.DataFrame, kinds: Mapping[str, str], where: str) -> pd.DataFrame:
    """Give text cells the type that their column's kind asks for; cells that have one keep it."""
    import pandas as pd

    columns = {}
    for name, kind in kinds.items():
        cells = frame[name]
        is_text = cells.map(lambda cell: isinstance(cell, str), na_action="ignore").fillna(False).astype(bool)
        if kind == "categorical":
            columns[name] = cells.map(label_of, na_action="ignore").astype(object)
        elif is_text.any():
            columns[name] = parsed(cells.astype(object), f"{where}: column {name!r}")
        else:
            columns[name] = cells
    return pd.DataFrame(columns)


def parsed(cells: pd.Series[Any], where: str) -> pd.Series[Any]:
    """Read text as integers, decimals or ISO dates: all of one sort; a message never shows a cell."""
    import pandas as pd

    known = cells.dropna().astype(str)
    if known.str.fullmatch(INTEGER).all():
        whole = [int(cell) for cell in known]
        return pd.Series(whole, index=known.index, dtype=object).reindex(cells.index)
    if known.str.fullmatch(DECIMAL).all():
        return known.astype(float).reindex(cells.index)
    dates = pd.to_datetime(known, format="ISO8601", errors="coerce", utc=True)
    if not dates.notna().all():
        bad = known.index[(dates.isna() & ~known.str.fullmatch(DECIMAL)).to_numpy(bool)]
        first = f", first in its row {bad[0]}" if len(bad) else ""
        raise InputError(f"{where} must be numbers or ISO dates, all of one sort; got {len(bad)} cells of other text{first}")
    return dates.reindex(cells.index)


def roles(parameters: Mapping[str, Any], where: str) -> Roles:
    """Read how a measure finds its tables from its parameters."""
    holdout = parameters.get("holdout")
    fraction = holdout if isinstance(holdout, int | float) else None
    if fraction is not None and not 0 < fraction < 1:
        raise InputError(f"{where}.holdout must be a path, a URL, or a fraction between 0 and 1; got {fraction!r}")
    return Roles(tuple((parameters["columns"] or {}).items()), fraction)


def names(parameters: Mapping[str, Any]) -> Sequence[str]:
    """The columns of the source that a measure looks at beside the schema's."""
    return list(parameters["columns"] or ())
