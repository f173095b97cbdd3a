"""dit reproduce: the papers' tables and figures beside ours."""

from __future__ import annotations

import argparse

from dit_dask.cli import interrupts
from dit_dask.cli.parser import OK, Subcommand, add_json
from dit_dask.cli.terminal import write_line, write_lines


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a reproduction."""
    parser.add_argument("name", metavar="NAME", help="v1, v2, encodings, deck, anita or classifiers")
    parser.add_argument("--data", metavar="FOLDER", help="folder with adult.csv and internet_usage.csv; `dit data` by default")
    parser.add_argument(
        "--out", metavar="URL", help="folder of results, and of pieces to resume from; reproduction/NAME by default"
    )
    parser.add_argument("--quick", action="store_true", help="two random samples instead of ten, and short searches")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr; warnings and errors stay")
    add_json(parser, "all tables")


def run(options: argparse.Namespace) -> int:
    """dit reproduce."""
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reproduction.run import Request, reproduce
    from dit_dask.storage.documents import dump_json

    interrupts.raise_on_interrupt()
    request = Request(options.name, options.data, options.out, options.quick)
    report = reproduce(request, choose_progress(quiet=options.quiet))
    if options.json:
        write_lines(dump_json(report.document()))
        return OK
    for table in report.tables:
        write_line(table.title)
        write_lines(table.text())
        write_line("")
    write_line(f"{request.folder.url}")
    return OK


SUBCOMMAND = Subcommand(
    "reproduce",
    "the papers' tables and figures beside ours: v1, v2, encodings, deck, anita, classifiers",
    "dit reproduce v1 --data data --out results/v1",
    arguments,
    run,
)
