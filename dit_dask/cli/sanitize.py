"""dit sanitize: the sanitised table itself, checked against its claim."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dit_dask.cli import interrupts
from dit_dask.cli.parser import GATE_FAILED, OK, Subcommand, add_config, add_json, add_set, add_show_values
from dit_dask.cli.terminal import write_line, write_lines

if TYPE_CHECKING:
    from dit_dask.releasing.writing import WrittenRelease


def arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a release."""
    add_config(parser)
    parser.add_argument("--test", required=True, metavar="ID", help="the test whose sanitizer makes the release")
    parser.add_argument("--to", required=True, metavar="URL", help="the file to write; a JSON file beside it describes it")
    parser.add_argument("--format", choices=("csv", "parquet"), help="by default what --to ends in")
    parser.add_argument(
        "--columns", choices=("keep", "drop"), help="what to do with columns that are no part of the schema; must be said"
    )
    parser.add_argument("--keep-subject", action="store_true", help="also publish schema.subject, which identifies persons")
    parser.add_argument("--keep-order", action="store_true", help="rows in the order of the source; shuffled by default")
    parser.add_argument("--seed", type=int, metavar="N", help="of the order; that of the config by default")
    add_json(parser, "the JSON file beside the release")
    add_show_values(parser)
    add_set(parser)


def run(options: argparse.Namespace) -> int:
    """dit sanitize."""
    from dit_dask.audit.grammar import read_config
    from dit_dask.errors import escape_text
    from dit_dask.execution.progress import choose_progress
    from dit_dask.releasing.writing import BrokenClaimError, ReleaseOptions, write_release
    from dit_dask.run import prepare
    from dit_dask.storage.documents import dump_json

    interrupts.raise_on_interrupt()
    prepared = prepare(read_config(options.config, options.set))
    chosen = ReleaseOptions(options.to, options.format, options.columns, options.keep_subject, options.keep_order, options.seed)
    progress = choose_progress(quiet=False)
    try:
        written = write_release(prepared, options.test, chosen)
    except BrokenClaimError as error:
        progress.note(str(error))
        return GATE_FAILED
    found = written.document
    warning = _gate_warning(written)
    if warning is not None:
        progress.note(escape_text(f"warning: {warning}"))
    if options.json:
        write_lines(dump_json(dict(found)))
        return OK
    holds = {True: "its claim holds", None: "it makes no claim that can be checked by counting"}[found["claim_holds"]]
    progress.note(escape_text(f"{found['rows']:,} rows of {found['test']}; {holds}"))
    write_line(written.url)
    return OK


def _gate_warning(written: WrittenRelease) -> str | None:
    """Say what speaks against publishing a release although its claim holds."""
    test, verdict = written.document["test"], written.verdict
    if verdict is None:
        return f"{written.document['run']} is not a finished audit: dit run tells whether this release is safe"
    own = verdict.about(test)
    if own.status == "none":
        return f"no gate judges {test}, so nothing says whether this release is safe"
    if verdict.is_allowed:
        return None
    speaking = verdict if own.is_allowed else own
    against = next(one for one in speaking.verdicts if one.status == speaking.status)
    word = "failed" if speaking.status == "failed" else "is inconclusive"
    judged = f"{test} passed, but the audit of {against.test or 'the run'}" if own.is_allowed else f"the audit of {test}"
    return f"{judged} {word}: {against.gate}: {against.reason}"


SUBCOMMAND = Subcommand(
    "sanitize",
    "write the sanitised table itself, re-checked against its claim",
    "dit sanitize audit.yaml --test mondrian-k5 --to release.csv --columns drop",
    arguments,
    run,
)
