"""Warnings: what makes a verdict on this data doubtful, one line each; values of the data are never named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.audit.gates import Gate
from dit_dask.values.schema import Schema
from dit_dask.values.table import Rows, Table

if TYPE_CHECKING:
    from dit_dask.audit.summary import TestSummary

MOST_SECRETS, MOST_SECRET_SHARE = 50, 0.05
FEWEST_ROWS = 100
MOST_UNIQUE = 0.5  # of the rows: more than half alone with their value means an identifier
WORDS_OF_TEXT = 4  # on average in a label: free text
MARKS_OF_MISSING = frozenset(("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "--", ".", "?", "missing"))


def data_warnings(rows: Rows, person_ids: Sequence[str] = ()) -> list[str]:
    """What the table itself makes doubtful; `person_ids` are columns that look like a person's id and repeat."""
    table, schema = rows.table, rows.table.schema
    return [
        *_few_rows(rows),
        *_repeated_ids(person_ids),
        *_many_secrets(schema, rows.used),
        *_identifiers(table),
        *_free_text(schema),
        *_missing_labels(schema),
    ]


def _few_rows(rows: Rows) -> Iterator[str]:
    if rows.used < FEWEST_ROWS:
        yield f"only {rows.used} rows are used: distributions of fewer than {FEWEST_ROWS} say little"


def _repeated_ids(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield (
            f"the column {name!r} looks like a person's id, and ids repeat: rows are not persons here, and removing one row "
            "does not remove the person; name it as schema.subject, or keep one row of each person"
        )


def _many_secrets(schema: Schema, rows: int) -> Iterator[str]:
    name, count = schema.sensitive.name, len(schema.sensitive.levels)
    if count > MOST_SECRETS or count > MOST_SECRET_SHARE * rows:
        yield (
            f"the sensitive attribute {name!r} has {count:,} values in {rows:,} rows: adversaries can hardly learn it, and "
            f"small distances mean little; {_coarsen(schema)}"
        )


def _coarsen(schema: Schema) -> str:
    """How to make the sensitive attribute coarser."""
    name, levels = schema.sensitive.name, schema.sensitive.levels
    is_numeric = all(re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", str(level)) for level in levels)
    example = f"{{name: {name}, bins: 5}}" if is_numeric else f"{{name: group, from: {name}, map: FILE}}"
    return f"{'bin' if is_numeric else 'group'} it, such as sensitive: {example}"


def _identifiers(table: Table) -> Iterator[str]:
    for place, attribute in enumerate(table.schema.quasi_identifiers):
        held = np.bincount(table.codes[:, place], table.weights)
        share = int(held[held == 1].sum()) / table.rows
        if share > MOST_UNIQUE:
            yield (
                f"the quasi-identifier {attribute.name!r} is unique in {100 * share:.1f}% of the rows: it is an identifier; "
                "remove it from the release, or generalise it before"
            )


def _free_text(schema: Schema) -> Iterator[str]:
    columns: list[tuple[str, Sequence[object]]] = [(schema.sensitive.name, schema.sensitive.levels)]
    columns += [(one.name, one.levels) for one in schema.quasi_identifiers if one.kind == "categorical"]
    for name, levels in columns:
        words = [len(str(level).split()) for level in levels]
        if len(levels) > MOST_SECRETS and sum(words) >= WORDS_OF_TEXT * len(words):
            yield f"the column {name!r} looks like free text: no table that is published should have it"


def _missing_labels(schema: Schema) -> Iterator[str]:
    columns: list[tuple[str, Sequence[object]]] = [(schema.sensitive.name, schema.sensitive.levels)]
    columns += [(one.name, one.levels) for one in schema.quasi_identifiers if one.kind == "categorical"]
    for name, levels in columns:
        found = sorted({str(level).strip().casefold() for level in levels} & MARKS_OF_MISSING)
        if found:
            marks = ", ".join(repr(mark) for mark in found)
            yield f"the column {name!r} has {marks} as a value like any other: if it means missing, name it in data.missing"


def gate_warnings(
    gates: Sequence[Gate], own: Mapping[str, Sequence[Gate]], summaries: Sequence[TestSummary], rows: Rows
) -> list[str]:
    """What makes gates doubtful: tests of some rows only, and tables that are a part of the source."""
    warnings, complete = [], rows.read - rows.dropped
    for one in summaries:
        judged = [gate for gate in (*gates, *own.get(one.test, ())) if gate.kind == "statistic" and gate.judges(one.test)]
        tested = int(one.figure("records") or 0)
        if judged and one.is_sanitised and tested < rows.used:
            warnings.append(
                f"{one.test}: gates judge a sample of {tested:,} of {rows.used:,} rows; "
                "a person outside the sample may lie above"
            )
    if (gates or own) and rows.used < complete:
        warnings.append(
            f"gates judge a table of {rows.used:,} of {complete:,} complete rows (data.limit or data.sample): the table that "
            "is published must be the same"
        )
    return warnings
