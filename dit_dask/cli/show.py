"""dit show: the tables of a finished run again, for a terminal, a pull request or a scheduler."""

from __future__ import annotations

import argparse
import sys

from dit_dask.cli.parser import OK, Subcommand, add_json, add_metrics, add_run
from dit_dask.cli.terminal import write_lines
from dit_dask.errors import escape_text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a finished run that is shown."""
    add_run(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--wide", action="store_true", help="all columns, however wide the terminal is")
    shown.add_argument("--markdown", action="store_true", help="Markdown, for a comment on a pull request")
    add_json(parser, "tests, measures and verdicts")
    add_metrics(parser)


def run(options: argparse.Namespace) -> int:
    """dit show."""
    from dit_dask.audit.summary import read_complete, read_measures
    from dit_dask.audit.verdict import read_verdict
    from dit_dask.cli import printing
    from dit_dask.reporting.documents import run_document
    from dit_dask.reporting.markdown import markdown
    from dit_dask.reporting.text import criteria_lines, next_command
    from dit_dask.storage.documents import dump_json
    from dit_dask.storage.folder import Folder
    from dit_dask.storage.location import Location

    folder = Folder(Location(options.run.rstrip("/"), {}))
    manifest, summaries = read_complete(folder)
    measures, verdict = read_measures(folder), read_verdict(folder)
    printing.write_metrics(options.metrics, manifest, summaries, measures, verdict)
    if options.json:
        write_lines(dump_json(run_document(folder.url, summaries, measures, verdict)))
        return OK
    if options.markdown:
        write_lines(markdown(str(manifest.config["name"]), summaries, measures, verdict))
        return OK
    width = None if options.wide else printing.terminal_width()
    printing.print_run(summaries, measures, verdict, folder.url, width=width)
    for line in criteria_lines(summaries, measures, verdict):
        write_lines(line)
    for warning in verdict.warnings:
        sys.stderr.write(f"dit: warning: {escape_text(warning)}\n")
    sys.stderr.write(f"dit: next: {escape_text(next_command(verdict.status, folder.url, summaries))}\n")
    write_lines(escape_text(folder.url))
    return OK


SUBCOMMAND = Subcommand(
    "show",
    "print the tables and the verdict of a finished run again",
    "dit show runs/adult-k-0123456789ab --markdown",
    arguments,
    run,
)
