"""Adversaries side by side, and every figure of every test."""

from __future__ import annotations

from dit_dask.audit.adversary_summary import AdversarySummary
from dit_dask.audit.summary import TestSummary
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import (
    Block,
    Drawing,
    ReportedRun,
    ReportSection,
    Span,
    Strong,
    Table,
    code,
    paragraph,
    split_table,
)
from dit_dask.reporting.text import NOTHING, columns_in, control_names, number, share
from dit_dask.reporting.words import largest_distance

MOST_ROWS = 40


def adversaries(run: ReportedRun) -> ReportSection | None:
    """What each adversary found, and how often its predictions are right with and without the record."""
    pairs = [(test, name, one) for test in run.summaries for name, one in test.adversaries.items()]
    if not pairs:
        return None
    about = paragraph(
        Strong("d"),
        " says how far beliefs moved without the record; ",
        Strong("gain"),
        " says how far they moved towards the true value because of it. Of several adversaries the largest distance counts. ",
        Strong("attainable"),
        " is the largest distance of a person that could have been in this table, if it were published raw: a limit at or "
        "above it decides nothing.",
    )
    blocks: list[Block] = [about]
    if any(len(test.adversaries) > 1 for test in run.summaries):
        blocks.append(_drawing(pairs))
    influence = [
        [
            f"{test.test}: {name}{_worst(test, name)}",
            *_influence(one),
            number(test.attainable.distance if test.attainable else None),
        ]
        for test, name, one in pairs
    ]
    header = ["test: adversary", "engine", "delta", "mean d", "mean gain", "largest gain", "attainable"]
    blocks.append(Table("Influence of one record, by adversary", header, influence))
    predictions = [[f"{test.test}: {name}", *_predictions(one)] for test, name, one in pairs if one.accuracy]
    header = ["test: adversary", "right with", "right without", "difference, 95% interval", "sure (p ≥ 0.5): share, right"]
    if predictions:
        blocks.append(Table("Predictions of the sensitive value", header, predictions))
    return ReportSection("adversaries", "Adversaries side by side", blocks)


def _worst(test: TestSummary, name: str) -> str:
    return " (worst)" if name == test.worst_adversary and len(test.adversaries) > 1 else ""


def _influence(one: AdversarySummary) -> list[str]:
    return [one.engine, *(number(one.statistics.figure(name)) for name in ("delta", "mean", "mean_gain", "largest_gain"))]


def _predictions(one: AdversarySummary) -> list[str]:
    found = one.accuracy
    if found is None:
        return [NOTHING] * 4
    sure = found.confident["0.5"] if found.confident else None
    return [
        share(found.with_record),
        share(found.without_record),
        f"{share(found.interval[0])} to {share(found.interval[1])}",
        NOTHING if sure is None else f"{share(sure.coverage)}, {share(sure.accuracy)}",
    ]


def _drawing(pairs: list[tuple[TestSummary, str, AdversarySummary]]) -> Drawing:
    found = [(f"{test.test}: {name}", one.statistics) for test, name, one in pairs[:MOST_ROWS]]
    rows = [
        charts.ScaleRow(name, delta, statistics.figure("mean"))
        for name, statistics in found
        if (delta := statistics.figure("delta")) is not None
    ]
    largest = max((largest_distance(test.parameters) or 0.0 for test, _, _ in pairs), default=0.0)
    wide, narrow = (charts.scale(rows, largest, (), width).svg for width in (charts.WIDTH, charts.NARROW))
    numbers = [[row.name, number(row.worst), number(row.average)] for row in rows]
    table = Table("Worst case and average by adversary", ["test: adversary", "worst case (delta)", "average"], numbers)
    return Drawing("Worst case and average of every adversary.", wide, narrow, table)


def figures(run: ReportedRun) -> ReportSection | None:
    """Every figure of the table of statistics, for those who compare."""
    if not run.summaries:
        return None
    columns = columns_in("report")
    header = ["test", *(column.title for column in columns), "engine"]
    rows: list[list[Span]] = [[code(one.test), *(column.cell(one) for column in columns), one.engine] for one in run.summaries]
    names = control_names(run.verdict.controls)
    for name, control in zip(names, run.verdict.controls, strict=True):
        cells = [column.show(control.statistics.figure(column.statistic.name, column.key)) for column in columns]
        rows.append([name, *cells, f"sample of {control.sampled:,}" if control.sampled else NOTHING])
    return ReportSection("figures", "All figures of the tests", split_table("Figures of the tests", header, rows))
