"""Risk against loss of utility: one mark for each choice, and a line through those that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dit_dask.reporting.charts import canvas
from dit_dask.reporting.charts.canvas import LETTER, NARROW, WIDTH, Figure, Frame, Scale


@dataclass(frozen=True)
class Choice:
    """A choice with its loss and its risk; it is filled if nothing beats it, and `is_chosen` if it is recommended."""

    name: str
    loss: float
    risk: float
    is_best: bool = False
    is_chosen: bool = False


def scatter(choices: Sequence[Choice], loss: str, risk: str, width: int = WIDTH) -> Figure:
    """Draw the choices; the line joins the filled marks."""
    is_narrow = width <= NARROW
    frame = Frame(64, 28, width - 64 - 24, 320)
    across = Scale(0.0, max([1e-9, *(one.loss for one in choices)]))
    up = Scale(min([0.0, *(one.risk for one in choices)]), max([1e-9, *(one.risk for one in choices)]))
    ticks = {across.share(tick): f"{tick:g}" for tick in across.ticks(4 if is_narrow else 6)}
    parts = canvas.grid(frame, ticks, {up.share(tick): f"{tick:g}" for tick in up.ticks(6)})
    at = {one: (frame.across(across.share(one.loss)), frame.up(up.share(one.risk))) for one in choices}
    best = sorted((one for one in choices if one.is_best), key=lambda one: (one.loss, one.risk))
    if len(best) > 1:
        parts.append(canvas.path([at[one] for one in best], 0))
    for one, (x, y) in at.items():
        hint = f"{one.name}: {risk} {one.risk:.4g}, {loss} {one.loss:.4g}" + (", recommended" if one.is_chosen else "")
        parts.append(canvas.dot(x, y, 1 if one.is_chosen else 0, hint, is_filled=one.is_best))
        parts.append(_name(one.name, x, y, width))
    parts.append(canvas.text(frame.across(0.5), frame.up(0) + 38, loss, "middle"))
    parts.append(canvas.text(frame.left - 46, frame.top - 12, risk))
    return Figure(canvas.svg(width, frame.up(0) + 52, f"{risk} against {loss}", parts))


def _name(name: str, x: float, y: float, width: int) -> str:
    """The name of a choice, on the side where there is more room for it."""
    is_left = x > width / 2
    room = x if is_left else width - x
    shown = canvas.cut(name, min(30, int((room - 12) / LETTER)))
    return canvas.text(x - 8 if is_left else x + 8, y - 6, shown, "end" if is_left else "start", size=10)
