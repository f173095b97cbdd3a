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
    from dit_dask.values.arrays import Ints

MOST_SECRETS, MOST_SECRET_SHARE = 50, 0.05
FEWEST_ROWS = 100
MOST_UNIQUE = 0.5  # of the rows: more than half alone with their value means an identifier
WORDS_OF_TEXT = 4  # on average in a label: free text
MARKS_OF_MISSING = frozenset(("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "--", ".", "?", "missing"))


def data_warnings(rows: Rows) -> list[str]:
    """What the table itself makes doubtful."""
    table, schema = rows.table, rows.table.schema
    return [
        *_few_rows(rows),
        *_many_secrets(schema, rows.used),
        *_identifiers(table),
        *_free_text(schema),
        *_missing_labels(schema),
    ]


def _few_rows(rows: Rows) -> Iterator[str]:
    if rows.used < FEWEST_ROWS:
        yield f"only {rows.used} rows are used: distributions of fewer than {FEWEST_ROWS} say little"


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


def gate_warnings(gates: Sequence[Gate], own: Mapping[str, Sequence[Gate]], summaries: Sequence[TestSummary]) -> list[str]:
    """What makes gates doubtful: samples, and claims that hold only because of identical rows."""
    warnings = []
    for one in summaries:
        judged = [gate for gate in (*gates, *own.get(one.test, ())) if gate.kind == "statistic" and gate.judges(one.test)]
        if not judged or not one.is_sanitised:
            continue
        tested, skipped = int(one.figure("records") or 0), int(one.figure("skipped") or 0)
        if one.parameters.get("records", "all") != "all":
            warnings.append(f"{one.test}: gates judge {tested:,} chosen rows only; a person among the others may lie above")
        if skipped:
            warnings.append(f"{one.test}: gates judge nothing of {skipped:,} rows that were skipped")
    return warnings


def looks_like_person_id(name: str) -> bool:
    """Whether a column is named as if it told persons apart."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    people = {"patient", "person", "subject", "customer", "client", "member", "user", "employee", "respondent", "participant"}
    return bool(people & set(words)) and bool({"id", "no", "nr", "number", "key", "code", "uuid"} & set(words))


def repeats(values: Ints) -> bool:
    """Whether ids occur more than once, as those of persons with several rows do."""
    _, counts = np.unique(values, return_counts=True)
    return bool(counts.max(initial=0) > 1)
