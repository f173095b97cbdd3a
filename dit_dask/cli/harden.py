"""dit harden: which persons must be left out of the table for the gates to pass."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dit_dask.cli import interrupts
from dit_dask.cli.parser import GATE_FAILED, OK, Subcommand, add_config, add_set, add_show_values, demo_arguments
from dit_dask.cli.run import prepare_workers, read_configured
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from dit_dask.config.document import Config
    from dit_dask.deciding.hardening import Hardening
    from dit_dask.execution.progress import Progress
    from dit_dask.releasing.writing import ReleaseOptions


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of hardening."""
    add_config(parser)
    parser.add_argument(
        "--max-removed", required=True, metavar="N", help="persons that may be left out: a number, or a percentage such as 1%%"
    )
    parser.add_argument("--test", metavar="ID", help="which test, if the config has several")
    parser.add_argument("--to", metavar="URL", help="also write the release of the persons who are left, if the gates pass")
    parser.add_argument(
        "--columns", choices=("keep", "drop"), help="with --to: columns that are no part of the schema; must be said"
    )
    add_show_values(parser)
    add_set(parser)
    demo_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """dit harden."""
    from dit_dask.deciding.decision_text import figure_table
    from dit_dask.deciding.hardening import WARNINGS, Round
    from dit_dask.deciding.hardening import harden as harden_config
    from dit_dask.deciding.reopening import REMOVED
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reporting.documents import run_document
    from dit_dask.reporting.text import number, verdict_lines
    from dit_dask.storage.documents import dump_json

    interrupts.raise_on_interrupt()
    options.cluster = None
    checked = read_configured(options)
    progress = choose_progress(quiet=options.quiet)
    workers = prepare_workers(checked, progress, debug=options.debug)

    def report(one: Round) -> None:
        progress.note(f"{one.removed:,} persons left out: delta {number(one.figures['delta'])}, {one.status}")

    release = _prepare_release(checked, options)
    silent = choose_progress(quiet=True)
    found = harden_config(checked, workers, silent, max_removed=options.max_removed, test=options.test, report=report)
    written = _write_release(found, release, progress)
    loud = progress if options.json else choose_progress(quiet=False)
    for warning in (*WARNINGS, *found.verdict.warnings):
        loud.note(f"warning: {warning}")
    if options.json:
        result = found.result
        document = run_document(result.folder.url, result.summaries, result.measures, found.verdict)
        write_lines(dump_json(document | {"harden": found.document() | {"release": written}}))
    else:
        rounds = [([str(place), f"{one.removed:,}"], one.figures, one.status) for place, one in enumerate(found.rounds)]
        write_lines(figure_table(["round", "left out"], rounds))
        for line in (*found.rises(), *verdict_lines(found.verdict.verdicts), found.reason):
            write_line(line)
        write_line(found.result.folder.url)
    progress.note(f"personal data, not to be shared: who is left out, in {REMOVED} of {found.result.folder.url}")
    return OK if found.passed else GATE_FAILED


def _prepare_release(checked: Config, options: argparse.Namespace) -> ReleaseOptions | None:
    """Check before the first round whether the release could be written."""
    from dit_dask.releasing.writing import ReleaseOptions, check_options

    if options.to is None:
        if options.columns is not None:
            raise InputError("--columns goes with --to")
        return None
    chosen = ReleaseOptions(options.to, None, options.columns)
    check_options(checked, chosen)
    return chosen


def _write_release(found: Hardening, chosen: ReleaseOptions | None, progress: Progress) -> str | None:
    """Write the release of those who are left; one whose gates do not pass is not written."""
    from dit_dask.releasing.writing import write_release

    if chosen is None:
        return None
    if not found.passed:
        progress.note("no release is written: the gates do not pass")
        return None
    written = write_release(found.prepared, found.test, chosen)
    progress.note(f"the release of the persons who are left: {written.url}")
    return written.url


SUBCOMMAND = Subcommand(
    "harden",
    "leave the worst persons out of the table, round by round, until the gates pass",
    "dit harden audit.yaml --max-removed 1%",
    arguments,
    run,
)
