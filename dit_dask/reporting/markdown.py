"""A run as Markdown, for comments on pull requests: verdict, tests, failed checks, warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.summary import TestSummary, worst_adversary
from dit_dask.audit.verdict import RunVerdict, Verdict
from dit_dask.errors import escape_text
from dit_dask.measures.base import Entries
from dit_dask.reporting.scope import describe_checks, describe_reservations
from dit_dask.reporting.text import NOTHING, WORDS, claim, control_names, measure_sections, number

SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "⚠️", "none": "ℹ️"}
MOST_ROWS = 50  # of a table: a comment has a limit
LONGEST = 300
SPECIAL = re.compile(r"[\\`*_{}\[\]#!|<>~&@$]|:(?=[/\w])|(?<=www)\.", re.IGNORECASE)


def markdown(name: str, summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict) -> str:
    """Write the comment; names and reasons cannot become markup, mentions or links."""
    lines = [f"## {SIGNS[verdict.status]} {WORDS[verdict.status]}: audit {escape_markdown(name)}", ""]
    lines += [_headline(summaries, verdict), ""]
    if summaries:
        lines += [*_table(["test", "delta", "mean", "found by", "claim holds"], _tests(summaries, verdict.controls)), ""]
    judged = [one for one in verdict.verdicts if not one.passed] or list(verdict.verdicts)
    if judged:
        lines += [*_table(["result", "test", "gate", "found"], [_check(one) for one in judged]), ""]
    for section in measure_sections(measures):
        if not section.detail:
            rows = [[number(cell) for cell in row] for row in section.rows]
            lines += [f"**{escape_markdown(section.title)}**", "", *_table(list(section.header), rows), ""]
    if verdict.warnings:
        count = len(verdict.warnings)
        lines += [f"<details><summary>{count} {'warning' if count == 1 else 'warnings'}</summary>", ""]
        lines += [f"- {escape_markdown(text)}" for text in verdict.warnings[:MOST_ROWS]] + ["", "</details>", ""]
    return "\n".join(lines).rstrip("\n")


def _headline(summaries: Sequence[TestSummary], verdict: RunVerdict) -> str:
    advice = ["Do not publish this release."] if verdict.status == "failed" else []
    reservations = map(escape_markdown, describe_reservations(summaries, verdict))
    return " ".join([describe_checks(verdict), *advice, *reservations])


def _tests(summaries: Sequence[TestSummary], controls: Sequence[ControlSummary]) -> Iterator[list[str]]:
    for one in summaries:
        yield [one.test, number(one.delta), number(one.figure("mean")), one.worst_adversary or NOTHING, claim(one)]
    for name, control in zip(control_names(controls), controls, strict=True):
        figures = [number(control.statistics.figure(key)) for key in ("delta", "mean")]
        yield [name, *figures, worst_adversary(control.adversaries) or NOTHING, NOTHING]


def _check(one: Verdict) -> list[str]:
    return [WORDS[one.status], one.test or NOTHING, one.gate, one.reason]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]] | Iterator[list[str]]) -> list[str]:
    every = list(rows)
    lines = [_row(header), "|" + " --- |" * len(header), *map(_row, every[:MOST_ROWS])]
    return [*lines, "", f"{len(every) - MOST_ROWS:,} more rows"] if len(every) > MOST_ROWS else lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escape_markdown, cells)) + " |"


def escape_markdown(text: str) -> str:
    """Write a text as itself, on one line, and no longer than a comment can bear."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return SPECIAL.sub(lambda match: f"&#{ord(match[0])};", escape_text(shown))
