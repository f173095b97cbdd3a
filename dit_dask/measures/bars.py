"""Rates between 0 and 1 as horizontal bars in SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#9aa5b1", "#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#3b8686", "#7a5230")
WIDTH, THICK, GAP, TOP = 760, 14, 12, 22
LONGEST_NAME = 60


def bars(groups: Mapping[str, Sequence[float | None]], series: Sequence[str], title: str) -> str:
    """Draw one bar for each group and series; what does not apply is left out."""
    left = min(420, 24 + max((7 * min(len(name), LONGEST_NAME) for name in groups), default=0))
    plot = WIDTH - left - 60
    parts, y = [], TOP
    for name, values in groups.items():
        shown = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        middle = y + THICK * len(values) / 2 + 4
        parts.append(f'<text x="{left - 8}" y="{middle:.1f}" text-anchor="end">{escape(shown)}</text>')
        for place, value in enumerate(values):
            if value is not None:
                colour = COLOURS[place % len(COLOURS)] if len(series) > 1 else COLOURS[1]
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{max(0.5, value * plot):.1f}" height="{THICK - 2}" fill="{colour}"/>'
                    f'<text x="{left + value * plot + 5:.1f}" y="{y + 10}" font-size="10">{value:.3f}</text>'
                )
            y += THICK
        y += GAP
    axis = [
        f'<line x1="{left + tick / 4 * plot:.1f}" y1="{TOP - 6}" x2="{left + tick / 4 * plot:.1f}" y2="{y}" stroke="#e3e3e3"/>'
        f'<text x="{left + tick / 4 * plot:.1f}" y="{TOP - 10}" text-anchor="middle" font-size="10">{tick / 4:g}</text>'
        for tick in range(5)
    ]
    legend = []
    for place, name in enumerate(series if len(series) > 1 else ()):
        y += 18
        legend.append(f'<rect x="{left}" y="{y - 9}" width="22" height="8" fill="{COLOURS[place % len(COLOURS)]}"/>')
        legend.append(f'<text x="{left + 30}" y="{y - 1}">{escape(name)}</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 14}" width="100%" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="#333">'
    )
    return head + "".join(axis + parts + legend) + "</svg>"
