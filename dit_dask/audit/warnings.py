"""Warnings: what makes a verdict on this data doubtful, one line each; values of the data are never named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.gates import Gate
from dit_dask.audit.release_only import NOT_KNOWN
from dit_dask.audit.statistics import by_name
from dit_dask.audit.verdict import further_columns
from dit_dask.engines.controls import RAW
from dit_dask.values.arrays import distinct
from dit_dask.values.schema import Schema
from dit_dask.values.table import Rows, Table

if TYPE_CHECKING:
    from dit_dask.audit.summary import TestSummary
    from dit_dask.values.arrays import Codes

MOST_SECRETS, MOST_SECRET_SHARE = 50, 0.05
FEW_SECRETS = 5  # so few cannot be made coarser
FEWEST_ROWS = 100
MOST_UNIQUE = 0.5  # of the rows: more than half alone with their value means an identifier
WORDS_OF_TEXT = 4  # on average in a label: free text
MOST_HOMOGENEOUS = 0.1  # of the published rows
MOST_DROPPED = 0.05  # of the rows read
MARKS_OF_MISSING = frozenset(("na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "-", "--", ".", "?", "missing"))


def data_warnings(rows: Rows, person_ids: Sequence[str] = ()) -> list[str]:
    """What the table itself makes doubtful; `person_ids` are columns that look like a person's id and repeat."""
    schemas = [each.table.schema for each in rows.by_secret.values()]
    found = [
        *_few_rows(rows),
        *_repeated_ids(person_ids),
        *rows.doubts,
        *_unused_rows(rows),
        *(line for schema in schemas for line in _many_secrets(schema, rows.used)),
        *_identifiers(rows.table),
        *(line for schema in schemas for line in _free_text(schema)),
        *(line for schema in schemas for line in _missing_labels(schema)),
    ]
    return list(dict.fromkeys(found))  # sensitive attributes of one table have the same quasi-identifiers


def _few_rows(rows: Rows) -> Iterator[str]:
    if rows.table.persons < FEWEST_ROWS:
        counted = f"rows of {rows.table.persons} persons" if rows.table.subject is not None else "rows"
        yield f"only {rows.used} {counted} are used: distributions of fewer than {FEWEST_ROWS} say little"


def _repeated_ids(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield (
            f"the column {name!r} looks like a person's id, and ids repeat: rows are not persons here, and removing one row "
            f"does not remove the person; set schema.subject: {name}"
        )


def _unused_rows(rows: Rows) -> Iterator[str]:
    if rows.dropped > MOST_DROPPED * rows.read:
        yield (
            f"{rows.dropped:,} of {rows.read:,} rows were dropped as incomplete: nothing is known about a release that has them"
        )


def _many_secrets(schema: Schema, rows: int) -> Iterator[str]:
    name, count = schema.sensitive.name, len(schema.sensitive.levels)
    if count > MOST_SECRETS or count > max(FEW_SECRETS, MOST_SECRET_SHARE * rows):
        yield (
            f"the sensitive attribute {name!r} has {count:,} values in {rows:,} rows: adversaries can hardly learn it, and "
            f"small distances mean little; {_coarsen(schema)}"
        )


def _coarsen(schema: Schema) -> str:
    """How to make the sensitive attribute coarser."""
    name, levels = schema.sensitive.name, schema.sensitive.levels
    if schema.sensitive.members:
        return f"bin or group its members {' and '.join(member.name for member in schema.sensitive.members)}"
    is_numeric = all(re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", str(level)) for level in levels)
    example = f"{{name: {name}, bins: 5}}" if is_numeric else f"{{name: group, from: {name}, map: FILE}}"
    return f"{'bin' if is_numeric else 'group'} it, such as sensitive: {example}"


def _identifiers(table: Table) -> Iterator[str]:
    for place, attribute in enumerate(table.schema.quasi_identifiers):
        share = _share_alone(table, table.codes[:, place])
        if share > MOST_UNIQUE:
            yield (
                f"the quasi-identifier {attribute.name!r} is unique in {100 * share:.1f}% of the {_counted(table)}: it is an "
                "identifier; "
                "remove it from the release, or generalise it before"
            )


def _share_alone(table: Table, codes: Codes) -> float:
    """The share of persons who are alone with a value of an attribute."""
    if table.subject is None:
        held = np.bincount(codes, table.weights)
        return int(held[held == 1].sum()) / table.rows
    pairs = distinct(codes * np.int64(table.subject.max() + 1) + table.subject)
    code, person = np.divmod(pairs, table.subject.max() + 1)
    is_alone = np.bincount(code)[code] == 1
    return len(distinct(person[is_alone])) / table.persons


def _counted(table: Table) -> str:
    return "rows" if table.subject is None else "persons"


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
    gates: Sequence[Gate],
    own: Mapping[str, Sequence[Gate]],
    summaries: Sequence[TestSummary],
    rows: Rows,
    controls: Sequence[ControlSummary] = (),
) -> list[str]:
    """What makes gates doubtful: tests without any, rows that were not tested, limits that the raw table meets, too."""
    warnings, complete = [], rows.read - rows.dropped - rows.left_out
    is_gated = bool(gates) or any(own.values())
    for one in summaries:
        if not one.is_sanitised:
            continue
        judged = [gate for gate in (*gates, *own.get(one.test, ())) if gate.judges(one.test)]
        limits = [gate for gate in judged if gate.kind == "statistic"]
        if is_gated and not [gate for gate in judged if gate.kind == "statistic" or one.claim_holds is not None]:
            warnings.append(f"{one.test}: no gate judges this test")
        warnings += _untested_rows(one) if limits else []
        warnings += [line for gate in limits for line in _raw_meets(gate, one.test, controls)]
    if is_gated and rows.used < complete:
        warnings.append(
            f"gates judge a table of {rows.used:,} of {complete:,} complete rows (data.limit or data.sample): the table that "
            "is published must be the same"
        )
    return warnings


def _untested_rows(summary: TestSummary) -> Iterator[str]:
    """Rows that gates say nothing about: outside a sample or list of rows, or skipped."""
    tested, persons, skipped = (int(summary.figure(name) or 0) for name in ("records", "subjects", "skipped"))
    if summary.sampling is not None:
        counted = "rows" if persons == tested else "persons"
        yield (
            f"{summary.test}: gates judge a sample of {persons:,} of {summary.sampling.rows:,} {counted}; "
            "a person outside the sample may lie above"
        )
    elif summary.parameters["records"] != "all":
        yield f"{summary.test}: gates judge the {tested:,} rows that the config lists; any other person may lie above"
    if skipped:
        yield f"{summary.test}: {skipped:,} rows could not be tested; gates say nothing about these persons"


def _raw_meets(gate: Gate, test: str, controls: Sequence[ControlSummary]) -> Iterator[str]:
    """Whether the raw table meets a gate of inference; its figure may be one of few rows and is not shown."""
    if by_name()[gate.name].power is None:
        return
    for control in controls:
        value = control.statistics.figure(gate.name, gate.key) if test in control.tests and control.control == RAW else None
        if value is not None and gate.holds(value):
            yield f"{test}: the raw table meets the gate {gate.text}, too: it asks for little"


def release_warnings(summaries: Sequence[TestSummary]) -> list[str]:
    """What makes releases doubtful whatever gates say."""
    checks = (_identical, _homogeneous, _constant, _published, _release_only)
    return [line for one in summaries if one.is_sanitised for check in checks for line in check(one)]


def baseline_warnings(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary]) -> list[str]:
    """What tests cannot be compared with, because an adversary failed there."""
    missing = [(test, control) for control in controls if control.error is not None for test in control.tests]
    unplanted = [one for one in summaries if one.is_sanitised and one.planting_error is not None]
    return [
        *(f"{test}: the control {one.control} is missing: an adversary failed on it ({one.error})" for test, one in missing),
        *(
            f"{one.test}: no person could be planted, because an adversary failed on the raw table ({one.planting_error}): "
            "gates on distances and gains cannot be passed"
            for one in unplanted
        ),
    ]


def _release_only(summary: TestSummary) -> Iterator[str]:
    only = summary.release_only
    if only is not None:
        yield f"{summary.test}: {NOT_KNOWN}; the own-row distance, at most {only.largest:.4g} here, is another figure"


def _identical(summary: TestSummary) -> Iterator[str]:
    found = summary.identical
    if found.repeated > 1:
        yield f"{summary.test}: every record occurs in a multiple of {found.repeated} rows: rows are repeated and not persons"
    elif found.classes:
        yield (
            f"{summary.test}: the claim holds in {found.classes:,} of {summary.classes or 0:,} classes only because of "
            "identical rows; if these are one person's, it is broken"
        )


def _homogeneous(summary: TestSummary) -> Iterator[str]:
    if summary.homogeneous >= MOST_HOMOGENEOUS:
        yield (
            f"{summary.test}: {100 * summary.homogeneous:.0f}% of the published rows are in classes with one "
            "sensitive value, which anybody can read off without any change of belief: see the measure discrimination"
        )


def _published(summary: TestSummary) -> Iterator[str]:
    """What an external sanitizer publishes that is not read as it stands there."""
    if summary.further_columns:
        yield f"{summary.test}: {further_columns(summary)}"
    nearest = 0 if summary.external is None else int(summary.external.probe["nearest"])
    if nearest:
        yield (
            f"{summary.test}: {nearest:,} published numbers are not among those of the data and were read as the nearest one; "
            "numbers in another unit or code would hide what they tell"
        )


def _constant(summary: TestSummary) -> Iterator[str]:
    if summary.delta == 0:
        yield (
            f"{summary.test}: no release differs from the full one to any adversary: the sanitizer ignores its input, "
            "returns a stored result, or there is nothing to learn"
        )
