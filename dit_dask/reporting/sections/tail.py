"""The tail where it matters: the share of persons above each distance, with thresholds and gates."""

from __future__ import annotations

import math

from dit_dask.audit.gates import OPERATORS, Gate
from dit_dask.audit.summary import Curve
from dit_dask.distances import THRESHOLDS
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import Block, Drawing, ReportedRun, ReportSection, Span, Table, code, paragraph, small
from dit_dask.reporting.sections.scale import gates_of
from dit_dask.reporting.text import number, share

MOST_CURVES = 10


def draw_tail(run: ReportedRun, width: int = charts.WIDTH) -> charts.Figure | None:
    """Draw the tails of the first tests; None where no test has one."""
    curves, counted = _curves(run)
    if not curves:
        return None
    limits = [limit for gate in gates_of(run) if (limit := _limit(gate)) is not None]
    return charts.tail(dict(list(curves.items())[:MOST_CURVES]), counted, limits, tuple(THRESHOLDS.values()), width)


def _curves(run: ReportedRun) -> tuple[dict[str, Curve], dict[str, int]]:
    """The distribution of each test that has one, and how many persons it is of."""
    counted = {one.test: int(one.figure("subjects") or one.figure("records") or 0) for one in run.summaries}
    return {test: curve for test, curve in run.curves.items() if counted.get(test) and len(curve[0])}, counted


def tail(run: ReportedRun) -> ReportSection | None:
    """How many persons are how much at risk."""
    wide, narrow = draw_tail(run), draw_tail(run, charts.NARROW)
    if wide is None or narrow is None:
        return None
    caption = (
        "Share of persons whose distance is above d, both axes logarithmic. Dotted lines are thresholds; no curve may enter "
        "the corner above and right of a dashed line, which is a gate."
    )
    blocks: list[Block] = [
        paragraph("Few persons may be at high risk while the average is low. Each curve ends at delta, the worst case."),
        Drawing(caption, wide.svg, narrow.svg, _numbers(run)),
    ]
    hidden = len(_curves(run)[0]) - MOST_CURVES
    if hidden > 0:
        blocks.append(small(f"{hidden} more tests are in ", code("distributions.parquet"), "."))
    return ReportSection("tail", "How many persons are at risk", blocks)


def _limit(gate: Gate) -> charts.TailLimit | None:
    """A gate as a corner of the tail: delta and quantiles bound the distance, share_over bounds the share."""
    if not OPERATORS[gate.symbol].is_upper_limit or gate.limit is None or not math.isfinite(gate.limit):
        return None
    if gate.name == "delta":
        return charts.TailLimit(gate.limit, 0.0, gate.text)
    key = float(gate.key) if gate.key is not None else math.nan
    if gate.name == "quantiles":
        return charts.TailLimit(gate.limit, 1 - key, gate.text)
    return charts.TailLimit(key, gate.limit, gate.text) if gate.name == "share_over" else None


def _numbers(run: ReportedRun) -> Table:
    levels = ("0.5", "0.9", "0.99", "0.999")
    header = ["test", *(f"d>{key}" for key in THRESHOLDS), *(f"q{level}" for level in levels[2:]), "delta"]
    rows: list[list[Span]] = [
        [
            code(one.test),
            *(share(one.figure("share_over", key)) for key in THRESHOLDS),
            *(number(one.figure("quantiles", level)) for level in levels[2:]),
            number(one.delta),
        ]
        for one in run.summaries
    ]
    return Table("Share of persons above each threshold, and the distances of the highest 1% and 0.1%", header, rows)
