"""Worst case, average and the controls on one scale, and the sentence that explains delta for this data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dit_dask.audit.controls import ControlSummary
from dit_dask.audit.gates import Gate, parse
from dit_dask.audit.summary import TestSummary, worst_adversary
from dit_dask.engines.controls import RAW
from dit_dask.errors import InputError
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import (
    Block,
    Drawing,
    Marked,
    ReportedRun,
    ReportSection,
    Span,
    Strong,
    Table,
    code,
    paragraph,
    small,
)
from dit_dask.reporting.scope import describe_untested
from dit_dask.reporting.sections.verdict import worst_test
from dit_dask.reporting.text import NOTHING, Column, claim, columns_in, control_names, number
from dit_dask.reporting.words import delta_sentence, largest_distance

MOST_ROWS = 40


def scale(run: ReportedRun) -> ReportSection | None:
    """How much one person's record changes, of what it could change."""
    if not run.summaries:
        return None
    blocks: list[Block] = [*_sentences(run)]
    rows = scale_rows(run)
    if rows:
        blocks.append(_drawing(run, rows))
    blocks.append(_table(run))
    if run.verdict.has_controls:
        blocks.append(
            small(
                "Controls are not judged: raw is what leaks if nothing is done, suppressed what is left when nothing but the "
                "sensitive attribute is published."
            )
        )
    else:
        blocks.append(
            small("The controls (the raw and the suppressed table) were turned off by ", code("controls: false"), ".")
        )
    if any(one.withheld for one in run.summaries):
        blocks.append(
            small(
                "A dash where a test has rows: figures of fewer than 10 rows are about single persons and are not shown here."
            )
        )
    return ReportSection("scale", "How much one record changes", blocks)


def _sentences(run: ReportedRun) -> list[Block]:
    worst = worst_test(run.summaries)
    if worst is None or worst.delta is None:
        return []
    spans: list[Span] = [delta_sentence(worst.parameters, worst.delta)]
    spans.append(f" {_on_one_scale(run, worst)}")
    return [paragraph(*spans), *_above_raw(run, worst, worst.delta)]


def _above_raw(run: ReportedRun, worst: TestSummary, delta: float) -> list[Block]:
    """Why a release of classes can react more to one person than the raw table does."""
    own = [one for one in run.verdict.controls if one.control == RAW and worst.test in one.tests and one.sampled is None]
    found = [one.statistics.figure("delta") for one in own]
    if worst.classes is None or worst.repeats is not None or not any(raw is not None and raw < delta for raw in found):
        return []
    return [
        paragraph(
            "That is more than the raw table gives: without the person other classes are formed, which can move a belief far "
            "even if nothing is learned about the person. ",
            Strong("Gain"),
            " counts only what points to the true value: see the adversaries side by side.",
        )
    ]


def _on_one_scale(run: ReportedRun, worst: TestSummary) -> str:
    """As in: raw 1.14 … yours 0.51 … suppressed 0.02."""
    own = [control for control in run.verdict.controls if worst.test in control.tests]
    figures = [(control.control, control.statistics.figure("delta")) for control in own]
    places = [*figures[:1], ("yours", worst.delta), *figures[1:]]
    shown = " … ".join(f"{name} {value:.3g}" for name, value in places if value is not None)
    average = worst.figure("mean")
    whom = "all" if describe_untested(worst) is None else "the tested"
    middle = f" On average over {whom} persons it is {average:.3g}." if average is not None else ""
    return f"On one scale: {shown}.{middle}" if own else middle.strip()


def scale_rows(run: ReportedRun) -> list[charts.ScaleRow]:
    """Tests and controls that have figures, as the chart shows them: the raw table first, the suppressed one last."""
    tests = [(one.test, one.delta, one.figure("mean"), not one.is_sanitised) for one in run.summaries[:MOST_ROWS]]
    names = control_names(run.verdict.controls)
    controls = [
        (name, one.statistics.figure("delta"), one.statistics.figure("mean"), True)
        for name, one in zip(names, run.verdict.controls, strict=True)
    ]
    ordered = [*(row for row in controls if "raw" in row[0]), *tests, *(row for row in controls if "raw" not in row[0])]
    return [charts.ScaleRow(name, worst, mean, control) for name, worst, mean, control in ordered if worst is not None]


def gates_of(run: ReportedRun) -> list[Gate]:
    """The gates on statistics that the run was judged by, whether of the config or of one test."""
    texts = dict.fromkeys(one.gate for one in run.verdict.verdicts)
    measures = {entry.measure for entry in run.measures}
    gates = []
    for text in texts:
        try:
            gates.append(parse(text, "gates", measures))
        except InputError:  # a statistic of another version
            continue
    return [gate for gate in gates if gate.kind == "statistic" and gate.limit is not None]


def _drawing(run: ReportedRun, rows: Sequence[charts.ScaleRow]) -> Drawing:
    known = [largest for one in run.summaries if (largest := largest_distance(one.parameters)) is not None]
    largest = max(known, default=0.0)
    limits = [
        charts.ScaleLimit(gate.limit, gate.text)
        for gate in gates_of(run)
        if gate.name == "delta" and gate.limit is not None and math.isfinite(gate.limit)
    ]
    wide, narrow = (charts.scale(rows, largest, limits, width).svg for width in (charts.WIDTH, charts.NARROW))
    table = Table(
        "Worst case and average",
        ["test", "worst case (delta)", "average"],
        [[code(row.name), number(row.worst), number(row.average)] for row in rows],
    )
    return Drawing("Worst case and average of every test and control; dashed lines are limits of gates.", wide, narrow, table)


def _table(run: ReportedRun) -> Table:
    shown = [
        column for column in columns_in("report") if column.label in ("delta", "mean", "quantiles[0.99]", "smallest_class")
    ]
    header = ["test", *(column.title for column in shown), "delta found by", "claim holds"]
    rows: list[list[Span]] = [
        [code(one.test), *(column.cell(one) for column in shown), one.worst_adversary or NOTHING, _claim(one)]
        for one in run.summaries
    ]
    names = control_names(run.verdict.controls)
    for name, control in zip(names, run.verdict.controls, strict=True):
        rows.append([name, *_control_cells(control, shown), worst_adversary(control.adversaries) or NOTHING, NOTHING])
    return Table("Tests and controls", header, rows)


def _control_cells(control: ControlSummary, shown: Sequence[Column]) -> list[str]:
    return [column.show(control.statistics.figure(column.statistic.name, column.key)) for column in shown]


def _claim(summary: TestSummary) -> Span:
    words = claim(summary)
    return Marked(words, "failed") if summary.claim_holds is False else words
