"""Two cumulative distributions side by side, as an SVG drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = {"synthetic": "#d1495b", "holdout": "#1b6ca8"}
WIDTH, HEIGHT, GAP, TOP, BOTTOM = 330, 220, 70, 24, 40
TITLES = {"dcr": "distance to the closest record", "nndr": "nearest by second nearest"}


def pair(curves: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Draw the share of records at or below each distance, one panel for each key, with a line for each colour."""
    panels = [
        _panel(TITLES.get(name, name), curve, GAP + place * (WIDTH + GAP)) for place, (name, curve) in enumerate(curves.items())
    ]
    legend = "".join(
        f'<rect x="{GAP + 120 * place}" y="{TOP + HEIGHT + BOTTOM}" width="22" height="4" fill="{colour}"/>'
        f'<text x="{GAP + 30 + 120 * place}" y="{TOP + HEIGHT + BOTTOM + 6}">{escape(name)}</text>'
        for place, (name, colour) in enumerate(COLOURS.items())
    )
    size = f"0 0 {GAP + len(panels) * (WIDTH + GAP)} {TOP + HEIGHT + BOTTOM + 16}"
    label = "Cumulative distributions of distances of synthetic and holdout records to training records"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" width="100%" role="img" aria-label="{label}" '
    return head + 'font-family="system-ui, sans-serif" font-size="12" fill="#333">' + "".join(panels) + legend + "</svg>"


def _panel(title: str, curve: Mapping[str, Sequence[float]], left: int) -> str:
    largest = max(curve["distance"]) or 1.0
    parts = [f'<text x="{left + WIDTH / 2:.0f}" y="{TOP - 8}" text-anchor="middle">{escape(title)}</text>']
    for quarter in range(5):
        x, y = left + WIDTH * quarter / 4, TOP + HEIGHT * (1 - quarter / 4)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + HEIGHT}" stroke="#e3e3e3"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{largest * quarter / 4:.3g}</text>')
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#e3e3e3"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{25 * quarter}%</text>')
    for name, colour in COLOURS.items():
        steps, previous = f"M{left},{TOP + HEIGHT}", 0.0
        for distance, share in zip(curve["distance"], curve[name], strict=True):
            x = left + WIDTH * distance / largest
            steps += f"L{x:.1f},{TOP + HEIGHT * (1 - previous):.1f}L{x:.1f},{TOP + HEIGHT * (1 - share):.1f}"
            previous = share
        parts.append(f'<path d="{steps}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    return "".join(parts)
