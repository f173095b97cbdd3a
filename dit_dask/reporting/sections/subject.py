"""What was audited: files, rows and persons, schema, sanitizers in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dit_dask.config.profiles import PROFILES
from dit_dask.reporting.blocks import Block, Facts, ReportedRun, ReportSection, Span, Spans, Table, code, codes
from dit_dask.reporting.scope import describe_limits, describe_rows
from dit_dask.reporting.words import sanitizer_words

MOST_FILES = 10


def subject(run: ReportedRun) -> ReportSection:
    """The second section: what the verdict is about."""
    manifest = run.manifest
    secrets = manifest.secrets
    blocks: list[Block] = [
        Facts(
            [
                ("audit", [code(manifest.config["name"])]),
                ("data", _files(run)),
                ("date", [manifest.timings.finished or manifest.timings.started]),
                ("rows", [describe_rows(manifest.input)]),
                *_tested(run),
                ("sensitive attributes" if len(secrets) > 1 else "sensitive attribute", codes(secrets)),
                ("quasi-identifiers", _quasi_identifiers(manifest.config["schema"])),
                *_person(manifest.config["schema"]),
                *_profile(manifest.config),
            ]
        )
    ]
    if run.summaries:
        rows: list[list[Span]] = [
            [code(one.test), sanitizer_words(one.parameters["sanitizer"]), *_secret(one.parameters)] for one in run.summaries
        ]
        several = any(len(row) > 2 for row in rows)
        header = ["test", "what is published", *(["sensitive attribute"] if several else [])]
        blocks.append(Table("The releases that were tested", header, rows))
    return ReportSection("audited", "What was audited", blocks)


def _tested(run: ReportedRun) -> list[tuple[str, Spans]]:
    limits = "; ".join(describe_limits(run.summaries))
    return [("tested", [limits or "everybody, in every test"])] if run.summaries else []


def _files(run: ReportedRun) -> Spans:
    files = list(run.manifest.files) or [run.manifest.config["data"]["source"]]
    shown = codes([str(name).rsplit("/", 1)[-1] or name for name in files[:MOST_FILES]])
    return shown if len(files) <= MOST_FILES else [*shown, f" and {len(files) - MOST_FILES:,} more files"]


def _quasi_identifiers(schema: Mapping[str, Any]) -> Spans:
    spans: list[Span] = []
    for name, column in schema["quasi_identifiers"].items():
        how = [str(column["kind"]), *(["with a hierarchy"] if column.get("hierarchy") else [])]
        spans += [", "] if spans else []
        spans += [code(name), f" ({', '.join(how)})"]
    return spans


def _person(schema: Mapping[str, Any]) -> list[tuple[str, Spans]]:
    name = schema.get("subject")
    spans: list[Span] = [code(name), " says whose rows belong together"] if name else ["every row is taken for one person"]
    return [("persons", spans)]


def _profile(config: Mapping[str, Any]) -> list[tuple[str, Spans]]:
    name = config.get("profile")
    words = PROFILES[name].provenance if name in PROFILES else ""
    return [("threshold profile", [code(name), f": {words}"])] if name else []


def _secret(parameters: Mapping[str, Any]) -> list[Span]:
    name = parameters.get("sensitive")
    return [code(name)] if name else []
