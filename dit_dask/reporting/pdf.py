"""A report as PDF, from the same sections as the page, without a browser."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from functools import singledispatchmethod
from importlib.resources import as_file, files
from typing import Any

from dit_dask.errors import escape_text
from dit_dask.reporting.blocks import (
    Command,
    Drawing,
    Facts,
    Listing,
    Notice,
    Paragraph,
    ReportSection,
    Span,
    Spans,
    Strong,
    Table,
)

FONT = "DejaVu"
SIZE, SMALL, TITLE, HEADING = 9.5, 8.0, 17.0, 13.0  # points
MARGIN, LINE = 15.0, 5.0  # millimetres
COLOURS = {"passed": (26, 110, 55), "failed": (179, 38, 30), "inconclusive": (122, 82, 0), "none": (87, 96, 106)}
MOST_CELL = 400  # letters of a cell: a longer one would not fit on a page
WIDEST = 30  # letters that a column is given room for


def render_pdf(title: str, sections: Sequence[ReportSection], date: str) -> bytes:
    """Lay the sections out on A4; the same sections give the same bytes."""
    return PdfWriter(title, date).write(sections)


class PdfWriter:
    """Writes blocks below each other."""

    def __init__(self, title: str, date: str) -> None:
        from fpdf import FPDF

        class Pages(FPDF):
            """Pages that are numbered."""

            def footer(self) -> None:
                self.set_y(-12)
                self.set_font(FONT, size=SMALL)
                self.cell(0, 5, f"{self.page_no()} / {{nb}}", align="C")

        self._pdf: Any = Pages(format="A4")
        with as_file(files("dit_dask.reporting") / "fonts") as folder:
            self._pdf.add_font(FONT, "", folder / "DejaVuSans.ttf")
            self._pdf.add_font(FONT, "B", folder / "DejaVuSans-Bold.ttf")
        font: Any = self._pdf.fonts[FONT.lower()]
        self._known = set(font.cmap)
        self._title = self._safe(title)
        self._pdf.set_margin(MARGIN)
        self._pdf.set_auto_page_break(auto=True, margin=MARGIN)
        self._pdf.set_title(self._title)
        self._pdf.set_lang("en")
        self._pdf.set_creation_date(datetime.fromisoformat(date))
        self._pdf.set_font(FONT, size=SIZE)

    def write(self, sections: Sequence[ReportSection]) -> bytes:
        """Write all sections and return the file."""
        pdf = self._pdf
        pdf.add_page()
        self._heading(self._title, TITLE, 0)
        for section in sections:
            self._heading(self._safe(section.title), HEADING, 1)
            for block in section.blocks:
                self._write(block)
                pdf.ln(1.5)
        return bytes(pdf.output())

    def _heading(self, words: str, size: float, level: int) -> None:
        pdf = self._pdf
        if pdf.will_page_break(30):
            pdf.add_page()
        pdf.ln(3 if level else 0)
        pdf.start_section(words, level=level)
        pdf.set_font(FONT, "B", size)
        pdf.multi_cell(0, size / 2, words, new_x="LMARGIN", new_y="NEXT", align="L")
        pdf.set_font(FONT, size=SIZE)
        pdf.ln(1)

    def _safe(self, text: str) -> str:
        """What the font has; other letters by their number, as U+1F600."""
        return "".join(letter if ord(letter) in self._known else f"<U+{ord(letter):04X}>" for letter in escape_text(text))

    def _words(self, spans: Spans) -> str:
        return "".join(self._safe(_text(span)) for span in spans)

    @singledispatchmethod
    def _write(self, block: object) -> None:
        raise TypeError(f"no PDF for {type(block).__name__}")

    @_write.register
    def _(self, block: Paragraph) -> None:
        self._spans(block.spans, SMALL if block.small else SIZE)

    def _spans(self, spans: Spans, size: float = SIZE) -> None:
        for span in spans:
            self._pdf.set_font(FONT, "B" if isinstance(span, Strong) else "", size)
            self._pdf.write(LINE, self._safe(_text(span)))
        self._pdf.set_font(FONT, size=SIZE)
        self._pdf.ln(LINE)

    @_write.register
    def _(self, block: Notice) -> None:
        top = self._pdf.get_y()
        self._pdf.set_left_margin(MARGIN + 4)
        for paragraph in block.paragraphs:
            self._pdf.set_x(MARGIN + 4)
            self._spans(paragraph, SIZE + 1.5)
        self._pdf.set_left_margin(MARGIN)
        bottom = self._pdf.get_y()
        self._pdf.set_fill_color(*COLOURS[block.status])
        if bottom > top:
            self._pdf.rect(MARGIN, top, 1.5, bottom - top, style="F")
        self._pdf.set_fill_color(255, 255, 255)  # or tables would have it, too
        self._pdf.set_x(MARGIN)

    @_write.register
    def _(self, block: Listing) -> None:
        for item in block.items:
            self._pdf.multi_cell(0, LINE, f"• {self._words(item)}", new_x="LMARGIN", new_y="NEXT", align="L")

    @_write.register
    def _(self, block: Facts) -> None:
        rows = [[name, self._words(spans)] for name, spans in block.pairs]
        self._table(rows, (1, 3), headed=False)

    @_write.register
    def _(self, block: Command) -> None:
        self._pdf.multi_cell(0, LINE, f"    {self._safe(block.text)}", new_x="LMARGIN", new_y="NEXT", align="L")

    @_write.register
    def _(self, block: Table) -> None:
        self._pdf.set_font(FONT, "B", SMALL)
        if self._pdf.will_page_break(20):
            self._pdf.add_page()
        self._pdf.multi_cell(0, LINE, self._safe(block.caption), new_x="LMARGIN", new_y="NEXT", align="L")
        self._pdf.set_font(FONT, size=SIZE)
        rows = [[self._words([cell]) for cell in row] for row in [block.header, *block.rows]]
        longest = [min(WIDEST, max(6, *(len(row[place]) for row in rows))) for place in range(len(block.header))]
        self._table(rows, tuple(longest), headed=True)

    def _table(self, rows: Sequence[Sequence[str]], widths: tuple[int, ...], *, headed: bool) -> None:
        pdf = self._pdf
        pdf.set_font(FONT, size=SMALL if len(widths) <= 6 else SMALL - 1.5)
        with pdf.table(
            col_widths=widths,
            first_row_as_headings=headed,
            line_height=4.2,
            borders_layout="HORIZONTAL_LINES",
            text_align="LEFT",
        ) as table:
            for cells in rows:
                row = table.row()
                for cell in cells:
                    row.cell(cell if len(cell) <= MOST_CELL else f"{cell[:MOST_CELL]}…")
        pdf.set_font(FONT, size=SIZE)

    @_write.register
    def _(self, block: Drawing) -> None:
        drawing = block.wide.replace("system-ui, sans-serif", FONT)
        known = "".join(letter if ord(letter) in self._known or letter in "\n" else "?" for letter in drawing)
        self._pdf.image(io.BytesIO(known.encode()), w=self._pdf.epw, alt_text=self._safe(block.caption))
        self._spans([block.caption], SMALL)
        self._write(block.numbers)


def _text(span: Span) -> str:
    return span if isinstance(span, str) else span.text
