"""What every chart is made of, as SVG text: frames, axes, marks, legends, colours.

Colours are attributes, for notebooks and saved files, and classes, by which the style sheet of the report sets those of its
light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from dit_dask.errors import InputError, escape_text, quote

# told apart by people who see no red, no green or no blue, and 3 : 1 against white; lines have dashes, too
COLOURS = ("#0072b2", "#c75300", "#00805d", "#a8497f", "#806600", "#444b54", "#6a3d9a", "#8c510a", "#20807a", "#c2185b")
DARK_COLOURS = ("#5ab4e8", "#ff8f45", "#2fc99a", "#e79ac5", "#e6c84f", "#c9ced6", "#b9a0ee", "#d9a066", "#6ccfc6", "#ff7ab5")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4")
BASELINE, GRID, TEXT, LIMIT = "#7b8794", "#e1e4e8", "#333", "#b3261e"
WIDTH, NARROW = 760, 340  # of a page, and of a telephone
LINE_HEIGHT = 18
LETTER = 7  # the width of a letter of 12 pixels, seldom more


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


@dataclass(frozen=True)
class Scale:
    """Maps numbers from `low` to `high` to shares of a frame; what lies outside is drawn at the edge."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where a value is: 0 at the low end, 1 at the high one."""
        inside = min(max(value, self.low), self.high)
        if self.is_log:
            return (math.log10(inside) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (inside - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """At most so many round numbers on the scale: powers of ten, or multiples of 1, 2 or 5 times one."""
        if self.is_log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = max(1, math.ceil((last - first + 1) / most))
            return [10.0**power for power in range(first, last + 1, step)]
        rough = (self.high - self.low) / max(1, most - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        width = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        lowest = math.ceil(self.low / width - 1e-9)
        return [width * place for place in range(lowest, math.floor(self.high / width + 1e-9) + 1)]


def log_scale(values: Iterable[float], smallest: float, largest: float = math.inf) -> Scale:
    """The powers of ten around all positive values, from `smallest` on."""
    kept = [min(value, largest) for value in values if value > smallest] or [10 * smallest]
    low, high = math.floor(math.log10(min(kept)) + 1e-9), math.ceil(math.log10(max(kept)) - 1e-9)
    return Scale(10.0**low, 10.0 ** max(high, low + 1), is_log=True)


def power_name(value: float) -> str:
    """A power of ten as an axis shows it."""
    power = round(math.log10(value))
    return f"{10.0**power:g}" if -4 < power < 4 else f"1e{power}"


def escape_svg(text: str) -> str:
    """Make a text fit for SVG, and visible."""
    return escape(escape_text(text))


def svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """The whole drawing; `title` is read to people who do not see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="100%" role="img" class="chart" '
        f'aria-label="{escape_svg(title)}" font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">'
    )
    return head + "".join(parts) + "</svg>"


def text(x: float, y: float, words: str, anchor: str = "start", size: int | None = None) -> str:
    """One line of text."""
    font = "" if size is None else f' font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{font}>{escape_svg(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line of the grid."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GRID}" class="grid"/>'


def limit_line(x1: float, y1: float, x2: float, y2: float, hint: str) -> str:
    """A dashed line where a gate has its limit."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    style = f'stroke="{LIMIT}" stroke-width="1.5" stroke-dasharray="5 3" class="limit"'
    return f"<line {ends} {style}><title>{escape_svg(hint)}</title></line>"


def marked_line(x1: float, y1: float, x2: float, y2: float, hint: str) -> str:
    """A line where a reader should look, which is no limit."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{BASELINE}" stroke-width="3" class="threshold"><title>{escape_svg(hint)}</title></line>'


def colour(place: int) -> str:
    """The colour of a series."""
    return COLOURS[place % len(COLOURS)]


def dash(place: int) -> str:
    """The dashes of a series: another pattern for each, so that no two are told apart by their colour alone."""
    pattern = DASHES[place % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def dot(x: float, y: float, place: int, hint: str, *, is_filled: bool = True) -> str:
    """A mark of a series, with what it says."""
    shown = (
        f'fill="{colour(place)}" class="m{place % len(COLOURS)}"'
        if is_filled
        else f'fill="#fff" stroke="{colour(place)}" stroke-width="2" class="hollow l{place % len(COLOURS)}"'
    )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {shown}><title>{escape_svg(hint)}</title></circle>'


def hidden_dot(x: float, y: float, hint: str) -> str:
    """A place on a curve that tells its numbers to whoever points at it."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill-opacity="0" class="hit"><title>{escape_svg(hint)}</title></circle>'


def path(points: Sequence[tuple[float, float]], place: int, *, dashed: bool = True) -> str:
    """A line through points, in the colour of its series."""
    steps = "".join(f"{'L' if number else 'M'}{x:.1f},{y:.1f}" for number, (x, y) in enumerate(points))
    style = f'stroke="{colour(place)}" stroke-width="1.8" class="l{place % len(COLOURS)}"{dash(place) if dashed else ""}'
    return f'<path d="{steps}" fill="none" pointer-events="none" {style}/>'


def series(place: int, parts: Iterable[str]) -> str:
    """The marks of one series, which the reader can hide."""
    return f'<g data-series="{place}">{"".join(parts)}</g>'


def letters(name: str) -> int:
    """How many letters wide a name is when it is shown: escaped, and signs such as emoji are as wide as two."""
    shown = escape_text(name)
    return len(shown) if shown.isascii() else len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown)


def cut(name: str, longest: int) -> str:
    """Shorten a name to so many letters."""
    if letters(name) <= longest:
        return name
    kept = ""
    for letter in name[:longest]:
        if letters(kept + letter) > longest - 1:
            break
        kept += letter
    return f"{kept}…"


def legend(left: float, top: float, names: Sequence[str], width: float = WIDTH, *, dashed: bool = False) -> list[str]:
    """One line for each name, LINE_HEIGHT apart; a name that would end outside of the drawing is cut."""
    parts, longest = [], int((width - left - 34) / LETTER)
    for place, name in enumerate(names):
        y = top + LINE_HEIGHT * place
        if dashed:
            mark = path([(left, y + 2), (left + 22, y + 2)], place)
        else:
            mark = f'<rect x="{left:g}" y="{y:g}" width="22" height="4" {fill(place)}/>'
        parts.append(series(place, [mark, text(left + 30, y + 7, cut(name, longest))]))
    return parts


def fill(place: int) -> str:
    """The attributes of an area of a series."""
    return f'fill="{colour(place)}" class="m{place % len(COLOURS)}"'


def grid(frame: Frame, columns: Mapping[float, str], rows: Mapping[float, str]) -> list[str]:
    """Lines and labels at shares of the width and of the height."""
    parts = []
    for share, label in columns.items():
        x = frame.across(share)
        parts += [line(x, frame.top, x, frame.up(0)), text(x, frame.up(0) + 18, label, "middle")]
    for share, label in rows.items():
        y = frame.up(share)
        parts += [line(frame.left, y, frame.across(1), y), text(frame.left - 8, y + 4, label, "end")]
    return parts
