"""The persons at most risk: in a shareable report how to find them, in a private one their positions with reasons."""

from __future__ import annotations

from dit_dask.reporting.blocks import Block, Command, Listing, ReportedRun, ReportSection, Span, Table, code, paragraph
from dit_dask.reporting.text import number

HEADER = ["record", "row in the source", "d", "rows with the same values", "prediction changes", "found by"]


def worst(run: ReportedRun) -> ReportSection | None:
    """Positions of records are personal data: who knows the table knows who stands there."""
    if not any(one.delta is not None for one in run.summaries):
        return None
    if run.worst is None:
        blocks: list[Block] = [
            paragraph(
                "Positions of persons are not in this report, so that it can be shared. Who may read the personal data of this "
                "run sees the persons at most risk, why, and what would help:"
            ),
            Command(f"dit explain {run.name} --top 10"),
            paragraph("or a report with their positions: ", code(f"dit report {run.name} --private"), "."),
        ]
        return ReportSection("persons", "The persons at most risk", blocks)
    blocks = [paragraph("This report is personal data: a position tells who is at risk to whoever has the table.")]
    for test, records in run.worst.items():
        rows: list[list[Span]] = [
            [
                number(one["record"]),
                number(one["row"]),
                number(one["distance"]),
                number(one["multiplicity"]),
                number(one["predicted"] != one["predicted_without"]),
                number(one["adversary"]),
            ]
            for one in records
        ]
        blocks.append(Table(f"The persons at most risk in {test}", HEADER, rows))
        reasons = run.reasons.get(test)
        if reasons:
            blocks += [paragraph("Why, and what would help:"), Listing([[words] for words in reasons])]
        else:
            blocks.append(paragraph("Why, and what would help: ", code(f"dit explain {run.name} --test {test}"), "."))
    return ReportSection("persons", "The persons at most risk", blocks)
