"""Charts that measures describe: bars of rates, panels of curves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from dit_dask.measures.base import BarChart, CurvePanel, CurvePanels
from dit_dask.reporting.charts import canvas
from dit_dask.reporting.charts.canvas import LETTER, LINE_HEIGHT, NARROW, WIDTH, Frame
from dit_dask.reporting.charts.cumulative import steps


@singledispatch
def draw(chart: object, _width: int = WIDTH) -> str:
    """Draw the chart that a measure describes."""
    raise TypeError(f"no drawing for {type(chart).__name__}")


BAR, GAP, BARS_TOP = 14, 12, 22
LONGEST_NAME, WIDEST_NAMES = 52, 420  # a name of wide letters fits, too
LEGEND_LEFT = 24


@draw.register
def draw_bars(chart: BarChart, width: int = WIDTH) -> str:
    """Draw one bar for each group and series; what does not apply is left out. Names are above the bars of a narrow drawing."""
    is_narrow = width <= NARROW
    beside = min(WIDEST_NAMES, 24 + max((LETTER * min(canvas.letters(name), LONGEST_NAME) for name in chart.groups), default=0))
    left, longest = (12, int((width - 24) / LETTER)) if is_narrow else (beside, LONGEST_NAME)
    plot = width - left - 60
    offset = 0 if len(chart.series) == 1 else -1  # of several series the first is the one to compare with
    bars, y = [], float(BARS_TOP)
    for name, values in chart.groups.items():
        if is_narrow:
            bars.append(canvas.text(left, y + 9, canvas.cut(name, longest)))
            y += BAR
        else:
            bars.append(canvas.text(left - 8, y + BAR * len(values) / 2 + 4, canvas.cut(name, longest), "end"))
        for place, value in enumerate(values):
            if value is not None:
                bars.append(_bar(left, y, value * plot, place + offset))
                bars.append(canvas.text(left + value * plot + 5, y + 10, f"{value:.3f}", size=10))
            y += BAR
        y += GAP
    axis = []
    for tick in range(5):
        x = left + tick / 4 * plot
        axis += [canvas.line(x, BARS_TOP - 6, x, y), canvas.text(x, BARS_TOP - 10, f"{tick / 4:g}", "middle", 10)]
    names = chart.series if len(chart.series) > 1 else ()
    height = y + LINE_HEIGHT * len(names) + 14
    return canvas.svg(width, height, chart.title, [*axis, *bars, *_bar_legend(names, y + 9, width)])


def _bar(x: float, y: float, size: float, place: int) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{max(0.5, size):.1f}" height="{BAR - 2}" {_bar_fill(place)}/>'


def _bar_fill(place: int) -> str:
    return f'fill="{canvas.BASELINE}" class="base"' if place < 0 else canvas.fill(place)


def _bar_legend(names: Sequence[str], top: float, width: int) -> list[str]:
    parts, longest = [], int((width - LEGEND_LEFT - 34) / LETTER)
    for place, name in enumerate(names):
        y = top + LINE_HEIGHT * place
        mark = f'<rect x="{LEGEND_LEFT}" y="{y:g}" width="22" height="4" {_bar_fill(place - 1)}/>'
        parts += [mark, canvas.text(LEGEND_LEFT + 30, y + 7, canvas.cut(name, longest))]
    return parts


PANEL_WIDTH, PANEL_HEIGHT, PANEL_GAP, PANEL_TOP = 330, 220, 70, 24


@draw.register
def draw_panels(chart: CurvePanels, width: int = WIDTH) -> str:
    """Draw the share of records at or below each point, one panel beside the other; below it in a narrow drawing."""
    is_narrow = width <= NARROW
    size = width - 70 if is_narrow else PANEL_WIDTH
    gap = 54 if is_narrow else PANEL_GAP
    parts: list[str] = []
    for place, (title, panel) in enumerate(chart.panels.items()):
        column, row = (0, place) if is_narrow else (place, 0)
        frame = Frame(gap + column * (size + gap), PANEL_TOP + row * (PANEL_HEIGHT + 60), size, PANEL_HEIGHT)
        parts += [canvas.text(frame.across(0.5), frame.top - 8, title, "middle"), *_panel(frame, panel)]
    names = list(dict.fromkeys(name for panel in chart.panels.values() for name in panel.shares))
    rows = len(chart.panels) if is_narrow else 1
    legend = PANEL_TOP + rows * (PANEL_HEIGHT + 60) - 20
    total = width if is_narrow else gap + len(chart.panels) * (size + gap)
    parts += canvas.legend(gap - 40, legend, names, total, dashed=True)
    return canvas.svg(total, legend + LINE_HEIGHT * len(names), chart.title, parts)


def _panel(frame: Frame, panel: CurvePanel) -> list[str]:
    largest = max(panel.at) or 1.0
    quarters = [quarter / 4 for quarter in range(5)]
    shares = {share: f"{share:.0%}" for share in quarters}
    parts = canvas.grid(frame, {share: f"{largest * share:.3g}" for share in quarters}, shares)
    at = [point / largest for point in panel.at]
    return parts + [steps(frame, at, shares, place) for place, shares in enumerate(panel.shares.values())]
