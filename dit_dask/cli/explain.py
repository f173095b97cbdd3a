"""dit explain: the worst persons of a finished run, why they are, and what would help."""

from __future__ import annotations

import argparse

from dit_dask.cli import interrupts
from dit_dask.cli.parser import OK, Subcommand, add_json, add_run, positive_integer
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import InputError

CAUTION = "these are figures of single persons: do not share them"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of an explanation."""
    add_run(parser)
    parser.add_argument("--top", type=positive_integer, default=10, metavar="N", help="how many persons (default 10)")
    parser.add_argument("--test", metavar="ID", help="which test; the one with the largest delta by default")
    parser.add_argument("--data", metavar="TABLE", help="the table that was audited, where the config's source is not at hand")
    parser.add_argument("--config", metavar="CONFIG", help="the config of the run, for files that it names by relative paths")
    parser.add_argument("--show-values", action="store_true", help="also show the persons' values; needs --data")
    add_json(parser, "the explanations")


def run(options: argparse.Namespace) -> int:
    """dit explain."""
    from dit_dask.deciding.explanation import explain
    from dit_dask.deciding.explanation_text import explanation_lines
    from dit_dask.deciding.reopening import reopen_test
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reporting.text import number
    from dit_dask.storage.documents import dump_json

    interrupts.raise_on_interrupt()
    if options.show_values and options.data is None:
        raise InputError("--show-values shows persons' values: name the table that they are read from with --data TABLE")
    case = reopen_test(options.run, options.test, data=options.data, config=options.config, shows_values=options.show_values)
    found = explain(case, options.top)
    delta = found[0].delta if found else None
    if options.json:
        head = {"run": options.run, "test": case.test.id, "delta": delta, "personal_data": True}
        write_lines(dump_json(head | {"persons": [one.document() for one in found]}))
        return OK
    choose_progress(quiet=False).note(CAUTION)
    write_line(f"{case.test.id}: delta {number(delta)}, {case.test.rows.described()}")
    for line in explanation_lines(found):
        write_line(line)
    return OK


SUBCOMMAND = Subcommand(
    "explain",
    "the persons with the largest distances: why, and what would help",
    "dit explain runs/adult-k-0123456789ab --top 10",
    arguments,
    run,
)
