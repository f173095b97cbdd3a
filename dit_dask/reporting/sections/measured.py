"""What measures found: discrimination rates, synthetic data and whatever else is registered; each presents itself."""

from __future__ import annotations

from dit_dask.measures.base import Section
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import (
    LONGEST_CELL,
    Block,
    Drawing,
    ReportedRun,
    ReportSection,
    Span,
    Table,
    cut_name,
    paragraph,
    small,
    split_table,
)
from dit_dask.reporting.text import NOTHING, measure_sections, number

SHARED = "A value is named only where at least 10 records share it, unless a measure is set to show values."


def measured(run: ReportedRun) -> ReportSection | None:
    """All measures, one after the other, in the order of measures.json."""
    presented = measure_sections(run.measures)
    if not presented:
        return None
    blocks = [block for section in presented for block in _blocks(section)]
    return ReportSection("measures", "Measures", [*blocks, small(SHARED)])


def _blocks(section: Section) -> list[Block]:
    header, rows = _known_columns(section)
    tables = split_table(section.title, header, rows) if rows else []
    blocks: list[Block] = [paragraph(section.description)] if section.description else []
    if section.chart is not None:
        wide, narrow = (charts.draw(section.chart, width) for width in (charts.WIDTH, charts.NARROW))
        blocks.append(Drawing(section.chart.title, wide, narrow, tables[0] if tables else Table(section.title, ["–"], [])))
        tables = tables[1:]
    return [*blocks, *tables]


def _known_columns(section: Section) -> tuple[list[str], list[list[Span]]]:
    """The header and the rows without columns that apply to no row."""
    shown = [[cut_name(number(cell), LONGEST_CELL) for cell in row] for row in section.rows]
    kept = [place for place in range(len(section.header)) if place == 0 or any(row[place] != NOTHING for row in shown)]
    return [section.header[place] for place in kept], [[row[place] for place in kept] for row in shown]
