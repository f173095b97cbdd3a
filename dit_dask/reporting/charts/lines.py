"""Figures of several tests on one scale, and figures over a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dit_dask.reporting.charts import canvas
from dit_dask.reporting.charts.canvas import LETTER, LINE_HEIGHT, NARROW, WIDTH, Figure, Frame, Scale

ROW = 26


@dataclass(frozen=True)
class ScaleRow:
    """One line of a scale: its name, its worst case and its average, and whether it is there for comparison only."""

    name: str
    worst: float
    average: float | None
    is_control: bool = False


@dataclass(frozen=True)
class ScaleLimit:
    """A limit that a gate sets on the scale."""

    at: float
    gate: str


def scale(rows: Sequence[ScaleRow], largest: float, limits: Sequence[ScaleLimit] = (), width: int = WIDTH) -> Figure:
    """Draw worst case (filled) and average (hollow) of each row on one linear scale from 0; limits are dashed lines."""
    finite = [row.worst for row in rows if math.isfinite(row.worst)] + [one.at for one in limits if math.isfinite(one.at)]
    high = max([*finite, largest if math.isfinite(largest) else 0.0, 1e-9])
    is_narrow = width <= NARROW
    longest = max((canvas.letters(row.name) for row in rows), default=0)
    left = 12.0 if is_narrow else min(320.0, 24 + LETTER * longest)
    pitch = 2 * LINE_HEIGHT + 4 if is_narrow else ROW
    frame = Frame(left, 20, width - left - 70, pitch * len(rows))
    axis = Scale(0.0, high)
    ticks = {axis.share(tick): f"{tick:g}" for tick in axis.ticks(4 if is_narrow else 8)}
    parts = canvas.grid(frame, ticks, {})
    parts += [
        canvas.limit_line(x, frame.top - 6, x, frame.up(0), one.gate)
        for one in limits
        for x in [frame.across(axis.share(one.at))]
    ]
    for place, row in enumerate(rows):
        y = frame.top + pitch * (place + (0.7 if is_narrow else 0.5))
        name = canvas.cut(row.name, int((width - 24 if is_narrow else left - 20) / LETTER))
        anchor, x = ("start", left) if is_narrow else ("end", left - 10)
        parts.append(canvas.text(x, y - 12 if is_narrow else y + 4, name, anchor))
        parts += _row(frame, axis, row, y)
    bottom = frame.up(0) + 38
    parts.append(canvas.text(frame.across(0.5), bottom, "distance d: ● worst case (delta), ○ average", "middle"))
    title = "Worst case and average on one scale: " + "; ".join(f"{canvas.cut(row.name, 40)} {row.worst:.3g}" for row in rows)
    return Figure(canvas.svg(width, bottom + 12, title, parts))


def _row(frame: Frame, axis: Scale, row: ScaleRow, y: float) -> list[str]:
    place = 5 if row.is_control else 0
    worst = frame.across(axis.share(row.worst))
    parts = []
    if row.average is not None:
        average = frame.across(axis.share(row.average))
        ends = f'x1="{average:.1f}" y1="{y:.1f}" x2="{worst:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="{canvas.colour(place)}" stroke-width="2" class="l{place}"/>')
        parts.append(canvas.dot(average, y, place, f"{row.name}: average {row.average:.4g}", is_filled=False))
    parts.append(canvas.dot(worst, y, place, f"{row.name}: worst case {row.worst:.4g}"))
    return [*parts, canvas.text(worst + 10, y + 4, f"{row.worst:.3g}")]


@dataclass(frozen=True)
class Panel:
    """Figures over a parameter: for each series its points, and limits that gates set on them."""

    title: str
    series: Mapping[str, Sequence[tuple[float, float]]]
    limits: Sequence[ScaleLimit] = ()


def over_parameter(
    parameter: str, panels: Sequence[Panel], *, is_log: bool, marked: float | None = None, width: int = WIDTH
) -> Figure:
    """Draw one panel below the other over the same parameter; `marked` is the recommended value."""
    values = sorted({x for panel in panels for points in panel.series.values() for x, _ in points})
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    low, high = values[0], values[-1]
    across = Scale(low, high, is_log=is_log) if high > low else Scale(low - 0.5, high + 0.5)
    parts: list[str] = []
    top = 28.0
    for panel in panels:
        frame = Frame(58, top, width - 58 - 24, 190)
        parts += [canvas.text(frame.left - 46, top - 12, panel.title), *_panel(frame, across, values, panel, names)]
        if marked is not None:
            x = frame.across(across.share(marked))
            parts.append(canvas.marked_line(x, frame.top, x, frame.up(0), f"recommended: {parameter} = {marked:g}"))
        top = frame.up(0) + 62
    parts.append(canvas.text(width / 2, top - 24, parameter, "middle"))
    parts += canvas.legend(12, top - 8, names, width, dashed=True)
    title = f"{', '.join(panel.title for panel in panels)} over {parameter}"
    return Figure(canvas.svg(width, top + LINE_HEIGHT * len(names), title, parts))


def _panel(frame: Frame, across: Scale, values: Sequence[float], panel: Panel, names: Sequence[str]) -> list[str]:
    heights = [y for points in panel.series.values() for _, y in points if math.isfinite(y)]
    low, high = min(0.0, *heights, 0.0), max([*heights, *(one.at for one in panel.limits if math.isfinite(one.at)), 1e-9])
    up = Scale(low, high)
    columns = _labels({across.share(value): f"{value:g}" for value in values}, frame)
    parts = canvas.grid(frame, columns, {up.share(tick): f"{tick:g}" for tick in up.ticks(5)})
    for limit in panel.limits:
        y = frame.up(up.share(limit.at))
        parts.append(canvas.limit_line(frame.left, y, frame.across(1), y, limit.gate))
    for name, points in panel.series.items():
        place = names.index(name)
        drawn = [(frame.across(across.share(x)), frame.up(up.share(y))) for x, y in points]
        dots = [canvas.dot(*at, place, f"{name} at {x:g}: {y:.4g}") for at, (x, y) in zip(drawn, points, strict=True)]
        parts.append(canvas.series(place, [canvas.path(drawn, place), *dots]))
    return parts


def _labels(labels: Mapping[float, str], frame: Frame) -> dict[float, str]:
    """Leave out labels that would touch the one before."""
    kept: dict[float, str] = {}
    end = -math.inf
    for share, label in sorted(labels.items()):
        half = LETTER * len(label) / 2
        if frame.across(share) - half > end + 6:
            kept[share] = label
            end = frame.across(share) + half
    return kept
