"""Rounds, curves and alternatives as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dit_dask.audit.statistics import Figure, by_name
from dit_dask.reporting.text import FORMATS, NOTHING, WORDS, align

SHOWN: Sequence[tuple[str, str | None]] = (
    ("delta", None),
    ("mean", None),
    ("share_over", "0.1"),
    ("mean_gain", None),
    ("certainty_penalty", None),
    ("query_error", "0.5"),
    ("classes", None),
    ("smallest_class", None),
)


def figure_table(heads: Sequence[str], rows: Sequence[tuple[Sequence[str], Mapping[str, Figure], str]]) -> str:
    """Lay out rows of first cells, figures and a status; a figure that no row has is left out."""
    columns = [(by_name()[name], key) for name, key in SHOWN]
    columns = [(one, key) for one, key in columns if any(figures.get(one.label(key)) is not None for _, figures, _ in rows)]
    header = [*heads, *(one.title.format(key=key) for one, key in columns), "gates"]
    lines = [
        [*first, *(FORMATS[one.format](figures.get(one.label(key))) for one, key in columns), WORDS.get(status, NOTHING)]
        for first, figures, status in rows
    ]
    return align([header, *lines])
