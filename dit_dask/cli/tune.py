"""dit tune: the weakest value of a parameter that passes every gate, or what coarser attributes would do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dit_dask.cli import interrupts
from dit_dask.cli.parser import GATE_FAILED, OK, Subcommand, run_arguments
from dit_dask.cli.run import prepare_workers, read_configured
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import InputError, escape_text

if TYPE_CHECKING:
    from dit_dask.config.document import Config
    from dit_dask.execution.progress import Progress
    from dit_dask.execution.workers import Workers
    from dit_dask.run import RunResult


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a choice."""
    run_arguments(parser)
    parser.add_argument("--values", metavar="LIST", help="values to try, such as 2,3,5,8; those of the config by default")
    parser.add_argument("--parameter", metavar="NAME", help="which parameter, if the tests set several")
    parser.add_argument(
        "--attributes", action="store_true", help="instead: each attribute one level coarser, in bands, or dropped"
    )
    parser.add_argument("--test", metavar="ID", help="with --attributes: which test, if the config has several")


def run(options: argparse.Namespace) -> int:
    """dit tune."""
    from dit_dask.execution.progress import choose_progress

    interrupts.raise_on_interrupt()
    if options.attributes and (options.values is not None or options.parameter is not None):
        raise InputError("--attributes changes attributes: it does not go with --values and --parameter")
    if options.test is not None and not options.attributes:
        raise InputError("--test goes with --attributes")
    checked = read_configured(options)
    progress = choose_progress(quiet=options.quiet)
    workers = prepare_workers(checked, progress, debug=options.debug)
    return (_change_attributes if options.attributes else _tune)(checked, workers, progress, options)


def _tune(checked: Config, workers: Workers, progress: Progress, options: argparse.Namespace) -> int:
    from dit_dask.deciding.decision_text import figure_table
    from dit_dask.deciding.tuning import tune

    values = [] if options.values is None else [value.strip() for value in options.values.split(",") if value.strip()]
    if options.values is not None and not values:
        raise InputError("--values must be a list such as 2,3,5,8; got none")
    found = tune(checked, workers, progress, values=values, parameter=options.parameter, fresh=options.fresh)
    name = found.parameter.name
    rows = []
    for point in found.points:
        marks = ("<" if point.value == found.recommended else "") + ("*" if "delta" in point.frontier else "")
        rows.append(([f"{point.value:g}", marks], point.figures, point.status))
    table = figure_table([name, ""], rows)
    note = "" if found.loss is None else f"\n* no other value has both a smaller delta and a smaller {found.loss}"
    status = found.result.verdict.status if found.recommended is None else "passed"
    _print(found.result, {"status": status, "tune": found.document()}, table + note, found.reason, options)
    return OK if found.recommended is not None or not found.has_gates else GATE_FAILED


def _change_attributes(checked: Config, workers: Workers, progress: Progress, options: argparse.Namespace) -> int:
    from dit_dask.deciding.decision_text import figure_table
    from dit_dask.deciding.what_if import what_if

    found = what_if(checked, workers, progress, test=options.test, fresh=options.fresh)
    table = figure_table(["what if"], [([one.label], one.figures, one.status) for one in found.outcomes])
    skipped = "".join(f"\nskipped: {escape_text(f'{one.alternative.label}: {one.reason}')}" for one in found.skipped)
    more = {"status": found.status, "what_if": found.document()}
    _print(found.result, more, f"{table}\nranked: {found.rule}{skipped}", found.reason, options)
    return OK if found.status in ("passed", "none") else GATE_FAILED


def _print(result: RunResult, more: dict[str, Any], table: str, reason: str, options: argparse.Namespace) -> None:
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reporting.documents import run_document
    from dit_dask.storage.documents import dump_json

    for warning in result.verdict.warnings:
        choose_progress(quiet=options.quiet and options.json).note(f"warning: {warning}")
    if options.json:
        write_lines(dump_json(run_document(result.folder.url, result.summaries, result.measures, result.verdict) | more))
        return
    write_lines(table)
    write_line(reason)
    write_line(result.folder.url)


SUBCOMMAND = Subcommand(
    "tune",
    "the weakest parameter that passes the gates, and what each value costs",
    "dit tune audit.yaml --values 2,3,5,8,13,21",
    arguments,
    run,
)
