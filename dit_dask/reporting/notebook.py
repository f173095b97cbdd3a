"""How a notebook shows a finished run: the verdict in words and a table of its tests; every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import RunVerdict
from dit_dask.errors import escape_text
from dit_dask.reporting.scope import describe_checks, describe_reservations
from dit_dask.reporting.text import WORDS, claim, columns_in, verdict_lines

MOST_TESTS, MOST_LINES = 20, 10


def short_text(summaries: Sequence[TestSummary], verdict: RunVerdict, url: str) -> str:
    """One line: the verdict, how many tests, the largest delta, and where the run is."""
    known = [one for one in summaries if one.is_sanitised and one.delta is not None]
    worst = max(known, key=lambda one: one.delta or 0.0, default=None)
    delta = "" if worst is None else f", largest delta {worst.delta:.4g} ({worst.test})"
    return f"<Result {verdict.status}: {len(summaries)} test{'' if len(summaries) == 1 else 's'}{delta}; {url}>"


def result_html(summaries: Sequence[TestSummary], verdict: RunVerdict, url: str) -> str:
    """The verdict with the gates and warnings that explain it, and a table of the first tests."""
    columns = [column for column in columns_in("terminal") if column.label != "seconds"]
    header = ["test", *(column.title for column in columns), "delta found by", "claim holds"]
    rows = [
        [one.test, *(column.cell(one) for column in columns), one.worst_adversary or "-", claim(one)]
        for one in summaries[:MOST_TESTS]
    ]
    doubtful = [one for one in verdict.verdicts if not one.passed]
    doubtful.sort(key=lambda one: one.status != "failed")
    passed = [one for one in verdict.verdicts if one.passed]
    lines = [*verdict_lines(doubtful), *(f"warning: {text}" for text in verdict.warnings), *verdict_lines(passed)]
    words = " ".join([describe_checks(verdict), *describe_reservations(summaries, verdict)])
    parts = [f"<p><strong>{_text(WORDS[verdict.status])}</strong> {_text(words)}</p>"]
    parts += [f"<p>{'<br>'.join(map(_text, lines[:MOST_LINES]))}</p>"] if lines else []
    parts += [_table(header, rows)] if rows else []
    hidden = len(summaries) - len(rows), max(0, len(lines) - MOST_LINES)
    parts += [f"<p>{hidden[0]} more tests and {hidden[1]} more lines are in the report.</p>"] if any(hidden) else []
    return "".join([*parts, f"<p><small>{_text(url)}</small></p>"])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{_text(title)}</th>' for title in header)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: str) -> str:
    return escape(escape_text(value))
