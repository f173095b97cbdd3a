"""Every chart of a report, as SVG: tails, scales, figures over a parameter, bars of rates, panels of curves."""

from __future__ import annotations

from dit_dask.reporting.charts.canvas import BASELINE, COLOURS, NARROW, WIDTH, Figure
from dit_dask.reporting.charts.cumulative import TailLimit, cumulative, tail
from dit_dask.reporting.charts.lines import Panel, ScaleLimit, ScaleRow, over_parameter, scale
from dit_dask.reporting.charts.measured import draw

__all__ = [
    "BASELINE",
    "COLOURS",
    "NARROW",
    "WIDTH",
    "Figure",
    "Panel",
    "ScaleLimit",
    "ScaleRow",
    "TailLimit",
    "cumulative",
    "draw",
    "over_parameter",
    "scale",
    "tail",
]
