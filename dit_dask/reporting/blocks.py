"""What a report consists of: sections of blocks. Page and PDF are made from the same ones, and each escapes texts itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dit_dask.audit.manifest import Manifest
from dit_dask.audit.summary import Curve, TestSummary
from dit_dask.audit.verdict import RunVerdict, Status
from dit_dask.measures.base import Entries

LONGEST_CELL = 400  # letters of a cell of a measure, which may hold a sentence or two
LONGEST_CODE = 120  # letters of a name that a report repeats
NUMBER = re.compile(r"[–+-]?|[+-]?[\d.,]+(e[+-]?\d+)?%?|inf|yes|no|PASS|FAIL|INCONCLUSIVE")
MOST_COLUMNS = 8  # of one table: more are not read on a page of paper


@dataclass(frozen=True)
class Code:
    """A name, a value of a config or a command, as it is typed."""

    text: str
    tag: ClassVar[str] = "code"


@dataclass(frozen=True)
class Strong:
    """Words that matter most."""

    text: str
    tag: ClassVar[str] = "strong"


@dataclass(frozen=True)
class Marked:
    """A result in a table, with its colour."""

    text: str
    status: Status
    tag: ClassVar[str] = "mark"


Span = str | Code | Strong | Marked
Spans = Sequence[Span]


def code(name: object) -> Code:
    """A name, cut where nobody would read on."""
    return Code(cut_name(str(name)))


def cut_name(text: str, longest: int = LONGEST_CODE) -> str:
    """A name, or the start of a long one with its length."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def codes(names: Sequence[object]) -> list[Span]:
    """Names with commas between them."""
    spans: list[Span] = []
    for name in names:
        spans += [", ", code(name)] if spans else [code(name)]
    return spans


@dataclass(frozen=True)
class Paragraph:
    """One paragraph; a small one is for those who want to know more."""

    spans: Spans
    small: bool = False
    kind: ClassVar[str] = "paragraph"


def paragraph(*spans: Span) -> Paragraph:
    """A paragraph of these words."""
    return Paragraph(spans)


def small(*spans: Span) -> Paragraph:
    """A paragraph in small print."""
    return Paragraph(spans, small=True)


@dataclass(frozen=True)
class Notice:
    """The verdict: its paragraphs in a frame of its colour."""

    status: Status
    paragraphs: Sequence[Spans]
    kind: ClassVar[str] = "notice"


@dataclass(frozen=True)
class Listing:
    """A list of remarks."""

    items: Sequence[Spans]
    kind: ClassVar[str] = "listing"


@dataclass(frozen=True)
class Facts:
    """Names with what they are."""

    pairs: Sequence[tuple[str, Spans]]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is what the row is about. `caption` says what the table shows."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Span]]
    kind: ClassVar[str] = "table"

    def has_words(self, column: int) -> bool:
        """Whether a column is read rather than compared: some cell in it is neither a number nor a dash."""
        return any(not NUMBER.fullmatch(_text(row[column])) for row in self.rows)


def _text(span: Span) -> str:
    return span if isinstance(span, str) else span.text


@dataclass(frozen=True)
class Drawing:
    """A chart in two widths, with the table of its numbers; series in it can be hidden."""

    caption: str
    wide: str
    narrow: str
    numbers: Table
    kind: ClassVar[str] = "drawing"


@dataclass(frozen=True)
class Command:
    """A line to be typed."""

    text: str
    kind: ClassVar[str] = "command"


Block = Paragraph | Notice | Listing | Facts | Table | Drawing | Command


@dataclass(frozen=True)
class ReportSection:
    """A part of the report under a heading; `name` is its address within the page."""

    name: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, eq=False)
class ReportedRun:
    """What sections are made from: the files of a finished run.

    `documents` has JSON files that other commands write into the folder, such as tune.json, by their names. `worst` has the
    persons at most risk of each test, and `reasons` what dit explain tells of them; both are there only in reports that are
    personal data.
    """

    name: str
    manifest: Manifest
    summaries: Sequence[TestSummary]
    measures: Entries
    verdict: RunVerdict
    curves: Mapping[str, Curve]
    documents: Mapping[str, Any] = field(default_factory=dict)
    worst: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    reasons: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_private(self) -> bool:
        """Whether the report tells about single persons."""
        return self.worst is not None


MakeSection = Callable[[ReportedRun], ReportSection | None]


def split_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Span]]) -> list[Table]:
    """Divide a table of many columns into several of at most MOST_COLUMNS, each with the first column."""
    per_table = MOST_COLUMNS - 1
    starts = range(1, max(2, len(header)), per_table)
    several = len(starts) > 1
    return [
        Table(
            f"{caption} ({place + 1} of {len(starts)})" if several else caption,
            [header[0], *header[start : start + per_table]],
            [[row[0], *row[start : start + per_table]] for row in rows],
        )
        for place, start in enumerate(starts)
    ]
