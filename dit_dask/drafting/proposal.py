"""What an audit of an unknown table could look like: subject, sensitive attribute and ranked quasi-identifiers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask.config.document import Config, check_document
from dit_dask.config.schema import HierarchyRule
from dit_dask.config.yaml import apply_override
from dit_dask.drafting.columns import NEAR_UNIQUE, ColumnDraft, draft_column, is_subject_name
from dit_dask.errors import InputError
from dit_dask.inputs.counted import CountedRows
from dit_dask.inputs.dialect import Dialect
from dit_dask.inputs.read import check_names, read_frame, source_dialect
from dit_dask.risk import Risk, Search
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    import pandas as pd

MOST_QUASI_IDENTIFIERS = 6
MOST_SECRETS = 50  # different values of a sensitive attribute that is proposed without being named
BINS, MOST_NUMBERS = 5, 20  # a sensitive attribute with more numbers gets bins
SENSITIVE_NAMES = (
    r"diagnos|disease|illness|condition|\bicd|krankheit|schlafst",
    r"salary|income|wage|\bpay\b|gehalt|einkommen|lohn",
    r"religion|orientation|party|\bvote|criminal|offence|drug",
    r"occupation|job|beruf",
)

MOST_ROWS_A_PERSON = 20  # on average: a ward or a branch has more


@dataclass(frozen=True)
class TableDraft:
    """An unknown table: its columns, and how it is written if it is text."""

    source: str
    rows: int
    columns: Mapping[str, ColumnDraft]
    dialect: Dialect | None
    risks: Mapping[str, Risk]
    subject: str | None
    sensitive: tuple[str, ...]
    chosen: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[str]:
        """The columns that may be quasi-identifiers, the most identifying first."""
        left = [name for name in self.risks if name not in (self.subject, *self.sensitive)]
        return [name for name in left if not self.columns[name].left_out]

    @property
    def quasi_identifiers(self) -> list[str]:
        """The columns that were chosen, or the most identifying ones."""
        return list(self.chosen) if self.chosen else self.candidates[:MOST_QUASI_IDENTIFIERS]

    def with_quasi_identifiers(self, names: Sequence[str]) -> TableDraft:
        """The same draft with other quasi-identifiers."""
        taken = next((name for name in names if name in (self.subject, *self.sensitive)), None)
        if taken is not None:
            raise InputError(f"dit init: the column {taken!r} cannot be a quasi-identifier: it is the subject or sensitive")
        return replace(self, chosen=tuple(dict.fromkeys(names)))

    def with_roles(self, sensitive: Sequence[str], subject: str | None) -> TableDraft:
        """The same draft with other sensitive attributes and another subject."""
        for name in sensitive:
            if name == subject:
                raise InputError(f"dit init: the column {name!r} cannot be the subject and the sensitive attribute")
            if self.columns[name].distinct < 2:
                raise InputError(f"dit init: the sensitive column {name!r} is constant: there is nothing to infer")
        return replace(self, sensitive=tuple(dict.fromkeys(sensitive)), subject=subject)


def draft_table(
    source: str, folder: str, sensitive: Sequence[str] = (), subject: str | None = None, overrides: Sequence[str] = ()
) -> TableDraft:
    """Read a table and guess what its columns are; named columns, and keys such as data.csv.separator=;, are taken as given."""
    document: dict[str, Any] = {"version": 1, "data": {"source": source}}
    for override in overrides:
        apply_override(document, override)
    config = check_document(document, folder, needs_schema=False)
    frame = read_frame(config, None)[0].rename(columns=str)
    names = [str(name) for name in frame.columns]
    check_names(names, [*names, *(name for name in (*sensitive, subject) if name is not None)], source)
    if len(frame) < 2:
        raise InputError(f"dit init: at least 2 rows are needed; got {len(frame)}")
    dialect = source_dialect(config)
    columns = {name: draft_column(name, frame[name], dialect) for name in names}
    if subject is not None and columns[subject].missing:
        raise InputError(
            f"dit init: --subject {subject!r} is missing in {columns[subject].missing:,} rows; every row needs one"
        )
    chosen_subject = subject or _propose_subject(columns, len(frame))
    if chosen_subject is not None:
        columns = {name: _count_rare(column, frame, chosen_subject) for name, column in columns.items()}
    chosen = sensitive or [_propose_sensitive(columns, chosen_subject)]
    draft = TableDraft(source, len(frame), columns, dialect, _rank(frame, columns), chosen_subject, ())
    return draft.with_roles(chosen, chosen_subject)


def _count_rare(column: ColumnDraft, frame: pd.DataFrame, subject: str) -> ColumnDraft:
    """Count the values that few persons share, where persons have several rows."""
    persons = frame[subject].groupby(frame[column.name].astype(str), sort=False).nunique()
    return replace(column, rare=max(column.rare, int((persons < MIN_DISCLOSED_COUNT).sum())))


def _rank(frame: pd.DataFrame, columns: Mapping[str, ColumnDraft]) -> dict[str, Risk]:
    """Measure, as `dit risk` does, how far each column tells people apart."""
    usable = [name for name, column in columns.items() if column.distinct > 1]
    search = Search([CountedRows.of(frame[usable])], None, [], "category")
    risks = sorted((search.risk([name]) for name in usable), key=lambda risk: (-risk.rate, risk.keys))
    return {risk.keys[0]: risk for risk in risks}


def _propose_subject(columns: Mapping[str, ColumnDraft], rows: int) -> str | None:
    """The column with the name of an identifier whose values repeat, a few times each."""
    repeated = [
        name
        for name, column in columns.items()
        if is_subject_name(name)
        and column.unique < NEAR_UNIQUE
        and not column.missing
        and rows <= MOST_ROWS_A_PERSON * column.distinct
    ]
    return max(repeated, key=lambda name: columns[name].distinct, default=None)


def _propose_sensitive(columns: Mapping[str, ColumnDraft], subject: str | None) -> str:
    usable = {name: column for name, column in columns.items() if name != subject and column.distinct > 1}
    usable = {name: column for name, column in usable.items() if not column.left_out}
    for words in SENSITIVE_NAMES:
        named = [name for name in usable if re.search(words, name, re.IGNORECASE)]
        if named:
            return named[0]
    few = [name for name, column in usable.items() if column.distinct <= MOST_SECRETS and column.attribute.kind != "date"]
    if not few or len(usable) < 2:
        raise InputError("dit init: no column can be proposed as sensitive attribute; name one with --sensitive COLUMN")
    return few[-1]


def sensitive_document(column: ColumnDraft) -> str | dict[str, Any]:
    """The sensitive attribute as a config writes it."""
    if column.is_number and column.distinct > MOST_NUMBERS:
        return {"name": column.name, "bins": BINS}
    if column.attribute.order:
        return {"name": column.name, "order": list(column.attribute.order)}
    return column.name


def hierarchy_lines(column: ColumnDraft) -> list[list[str]]:
    """The lines of a hierarchy file; none where a value is rare, which no file must list."""
    if column.rare or not column.labels:
        return []
    rule = column.attribute.hierarchy
    prefixes: Sequence[int] = (rule.prefix or ()) if isinstance(rule, HierarchyRule) else ()
    return [[label, *(f"{label[:length]}*" for length in prefixes), "*"] for label in column.labels]


def checked_config(document: Mapping[str, Any], folder: str) -> Config:
    """Check a drafted document as `dit run` would."""
    from dit_dask.audit.grammar import check_config

    return check_config(document, folder)
