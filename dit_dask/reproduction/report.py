"""What a reproduction hands back: tables, charts and sentences, written as CSV, JSON, SVG and one Markdown page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dit_dask.reporting.charts import Figure
from dit_dask.reporting.text import align
from dit_dask.storage.documents import write_json
from dit_dask.storage.folder import Folder

Row = Mapping[str, Any]
JSON_ONLY = ("samples", "curves")  # columns with a value for every random sample


@dataclass(frozen=True)
class Table:
    """Rows of the same columns, under a name for files and a title for readers."""

    name: str
    title: str
    rows: Sequence[Row]

    @property
    def columns(self) -> list[str]:
        """The columns that a page and a CSV have."""
        return [name for name in dict.fromkeys(name for row in self.rows for name in row) if name not in JSON_ONLY]

    def markdown(self) -> str:
        """The table for a page."""
        lines = [self.columns, ["---"] * len(self.columns)]
        lines += [[_shown(row.get(name)) for name in self.columns] for row in self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def text(self) -> str:
        """The table for a terminal."""
        return align([self.columns, *([_shown(row.get(name)) for name in self.columns] for row in self.rows)])

    def csv(self) -> str:
        """The table for a spreadsheet."""
        content = io.StringIO()
        writer = csv.DictWriter(content, self.columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return content.getvalue()


@dataclass(frozen=True)
class Report:
    """A finished reproduction; `charts` are by name, with a caption each."""

    name: str
    title: str
    tables: Sequence[Table]
    charts: Mapping[str, tuple[str, Figure]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """All numbers as JSON."""
        tables = [{"name": one.name, "title": one.title, "rows": [dict(row) for row in one.rows]} for one in self.tables]
        charts = {name: caption for name, (caption, _) in self.charts.items()}
        return {"name": self.name, "title": self.title, "notes": list(self.notes), "tables": tables, "charts": charts}

    def write(self, folder: Folder) -> None:
        """Write everything but the pieces."""
        for table in self.tables:
            folder.write(f"{table.name}.csv", table.csv().encode())
        for name, (_, figure) in self.charts.items():
            folder.write(f"{name}.svg", figure.svg.encode())
        write_json(folder, "tables.json", self.document())
        folder.write("page.md", f"# {self.title}\n\n{render(self.document(), '')}".encode())


def render(document: Mapping[str, Any], pictures: str) -> str:
    """A page's text from the numbers of a report; `pictures` is where its charts are."""
    parts = list(document["notes"])
    for table in document["tables"]:
        parts += [f"**{table['title']}**", Table(table["name"], table["title"], table["rows"]).markdown()]
    parts += [f"![{caption}]({pictures}{name}.svg)" for name, caption in document["charts"].items()]
    return "\n\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value).replace("|", "\\|")
