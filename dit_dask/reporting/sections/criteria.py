"""The three criteria of WP29, with the figures that this audit has for each."""

from __future__ import annotations

from dit_dask.reporting.blocks import Block, Marked, ReportedRun, ReportSection, Span, Table, code, paragraph, small
from dit_dask.reporting.criteria import Criterion, describe_criteria
from dit_dask.reporting.text import WORDS, number

ABOUT = (
    "The Article 29 Working Party asks three questions of anonymised data (opinion 05/2014, WP216). These are the figures of "
    "this audit that help to answer them. A question is answered only as far as a limit was set on a figure and could have "
    "been exceeded; whether the limits are right is for the owner of the data to decide."
)
NOT_MEASURED = "NOT MEASURED"


def criteria(run: ReportedRun) -> ReportSection | None:
    """Singling out, linkability and inference."""
    if not run.summaries and not run.measures:
        return None
    return ReportSection("criteria", "The three criteria of WP29", criteria_blocks(run))


def criteria_blocks(run: ReportedRun) -> list[Block]:
    """The answers, and below them the figures."""
    found = describe_criteria(run.summaries, run.measures, run.verdict)
    answers: list[list[Span]] = [[one.name, one.question, _status(one), one.conclusion] for one in found]
    figures: list[list[Span]] = [
        [criterion.name, code(one.label), number(one.value), Marked(WORDS[one.status], one.status), one.words, code(one.source)]
        for criterion in found
        for one in criterion.figures
    ]
    blocks: list[Block] = [
        paragraph(ABOUT),
        Table("The three criteria", ["criterion", "question", "gates", "what this audit says"], answers),
    ]
    if figures:
        header = ["criterion", "figure", "worst value", "gate", "what it is", "found in"]
        blocks.append(Table("Figures for the three criteria", header, figures))
    return [*blocks, small("The worst value is that of the release for which it is worst. The original is not among them.")]


def _status(criterion: Criterion) -> Span:
    return Marked(WORDS[criterion.status], criterion.status) if criterion.figures else NOT_MEASURED
