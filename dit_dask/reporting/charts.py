"""Every chart of a report, as SVG: cumulative distributions, bars of rates, panels of curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.errors import InputError, escape_text, quote
from dit_dask.measures.base import BarChart, CurvePanel, CurvePanels

if TYPE_CHECKING:
    from dit_dask.audit.summary import Curve
    from dit_dask.engines.influence import CurvePoint
    from dit_dask.values.arrays import Floats

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#3b8686", "#7a5230", "#555555", "#c71585", "#4169e1")
BASELINE, GRID, TEXT = "#9aa5b1", "#e3e3e3", "#333"
WIDTH = 760
LINE_HEIGHT = 18
LETTER = 7  # the width of a letter, seldom more


@dataclass(frozen=True)
class Figure:
    """An SVG text that notebooks show as it is."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Write the drawing to an SVG file."""
        from pathlib import Path

        if Path(path).suffix.lower() != ".svg":
            raise InputError(f"save writes SVG: the path must end with .svg; got {quote(str(path))}")
        Path(path).write_text(self.svg, "utf-8")


@dataclass(frozen=True)
class Frame:
    """The rectangle that curves are drawn in."""

    left: float
    top: float
    width: float
    height: float

    def across(self, share: float) -> float:
        """The x of a share of the width."""
        return self.left + share * self.width

    def up(self, share: float) -> float:
        """The y of a share of the height, from below."""
        return self.top + (1 - share) * self.height


def _escape(text: str) -> str:
    return escape(escape_text(text))


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="100%" role="img" '
        f'aria-label="{_escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">'
    )
    return head + "".join(parts) + "</svg>"


def _text(x: float, y: float, text: str, anchor: str = "start", size: int | None = None) -> str:
    font = "" if size is None else f' font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{font}>{_escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GRID}"/>'


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _legend(left: float, top: float, names: Sequence[str], colours: Iterable[str]) -> list[str]:
    """One line for each name, LINE_HEIGHT apart; a name that would end outside of the drawing is cut."""
    parts, longest = [], int((WIDTH - left - 30) / LETTER)
    for place, (name, colour) in enumerate(zip(names, colours, strict=False)):
        y = top + LINE_HEIGHT * place
        parts.append(f'<rect x="{left:g}" y="{y:g}" width="22" height="4" fill="{colour}"/>')
        parts.append(_text(left + 30, y + 7, _cut(name, longest)))
    return parts


def _grid(frame: Frame, columns: Mapping[float, str], rows: Mapping[float, str]) -> list[str]:
    """Lines and labels at shares of the width and of the height."""
    parts = []
    for share, label in columns.items():
        x = frame.across(share)
        parts += [_line(x, frame.top, x, frame.up(0)), _text(x, frame.up(0) + 18, label, "middle")]
    for share, label in rows.items():
        y = frame.up(share)
        parts += [_line(frame.left, y, frame.across(1), y), _text(frame.left - 8, y + 4, label, "end")]
    return parts


def _steps(frame: Frame, x: Iterable[float], y: Iterable[float], colour: str, dash: str = "") -> str:
    """A cumulative distribution: shares of the width against shares of the height, from the left edge to the right one."""
    path, previous = [f"M{frame.left:.1f},{frame.up(0):.1f}"], frame.up(0)
    for across, up in zip(x, y, strict=True):
        path.append(f"L{frame.across(across):.1f},{previous:.1f}L{frame.across(across):.1f},{frame.up(up):.1f}")
        previous = frame.up(up)
    path.append(f"L{frame.across(1):.1f},{previous:.1f}")
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'


SMALLEST = 1e-6
MOST_VERTICES = 400
PLOT = Frame(64, 16, WIDTH - 64 - 16, 336)


def cumulative(curves: Mapping[str, Curve]) -> Figure:
    """Draw the share of rows at or below each distance; distances below SMALLEST are drawn at the left edge."""
    finite = [distance[np.isfinite(distance)] for distance, _ in curves.values()]
    largest = max((float(part.max()) for part in finite if len(part)), default=1.0)
    high = math.ceil(math.log10(max(largest, 10 * SMALLEST)))
    positive = [part[part > SMALLEST].min() for part in finite if (part > SMALLEST).any()]
    low = min(math.floor(math.log10(min(positive, default=SMALLEST))), high - 1)

    def across(distance: Floats) -> Floats:
        place: Floats = (np.log10(np.clip(distance, 10.0**low, 10.0**high)) - low) / (high - low)
        return place

    powers = {(power - low) / (high - low): _power(power) for power in range(low, high + 1)}
    parts = _grid(PLOT, powers, {tenth / 10: f"{tenth * 10}%" for tenth in range(0, 11, 2)})
    parts.append(_text(PLOT.across(0.5), PLOT.up(0) + 38, "distance d (logarithmic)", "middle"))
    for place, (distance, share) in enumerate(curves.values()):
        keep = np.unique(np.linspace(0, len(distance) - 1, min(len(distance), MOST_VERTICES)).round().astype(int))
        dash = ' stroke-dasharray="6 3"' if place >= len(COLOURS) else ""
        parts.append(_steps(PLOT, across(distance[keep]), share[keep], COLOURS[place % len(COLOURS)], dash))
    legend = PLOT.up(0) + 56
    parts += _legend(PLOT.left, legend, list(curves), cycle(COLOURS))
    return Figure(_svg(WIDTH, legend + LINE_HEIGHT * len(curves) + 8, "Cumulative distribution of distances", parts))


RAREST = 0.001  # epsilons below are not drawn


def epsilon_delta(curve: Sequence[CurvePoint]) -> Figure:
    """Draw Pr[d >= epsilon] by epsilon: the largest of any person with its bounds, the mean, and the largest of the noise."""
    if not curve:  # of a run of an earlier version
        return Figure("")
    low, high = math.log10(RAREST), math.log10(max(1.0, *(point.epsilon for point in curve)))
    shown = [point for point in curve if point.epsilon >= RAREST]
    across = [(math.log10(point.epsilon) - low) / (high - low) for point in shown]
    ticks = {(math.log10(tick) - low) / (high - low): f"{tick:g}" for tick in (0.001, 0.01, 0.1, 1.0)}
    parts = _grid(PLOT, ticks, {tenth / 10: f"{tenth / 10:g}" for tenth in range(0, 11, 2)})
    parts.append(_text(PLOT.across(0.5), PLOT.up(0) + 38, "epsilon (logarithmic)", "middle"))
    lines = {
        "largest Pr[d ≥ epsilon] of any person": ([point.worst for point in shown], COLOURS[0], ""),
        "at most, for all persons and epsilons at once": ([point.at_most for point in shown], COLOURS[1], "6 3"),
        "at least": ([point.at_least for point in shown], COLOURS[2], "2 3"),
        "mean over persons": ([point.mean for point in shown], COLOURS[4], ""),
        "largest of any person, nothing removed": ([point.noise_worst for point in shown], BASELINE, ""),
    }
    for shares, colour, dash in lines.values():
        parts.append(_falling(PLOT, across, shares, colour, f' stroke-dasharray="{dash}"' if dash else ""))
    legend = PLOT.up(0) + 56
    parts += _legend(PLOT.left, legend, list(lines), [colour for _, colour, _ in lines.values()])
    return Figure(_svg(WIDTH, legend + LINE_HEIGHT * len(lines) + 8, "Pr[d >= epsilon] by epsilon", parts))


def _falling(frame: Frame, x: Sequence[float], y: Sequence[float], colour: str, dash: str) -> str:
    """Steps that hold each share up to the next point: what is known at an epsilon bounds all larger ones."""
    path = [f"M{frame.across(x[0]):.1f},{frame.up(y[0]):.1f}"]
    for across, up in zip([*x[1:], 1.0], [*y[1:], y[-1]], strict=True):
        path.append(f"H{frame.across(across):.1f}V{frame.up(up):.1f}")
    return f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 4 else f"1e{power}"


@singledispatch
def draw(chart: object) -> str:
    """Draw the chart that a measure describes."""
    raise TypeError(f"no drawing for {type(chart).__name__}")


BAR, GAP, BARS_TOP = 14, 12, 22
LONGEST_NAME, WIDEST_NAMES = 58, 420
LEGEND_LEFT = 24


@draw.register
def draw_bars(chart: BarChart) -> str:
    """Draw one bar for each group and series; what does not apply is left out."""
    left = min(WIDEST_NAMES, 24 + max((LETTER * min(len(name), LONGEST_NAME) for name in chart.groups), default=0))
    plot, several = WIDTH - left - 60, len(chart.series) > 1
    colours = (BASELINE, *COLOURS) if several else COLOURS
    bars, y = [], float(BARS_TOP)
    for name, values in chart.groups.items():
        bars.append(_text(left - 8, y + BAR * len(values) / 2 + 4, _cut(name, LONGEST_NAME), "end"))
        for value, colour in zip(values, cycle(colours), strict=False):
            if value is not None:
                size = f'width="{max(0.5, value * plot):.1f}" height="{BAR - 2}"'
                bars.append(f'<rect x="{left}" y="{y:g}" {size} fill="{colour}"/>')
                bars.append(_text(left + value * plot + 5, y + 10, f"{value:.3f}", size=10))
            y += BAR
        y += GAP
    axis = []
    for tick in range(5):
        x = left + tick / 4 * plot
        axis += [_line(x, BARS_TOP - 6, x, y), _text(x, BARS_TOP - 10, f"{tick / 4:g}", "middle", 10)]
    names = chart.series if several else ()
    height = y + LINE_HEIGHT * len(names) + 14
    return _svg(WIDTH, height, chart.title, [*axis, *bars, *_legend(LEGEND_LEFT, y + 9, names, cycle(colours))])


PANEL_WIDTH, PANEL_HEIGHT, PANEL_GAP, PANEL_TOP = 330, 220, 70, 24


@draw.register
def draw_panels(chart: CurvePanels) -> str:
    """Draw the share of records at or below each point, one panel beside the other."""
    parts: list[str] = []
    for place, (title, panel) in enumerate(chart.panels.items()):
        frame = Frame(PANEL_GAP + place * (PANEL_WIDTH + PANEL_GAP), PANEL_TOP, PANEL_WIDTH, PANEL_HEIGHT)
        parts += [_text(frame.across(0.5), frame.top - 8, title, "middle"), *_panel(frame, panel)]
    names = list(dict.fromkeys(name for panel in chart.panels.values() for name in panel.shares))
    legend = PANEL_TOP + PANEL_HEIGHT + 40
    width = PANEL_GAP + len(chart.panels) * (PANEL_WIDTH + PANEL_GAP)
    parts += _legend(PANEL_GAP, legend, names, cycle(COLOURS))
    return _svg(width, legend + LINE_HEIGHT * len(names), chart.title, parts)


def _panel(frame: Frame, panel: CurvePanel) -> list[str]:
    largest = max(panel.at) or 1.0
    quarters = [quarter / 4 for quarter in range(5)]
    parts = _grid(frame, {share: f"{largest * share:.3g}" for share in quarters}, {share: f"{share:.0%}" for share in quarters})
    at = [point / largest for point in panel.at]
    curves = zip(panel.shares.values(), cycle(COLOURS), strict=False)
    return parts + [_steps(frame, at, shares, colour) for shares, colour in curves]
