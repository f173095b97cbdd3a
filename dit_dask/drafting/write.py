"""The drafted config as YAML with comments, and the hierarchy files beside it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dit_dask.config.document import default_name
from dit_dask.config.yaml import parse_yaml
from dit_dask.drafting.columns import ColumnDraft
from dit_dask.drafting.proposal import TableDraft, checked_config, hierarchy_lines, sensitive_document
from dit_dask.errors import InputError, escape_text
from dit_dask.inputs.dialect import Dialect
from dit_dask.inputs.load import load
from dit_dask.storage.redaction import public_url
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def write_draft(draft: TableDraft, target: str) -> list[str]:
    """Write the config and its hierarchies, and return their paths; nothing is overwritten."""
    path = Path(target)
    folder = path.parent
    listed = [name for name in draft.quasi_identifiers if hierarchy_lines(draft.columns[name])]
    plain = [_file_name(name) for name in listed]
    names = {  # two columns may differ only in signs that no file name has
        name: f"{file}.csv" if plain.count(file) == 1 else f"{file}-{place}.csv"
        for place, (name, file) in enumerate(zip(listed, plain, strict=True), 1)
    }
    hierarchies = f"{path.stem}-hierarchies"
    files = {folder / hierarchies / file: _to_csv(hierarchy_lines(draft.columns[name])) for name, file in names.items()}
    text = draft_text(draft, path, {name: f"{hierarchies}/{file}" for name, file in names.items()})
    config = checked_config(parse_yaml(text, str(path)), str(folder.resolve()))
    content = {path: text, **files}
    for file in content:
        if file.exists():
            raise InputError(f"dit init: {file} exists and is not overwritten; choose another place with --to FILE")
    for file, lines in content.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as opened:
                opened.write(lines)
        except OSError as error:
            raise InputError(f"dit init: cannot write {file}: {error.strerror}") from error
    try:
        load(config)
    except InputError as error:
        raise InputError(f"dit init: {path} is written, and needs a change: {error}", hidden=error.hidden) from error
    return [str(file) for file in content]


def _file_name(column: str) -> str:
    return re.sub(r"[^\w.-]+", "-", column).strip("-.") or "column"


def _to_csv(lines: list[list[str]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=";", lineterminator="\n").writerows(lines)
    return file.getvalue()


def draft_text(draft: TableDraft, path: Path, files: dict[str, str]) -> str:
    """The config as text; `files` are the hierarchies by column."""
    lines = [
        f"# Drafted by dit init from {escape_text(public_url(draft.source))}:",
        f"# {draft.rows:,} rows, {len(draft.columns)} columns.",
        "# Every choice is a guess beside its evidence: read it, change it, then",
        f"#   dit run {path.name}",
        "version: 1",
        f"name: {default_name(draft.source)}",
        "data:",
        f"  source: {_scalar(_relative(draft.source, path))}",
        *_data_lines(draft),
        "schema:",
        *_subject_lines(draft),
        "  quasi_identifiers:            # what an adversary may know about a person, the most identifying column first",
        *(line for name in draft.quasi_identifiers for line in _attribute_lines(draft, name, files.get(name))),
        *_left_out_lines(draft),
        *_sensitive_lines(draft),
        "tests:",
        "  - sanitizer: {name: mondrian, k: [2, 5, 10]}   # a list is a sweep: one test for each k",
        "gates:",
        "  # Removing a person changes what adversaries believe about that person: d, from 0 (no change) to 2; the largest is",
        "  # delta. Gain is how far beliefs move towards the truth because of the person's own record. The run exits with 1 if",
        "  # a test fails a gate, or if a gate cannot be judged on this table. The limits are yours to choose.",
        '  - "mean_gain <= 0.05"        # on average a record adds at most 5 points to the belief in its own secret',
        '  - "share_over[0.5] <= 0.1"   # at most 10% of the persons have a d over 0.5',
        "output: runs/",
        "seed: 7",
    ]
    return "\n".join(lines) + "\n"


def _data_lines(draft: TableDraft) -> Iterator[str]:
    if draft.dialect is not None and draft.dialect != Dialect():
        keys = {key: value for key, value in asdict(draft.dialect).items() if value != getattr(Dialect(), key)}
        yield f"  csv: {_flow(keys)}   # found by looking at the file"
    used = [*draft.quasi_identifiers, *draft.sensitive]
    marks = {name: list(draft.columns[name].marks) for name in used if draft.columns[name].marks}
    if marks:
        yield f"  missing: {_flow(marks)}   # these cells look like marks of missing values; their rows are dropped and counted"
    yield "  # limit: 10000                # the first rows only, to try things out"


def _subject_lines(draft: TableDraft) -> Iterator[str]:
    if draft.subject is None:
        yield "  # subject: COLUMN             # whose rows belong together; no column seems to repeat for a person"
        return
    column = draft.columns[draft.subject]
    evidence = f"{column.distinct:,} values in {draft.rows:,} rows"
    yield f"  subject: {_scalar(draft.subject)}   # whose rows belong together: {evidence}; without it every row is a person"


def _attribute_lines(draft: TableDraft, name: str, file: str | None) -> Iterator[str]:
    column, risk = draft.columns[name], draft.risks[name]
    keys: dict[str, Any] = {key: value for key, value in asdict(column.attribute).items() if value is not None}
    if isinstance(keys.get("hierarchy"), dict):
        keys["hierarchy"] = {key: list(value) for key, value in keys["hierarchy"].items() if value is not None}
    if file is not None:
        keys["hierarchy"] = file
    yield f"    # {column.evidence}; rate {risk.rate:.2f} over people, {risk.alone:.1%} of rows alone{_listing(column, file)}"
    yield f"    {_scalar(name)}: {_flow(keys)}"


def _listing(column: ColumnDraft, file: str | None) -> str:
    if file is not None:
        return "; the file lists its categories, to be grouped as you like"
    if column.attribute.kind == "categorical" and column.rare:
        return f"; {column.rare:,} values are shared by fewer than {MIN_DISCLOSED_COUNT} rows, so no file lists them"
    return ""


def _left_out_lines(draft: TableDraft) -> Iterator[str]:
    for name, column in draft.columns.items():
        if name in (draft.subject, *draft.sensitive, *draft.quasi_identifiers):
            continue
        reason = column.left_out or f"it identifies less than those above: rate {draft.risks[name].rate:.2f} over people"
        yield f"    # left out: {_scalar(name)}: {reason}"


def _sensitive_lines(draft: TableDraft) -> Iterator[str]:
    columns = [draft.columns[name] for name in draft.sensitive]
    documents = [sensitive_document(column) for column in columns]
    notes = [
        f"{column.distinct:,} values{'; in bins of equal frequency' if 'bins' in document else ''}"
        for column, document in zip(columns, ([] if isinstance(one, str) else one for one in documents), strict=True)
    ]
    if len(documents) == 1:
        yield f"  # what nobody should infer from one person's record: {notes[0]}"
        yield f"  sensitive: {_value(documents[0])}"
        return
    yield "  # what nobody should infer from one person's record; every test is made for each of these"
    yield "  sensitive:"
    for document, note in zip(documents, notes, strict=True):
        yield f"    - {_value(document)}   # {note}"


def _relative(source: str, path: Path) -> str:
    """Inputs of a config are relative to it."""
    if "://" in source or os.path.isabs(source):
        return source
    return os.path.relpath(source, path.parent)


def _flow(document: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{_scalar(key)}: {_value(value)}" for key, value in document.items()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return _flow(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value)


def _scalar(text: str) -> str:
    """Write a text so that YAML reads it as this text."""
    is_plain = re.fullmatch(r"[^\W\d][\w./-]*", text) is not None and text.casefold() not in YAML_WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())
