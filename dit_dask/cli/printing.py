"""How a finished run is printed: tables sized to the terminal, verdicts in colour where there is one, the next command."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import InputError, escape_text
from dit_dask.storage.filesystem import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dit_dask.audit.manifest import Manifest
    from dit_dask.audit.summary import TestSummary
    from dit_dask.audit.verdict import RunVerdict
    from dit_dask.measures.base import Entries

NARROWEST = 40


def has_colour() -> bool:
    """Whether stdout is a terminal that shows colours, and nobody has asked for none (no-color.org)."""
    return sys.stdout.isatty() and not environment("NO_COLOR") and environment("TERM") != "dumb"


def terminal_width() -> int | None:
    """The letters of a line on the terminal; None where stdout is none, and lines may be of any length."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def print_run(
    summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict, url: str, *, width: int | None = None
) -> None:
    """Print the tables and the verdicts of a run."""
    from dit_dask.reporting import text

    is_cut = False
    if summaries:
        write_lines(text.text_table(summaries, verdict.controls, width))
        is_cut = width is not None and text.hides_columns(summaries, verdict.controls, width)
    if measures:
        tables = text.measures_text(measures, width)
        write_lines(("\n" if summaries else "") + tables)
        is_cut = is_cut or tables != text.measures_text(measures)
    if is_cut:
        write_line(f"more columns: dit show {url} --wide")
    for line in text.repeat_lines(summaries):
        write_line(line)
    print_verdicts(verdict)


def print_verdicts(verdict: RunVerdict) -> None:
    """Print one line for each check."""
    from dit_dask.reporting.text import verdict_lines

    for line in verdict_lines(verdict.verdicts, coloured=has_colour()):
        write_lines(line)


def write_metrics(
    path: str | None, manifest: Manifest | None, summaries: Sequence[TestSummary], measures: Entries, verdict: RunVerdict
) -> None:
    """Write OpenMetrics text for a scheduler: the file appears whole or not at all."""
    if path is None:
        return
    from dit_dask.reporting.metrics import open_metrics

    name = "" if manifest is None else str(manifest.config["name"])
    write_file(path, open_metrics(name, manifest, summaries, measures, verdict).encode(), "--metrics")


def write_file(path: str, content: bytes, option: str) -> None:
    """Write a file beside its place, then move it there."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True) if beside.parent.is_dir() else None
        raise InputError(f"{option}: cannot write {escape_text(path)}: {error.strerror}") from error
