"""Warnings and broken claims: what makes the verdict doubtful."""

from __future__ import annotations

from dit_dask.reporting.blocks import Block, Listing, ReportedRun, ReportSection, Span, Table, code, paragraph
from dit_dask.reporting.text import claim, number
from dit_dask.reporting.words import sanitizer_words


def doubts(run: ReportedRun) -> ReportSection | None:
    """What a reader must know before relying on the figures."""
    broken = [one for one in run.summaries if one.claim_holds is False]
    blocks: list[Block] = []
    if broken:
        rows: list[list[Span]] = [
            [code(one.test), sanitizer_words(one.parameters["sanitizer"]), claim(one), number(one.smallest_class)]
            for one in broken
        ]
        blocks += [
            paragraph("These releases do not have the property that their sanitizer claims; the check shares no code with it."),
            Table("Broken claims", ["test", "claimed", "holds", "smallest class"], rows),
        ]
    if run.verdict.warnings:
        blocks.append(Listing([[warning] for warning in run.verdict.warnings]))
    return ReportSection("warnings", "Warnings and broken claims" if broken else "Warnings", blocks) if blocks else None
