"""report.html: one file that a data protection officer can read, with no network and no record's values."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dit_dask.audit.gates import Verdict
from dit_dask.errors import InputError
from dit_dask.measures import MEASURES, kind_of
from dit_dask.measures.base import Entries, Section, plainly
from dit_dask.reporting import charts as figure
from dit_dask.storage.folder import Folder

MOST_CURVES = 16
Summary = Sequence[Mapping[str, Any]]


def write(folder: Folder, document: Mapping[str, Any], summary: Summary, verdicts: Sequence[Verdict]) -> None:
    """(Re)write the report of a run whose summary and distributions are there."""
    text = render(document, summary, verdicts, read_curves(folder), read_measures(folder))
    folder.write("report.html", text.encode())


def read_curves(folder: Folder) -> dict[str, figure.Curve]:
    """Read the cumulative distribution of each test."""
    import pyarrow.parquet as pq

    content = folder.read("distributions.parquet")
    if content is None:
        return {}
    frame = pq.read_table(io.BytesIO(content)).to_pandas()
    return {
        str(test): (group["distance"].to_numpy(), group["cumulative"].to_numpy())
        for test, group in frame.groupby("test", sort=False)
    }


def read_measures(folder: Folder) -> list[dict[str, Any]]:
    """Read the objects of measures.json."""
    try:
        entries: list[dict[str, Any]] = json.loads(folder.read("measures.json") or b"")
    except ValueError as error:
        raise InputError(f"{folder.url}: measures.json cannot be read; run it again to mend it") from error
    return entries


def render(
    document: Mapping[str, Any],
    summary: Summary,
    verdicts: Sequence[Verdict],
    curves: Mapping[str, figure.Curve],
    measures: Entries = (),
) -> str:
    """Fill the template; every value is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dit_dask.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": number, "claim": claim}
    shown = dict(list(curves.items())[:MOST_CURVES])
    return environment.get_template("report.html.j2").render(
        manifest=document,
        summary=summary,
        verdicts=[asdict(verdict) for verdict in verdicts],
        breached=[verdict for verdict in verdicts if not verdict.passed],
        worst=max(summary, key=lambda test: float(test["delta"]), default=None),
        sections=sections(measures),
        drawing=figure.cumulative(shown).svg if shown else "",
        hidden=len(curves) - len(shown),
    )


def sections(measures: Entries) -> list[Section]:
    """Let every measure present what it found; one whose package is gone is shown plainly."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for entry in measures:
        by_name.setdefault(entry["measure"], []).append(entry)
    presented = (kind_of(name).present if name in MEASURES else plainly for name in by_name)
    return [section for present, entries in zip(presented, by_name.values(), strict=True) for section in present(entries)]


def number(value: Any) -> str:
    """Show a number with four significant digits; what does not apply is a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else f"{value:.4g}"


def share(value: float) -> str:
    """Show a share as a percentage."""
    return f"{100 * value:.3g}%"


TABLE: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "test": lambda test: test["test"],
    "delta": lambda test: number(test["delta"]),
    "mean": lambda test: number(test["mean"]),
    "q0.99": lambda test: number(test["quantiles"]["0.99"]),
    "d>0.01": lambda test: share(test["share_over"]["0.01"]),
    "d>0.1": lambda test: share(test["share_over"]["0.1"]),
    "guess changed": lambda test: share(test["argmax_changed"]),
    "classes": lambda test: number(test["classes"]),
    "smallest": lambda test: number(test["smallest_class"]),
    "claim holds": lambda test: claim(test),
    "engine s": lambda test: number(test["seconds"]),
}


def claim(test: Mapping[str, Any]) -> str:
    """Say whether the sanitizer kept its promise, and for how many not."""
    if test.get("effective_epsilon"):  # samples can refute a claim about noise, never prove it
        loss = f"no: loses epsilon >= {number(test['effective_epsilon']['at_least'])}"
        return "not refuted" if test["claim_holds"] else loss
    if test["claim_holds"] is False:
        broken = test["claim_broken"]
        return f"no: {broken['classes']:,} classes, {broken['records']:,} records"
    return number(test["claim_holds"])


def text_table(summary: Summary) -> str:
    """Lay the summary out for a terminal or a log."""
    return columns([list(TABLE), *([cell(test) for cell in TABLE.values()] for test in summary)])


def measures_text(measures: Entries) -> str:
    """Lay the measures out for a terminal or a log."""
    blocks = [[section.header, *section.rows] for section in sections(measures) if not section.detail]
    return "\n\n".join(columns([[number(cell) for cell in row] for row in block]) for block in blocks)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Align rows of cells: the first column to the left, the rest to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
