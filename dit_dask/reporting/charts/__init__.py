"""Every chart of a report, as SVG: tails, scales, figures over a parameter, bars of rates, panels of curves."""

from __future__ import annotations

from dit_dask.reporting.charts.canvas import BASELINE, COLOURS, NARROW, WIDTH, Figure
from dit_dask.reporting.charts.cumulative import TailLimit, cumulative, tail
from dit_dask.reporting.charts.lines import Panel, ScaleLimit, ScaleRow, over_parameter, scale
from dit_dask.reporting.charts.measured import draw
from dit_dask.reporting.charts.scatter import Choice, scatter

__all__ = [
    "BASELINE",
    "COLOURS",
    "NARROW",
    "WIDTH",
    "Choice",
    "Figure",
    "Panel",
    "ScaleLimit",
    "ScaleRow",
    "TailLimit",
    "cumulative",
    "draw",
    "over_parameter",
    "scale",
    "scatter",
    "tail",
]
