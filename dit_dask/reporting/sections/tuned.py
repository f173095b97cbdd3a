"""What `dit tune` recommends: the curve, the values that no other one beats, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dit_dask.audit.statistics import number_of
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import Block, Drawing, Marked, ReportedRun, ReportSection, Span, Strong, Table, code, paragraph
from dit_dask.reporting.text import WORDS, number

NAME = "tune.json"


def tuned(run: ReportedRun) -> ReportSection | None:
    """The recommended value of the tuned parameter, from tune.json if it is there."""
    document = run.documents.get(NAME)
    if not document or not document.get("values"):
        return None
    name, recommended = document["parameter"], document["recommended"]
    head: list[Span] = [Strong("No value is recommended. "), document["reason"]]
    if recommended is not None:
        head = ["Recommended: ", Strong(f"{name} = {recommended}"), ". ", document["reason"]]
    table = _table(document)
    blocks: list[Block] = [paragraph(*head)]
    choices = _choices(document)
    if choices:
        wide, narrow = (charts.scatter(choices, str(document["loss"]), "delta", w).svg for w in (charts.WIDTH, charts.NARROW))
        caption = "Risk against loss of utility: no value beats one on the frontier in both."
        blocks.append(Drawing(caption, wide, narrow, table))
    else:
        blocks.append(table)
    blocks.append(paragraph("Tuned was ", code(name), " of ", code(document["sanitizer"]), "."))
    return ReportSection("tuned", "The recommended value", blocks)


def _table(document: Mapping[str, Any]) -> Table:
    figures = [name for name in ("delta", "mean", document.get("loss")) if name]
    rows: list[list[Span]] = [
        [
            number(one["value"]),
            *(number(number_of(one.get(name))) for name in figures),
            "yes" if "delta" in one["frontier"] else "no",
            Marked(WORDS[one["status"]], one["status"]),
        ]
        for one in document["values"]
    ]
    return Table("Values that were tried", [document["parameter"], *figures, "on the frontier", "result"], rows)


def _choices(document: Mapping[str, Any]) -> list[charts.Choice]:
    loss = document.get("loss")
    found = []
    for one in document["values"]:
        lost, risk = (number_of(one.get(name)) if name else None for name in (loss, "delta"))
        if lost is not None and risk is not None:
            words = f"{document['parameter']} = {one['value']}"
            best, chosen = "delta" in one["frontier"], one["value"] == document["recommended"]
            found.append(charts.Choice(words, lost, risk, best, chosen))
    return found
