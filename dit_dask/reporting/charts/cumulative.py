"""Cumulative distributions: the share of persons at or below each distance, or above it on two logarithmic scales."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.reporting.charts import canvas
from dit_dask.reporting.charts.canvas import LINE_HEIGHT, WIDTH, Figure, Frame, Scale

if TYPE_CHECKING:
    from dit_dask.audit.summary import Curve
    from dit_dask.values.arrays import Floats, Ints

SMALLEST = 1e-6
MOST_VERTICES, MOST_HINTS = 400, 32
PLOT = Frame(64, 16, WIDTH - 64 - 16, 336)


def cumulative(curves: Mapping[str, Curve]) -> Figure:
    """Draw the share of rows at or below each distance; distances below SMALLEST are drawn at the left edge."""
    scale = _distance_scale(curves)
    powers = {scale.share(power): canvas.power_name(power) for power in scale.ticks(12)}
    parts = canvas.grid(PLOT, powers, {tenth / 10: f"{tenth * 10}%" for tenth in range(0, 11, 2)})
    parts.append(canvas.text(PLOT.across(0.5), PLOT.up(0) + 38, "distance d (logarithmic)", "middle"))
    for place, (distance, share) in enumerate(curves.values()):
        keep = _thin(len(distance), MOST_VERTICES)
        parts.append(steps(PLOT, [scale.share(each) for each in distance[keep]], share[keep], place))
    legend = PLOT.up(0) + 56
    parts += canvas.legend(PLOT.left, legend, list(curves), dashed=True)
    return Figure(canvas.svg(WIDTH, legend + LINE_HEIGHT * len(curves) + 8, "Cumulative distribution of distances", parts))


def _distance_scale(curves: Mapping[str, Curve], more: Iterable[float] = ()) -> Scale:
    finite = [distance[np.isfinite(distance)] for distance, _ in curves.values()]
    ends = [float(end) for part in finite if len(part[part > SMALLEST]) for end in (part[part > SMALLEST].min(), part.max())]
    return canvas.log_scale([*ends, *more], SMALLEST)


def _thin(size: int, most: int) -> Ints:
    """At most so many positions of `size`, both ends among them."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(int))


def steps(frame: Frame, x: Iterable[float], y: Iterable[float], place: int) -> str:
    """A cumulative distribution: shares of the width against shares of the height, from the left edge to the right one."""
    points, previous = [(frame.left, frame.up(0))], frame.up(0)
    for across, up in zip(x, y, strict=True):
        points += [(frame.across(across), previous), (frame.across(across), frame.up(up))]
        previous = frame.up(up)
    return canvas.series(place, [canvas.path([*points, (frame.across(1), previous)], place)])


@dataclass(frozen=True)
class TailLimit:
    """Where a gate bounds the tail: at most `share` of the persons above the distance `at`."""

    at: float
    share: float
    gate: str


def tail(
    curves: Mapping[str, Curve],
    rows: Mapping[str, int],
    limits: Sequence[TailLimit] = (),
    thresholds: Sequence[float] = (),
    width: int = WIDTH,
) -> Figure:
    """Draw the share of persons with a distance above x, on two logarithmic scales; `rows` has the number of persons of each.

    A curve ends at delta, below one person; limits of gates and thresholds are drawn where they are.
    """
    frame = Frame(58, 16, width - 58 - 16, 300)
    across = _distance_scale(curves, [*thresholds, *(one.at for one in limits)])
    fewest = min((1 / max(1, rows[name]) for name in curves), default=0.1)
    up = canvas.log_scale([1.0, fewest, *(one.share for one in limits if one.share > 0)], SMALLEST / 1000)
    ticks = {across.share(power): canvas.power_name(power) for power in across.ticks(9 if width > 500 else 5)}
    parts = canvas.grid(frame, ticks, {up.share(power): _percent(power) for power in up.ticks(8)})
    for threshold in thresholds:
        x = frame.across(across.share(threshold))
        parts.append(_threshold_line(x, frame, f"{threshold:.3g}"))
    for place, (name, curve) in enumerate(curves.items()):
        parts.append(canvas.series(place, _tail_curve(frame, (across, up), name, curve, place)))
    parts += [_draw_limit(frame, (across, up), one) for one in limits]
    parts.append(canvas.text(frame.across(0.5), frame.up(0) + 38, "distance d", "middle"))
    top = frame.up(0) + 56
    parts += canvas.legend(frame.left - 46, top, list(curves), width, dashed=True)
    names = ", ".join(canvas.cut(name, 60) for name in curves)
    title = f"Share of persons with a distance above d, both logarithmic: {canvas.cut(names, 400)}"
    return Figure(canvas.svg(width, top + LINE_HEIGHT * len(curves) + 8, title, parts))


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


def _threshold_line(x: float, frame: Frame, name: str) -> str:
    ends = f'x1="{x:.1f}" y1="{frame.top:.1f}" x2="{x:.1f}" y2="{frame.up(0):.1f}"'
    style = f'stroke="{canvas.BASELINE}" stroke-dasharray="1 3" class="threshold"'
    return f"<line {ends} {style}><title>threshold {canvas.escape_svg(name)}</title></line>"


def _tail_curve(frame: Frame, scales: tuple[Scale, Scale], name: str, curve: Curve, place: int) -> list[str]:
    """Steps from the left edge to the largest distance, where nobody is left above."""
    across, up = scales
    distance, share = curve
    above = np.clip(1 - share, 0.0, 1.0)
    keep = _spread(above)
    xs = [frame.across(across.share(each)) for each in distance[keep]]
    ys = [frame.up(up.share(each)) if each > 0 else frame.up(0) for each in above[keep]]
    points, previous = [(frame.left, frame.up(up.share(1.0)))], frame.up(up.share(1.0))
    for x, y in zip(xs, ys, strict=True):
        points += [(x, previous), (x, y)]
        previous = y
    hints = _thin(len(keep), MOST_HINTS)
    dots = [
        canvas.hidden_dot(xs[i], ys[i], f"{name}: {_share_name(above[keep][i])} of persons above {distance[keep][i]:.3g}")
        for i in hints
    ]
    return [canvas.path(points, place), *dots]


def _share_name(share: float) -> str:
    return f"{100 * share:.3g}%" if share > 0 else "none"


def _spread(above: Floats) -> Ints:
    """At most MOST_VERTICES positions, evenly over the logarithm of the share above, so that the end of the tail is kept."""
    if len(above) <= MOST_VERTICES:
        return np.arange(len(above))
    logs = np.log10(np.maximum(above, above[above > 0].min() / 2))
    wanted = np.linspace(logs[0], logs[-1], MOST_VERTICES)
    return np.unique(np.append(np.searchsorted(-logs, -wanted), len(above) - 1).clip(0, len(above) - 1))


def _draw_limit(frame: Frame, scales: tuple[Scale, Scale], limit: TailLimit) -> str:
    """The corner that no curve may enter: right of the limit's distance and above its share."""
    across, up = scales
    x = frame.across(across.share(limit.at))
    y = frame.up(up.share(limit.share)) if limit.share > 0 and math.isfinite(limit.share) else frame.up(0)
    vertical = canvas.limit_line(x, y, x, frame.top, limit.gate)
    if y >= frame.up(0):
        return vertical
    return vertical + canvas.limit_line(x, y, frame.across(1), y, limit.gate)
