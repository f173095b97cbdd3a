"""The cumulative distribution of distances as an SVG drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#3b8686", "#7a5230", "#555555", "#c71585", "#4169e1")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 400, 64, 16, 48
SMALLEST = 1e-6
MOST_VERTICES = 400

Curve: TypeAlias = "tuple[Floats, Floats]"


@dataclass(frozen=True)
class Figure:
    """An SVG text that notebooks show as it is."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        """Write the drawing to a file."""
        from pathlib import Path

        Path(path).write_text(self.svg, "utf-8")


def cumulative(curves: Mapping[str, Curve]) -> Figure:
    """Draw the share of rows at or below each distance; distances below SMALLEST are drawn at the left edge."""
    finite = [distance[np.isfinite(distance)] for distance, _ in curves.values()]
    largest = max((float(part.max()) for part in finite if len(part)), default=1.0)
    high = math.ceil(math.log10(max(largest, 10 * SMALLEST)))
    positive = [part[part > SMALLEST].min() for part in finite if (part > SMALLEST).any()]
    low = min(math.floor(math.log10(min(positive, default=SMALLEST))), high - 1)
    plot = WIDTH - LEFT - 16
    height = HEIGHT - TOP - BOTTOM

    def across(distance: Floats) -> Floats:
        capped = np.clip(distance, 10.0**low, 10.0**high)
        place: Floats = LEFT + (np.log10(capped) - low) / (high - low) * plot
        return place

    parts = [_axes(low, high, plot, height)]
    for number, (distance, share) in enumerate(curves.values()):
        keep = np.unique(np.linspace(0, len(distance) - 1, min(len(distance), MOST_VERTICES)).round().astype(int))
        steps, previous = [f"M{LEFT:.1f},{TOP + height:.1f}"], TOP + height
        for x, y in zip(across(distance[keep]), TOP + (1 - share[keep]) * height, strict=True):
            steps.append(f"L{x:.1f},{previous:.1f}L{x:.1f},{y:.1f}")
            previous = y
        steps.append(f"L{LEFT + plot:.1f},{previous:.1f}")
        dash = ' stroke-dasharray="6 3"' if number >= len(COLOURS) else ""
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<path d="{"".join(steps)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
    legend = HEIGHT + 8
    for number, name in enumerate(curves):
        y = legend + 18 * number
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{LEFT}" y="{y}" width="22" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 30}" y="{y + 7}">{escape(name)}</text>')
    total = legend + 18 * len(curves) + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="100%" role="img" '
        'aria-label="Cumulative distribution of distances" font-family="system-ui, sans-serif" font-size="12" fill="#333">'
    )
    return Figure(head + "".join(parts) + "</svg>")


def _axes(low: int, high: int, plot: int, height: int) -> str:
    lines = []
    for power in range(low, high + 1):
        x = LEFT + (power - low) / (high - low) * plot
        lines.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + height}" stroke="#e3e3e3"/>')
        lines.append(f'<text x="{x:.1f}" y="{TOP + height + 18}" text-anchor="middle">{_power(power)}</text>')
    for tenth in range(0, 11, 2):
        y = TOP + (1 - tenth / 10) * height
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + plot}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth * 10}%</text>')
    lines.append(
        f'<text x="{LEFT + plot / 2:.0f}" y="{TOP + height + 38}" text-anchor="middle">distance d (logarithmic)</text>'
    )
    return "".join(lines)


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 4 else f"1e{power}"
