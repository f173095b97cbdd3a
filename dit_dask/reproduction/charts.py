"""Charts of a reproduction: our values as lines with their range over samples, published values as squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dit_dask.reporting.charts import Figure

COLOURS = ("#0072b2", "#c75300", "#00805d", "#a8497f", "#806600", "#444b54", "#6a3d9a", "#8c510a")
LEFT, TOP, WIDE, HIGH = 70.0, 34.0, 620.0, 300.0
FLOOR = 1e-6
_Across = Callable[[int], float]
_Up = Callable[[float], float]


@dataclass(frozen=True)
class Series:
    """A line: y by position on the axis, its range over samples where there is one, and published values."""

    name: str
    values: Sequence[float | None]
    ranges: Sequence[tuple[float, float] | None] = ()
    published: Sequence[float | None] = ()


def line_chart(title: str, axis: Sequence[str], series: Sequence[Series], *, log: bool = False) -> Figure:
    """Draw each series over the named positions; squares are published values."""
    heights = [y for one in series for y in _all_values(one)]
    low, high = _log_ends(heights) if log else (0.0, max([*heights, 1e-9]) * 1.05)

    def up(value: float) -> float:
        share = (math.log10(max(value, FLOOR)) - low) / (high - low) if log else (value - low) / (high - low)
        return TOP + (1 - share) * HIGH

    def across(place: int) -> float:
        return LEFT + WIDE * (place + 0.5) / len(axis)

    parts = [_text(LEFT + WIDE / 2, 16, title, "middle")]
    for tick, label in _ticks(low, high, log=log):
        y = TOP + (1 - (tick - low) / (high - low)) * HIGH
        parts.append(f'<line x1="{LEFT:g}" y1="{y:.1f}" x2="{LEFT + WIDE:g}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        parts.append(_text(LEFT - 8, y + 4, label, "end"))
    parts += [_text(across(place), TOP + HIGH + 18, name, "middle") for place, name in enumerate(axis)]
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        parts += _draw_series(one, colour, across, up)
        y = TOP + HIGH + 42 + 18 * number
        parts.append(f'<rect x="{LEFT:g}" y="{y - 8:g}" width="22" height="4" fill="{colour}"/>')
        parts.append(_text(LEFT + 30, y, one.name))
    bottom = TOP + HIGH + 42 + 18 * len(series)
    parts.append(_text(LEFT, bottom, "line: ours (bar: range over random samples); square: published"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 20:g} {bottom + 12:g}" role="img"'
    font = ' font-family="system-ui, sans-serif" font-size="12" fill="#333">'
    return Figure(f'{head} aria-label="{escape(title)}"{font}{"".join(parts)}</svg>')


def _draw_series(one: Series, colour: str, across: _Across, up: _Up) -> list[str]:
    parts, points = [], []
    for place, value in enumerate(one.values):
        if value is not None:
            points.append(f"{across(place):.1f},{up(value):.1f}")
            parts.append(f'<circle cx="{across(place):.1f}" cy="{up(value):.1f}" r="3" fill="{colour}"/>')
    for place, ends in enumerate(one.ranges):
        if ends is not None and ends[0] < ends[1]:
            x = f'x1="{across(place):.1f}" x2="{across(place):.1f}"'
            parts.append(f'<line {x} y1="{up(ends[0]):.1f}" y2="{up(ends[1]):.1f}" stroke="{colour}" stroke-width="1"/>')
    for place, value in enumerate(one.published):
        if value is not None:
            corner = f'x="{across(place) - 4:.1f}" y="{up(value) - 4:.1f}"'
            parts.append(f'<rect {corner} width="8" height="8" fill="none" stroke="{colour}" stroke-width="2"/>')
    return [f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>', *parts]


def _all_values(one: Series) -> list[float]:
    ends = [end for pair in one.ranges if pair is not None for end in pair]
    return [value for value in (*one.values, *ends, *one.published) if value is not None]


def _log_ends(heights: Sequence[float]) -> tuple[float, float]:
    positive = [max(value, FLOOR) for value in heights] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return float(low), float(max(high, low + 1))


def _ticks(low: float, high: float, *, log: bool) -> list[tuple[float, str]]:
    if log:
        return [(float(power), f"{10.0**power:g}") for power in range(int(low), int(high) + 1)]
    return [(low + (high - low) * quarter / 4, f"{low + (high - low) * quarter / 4:.3g}") for quarter in range(5)]


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def curves_of(pieces: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, tuple[object, object]]:
    """Stored distributions as the chart of a report takes them."""
    import numpy as np

    thin = slice(None, None, -4)  # from the last on, which is the largest; small files
    return {name: (np.array(distance)[thin][::-1], np.array(share)[thin][::-1]) for name, (distance, share) in pieces.items()}
