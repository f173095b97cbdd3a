"""dit report and dit verify: the report of a finished run, its evidence pack, and whether a pack is what was packed."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from dit_dask.cli.parser import GATE_FAILED, OK, Subcommand, add_json, add_run
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import DitError, InputError

if TYPE_CHECKING:
    from dit_dask.storage.folder import Folder

PRIVATE_NAME = "report-private.html"


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a report."""
    add_run(parser)
    parser.add_argument(
        "--pack", metavar="FILE.zip", help="write the evidence pack: report, statement, verdict, config, checksums"
    )
    parser.add_argument("--key", metavar="FILE", help="sign the pack with this Ed25519 private key in PEM")
    parser.add_argument(
        "--private", action="store_true", help=f"write {PRIVATE_NAME}, which also has the positions of the persons at most risk"
    )


def report(options: argparse.Namespace) -> int:
    """dit report."""
    from dit_dask.reporting import html
    from dit_dask.reporting.worst_persons import read_worst
    from dit_dask.storage.folder import Folder
    from dit_dask.storage.location import Location

    if options.key is not None and options.pack is None:
        raise InputError("--key signs an evidence pack: give --pack FILE.zip, too")
    folder = Folder(Location(options.run.rstrip("/"), {}))
    run = html.read_reported_run(folder)
    if options.pack is not None:
        _write_pack(folder, options.pack, options.key)
    elif options.private:
        closed = replace(folder, personal=True)
        told = replace(run, worst=read_worst(folder, run.summaries), reasons=_explain_worst(options.run))
        closed.write(PRIVATE_NAME, html.render(told).encode())
        write_line(f"{folder.url}/{PRIVATE_NAME}")
    else:
        folder.write(html.NAME, html.render(run).encode())
        write_line(f"{folder.url}/{html.NAME}")
    return OK


def _explain_worst(url: str) -> dict[str, list[str]]:
    """Explain the persons of the test with the largest delta; nobody without the table, or without such a test."""
    from dit_dask.deciding.explanation import explain
    from dit_dask.deciding.explanation_text import explanation_sentences
    from dit_dask.deciding.reopening import reopen_test
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reporting.worst_persons import MOST_PERSONS

    try:
        case = reopen_test(url)
        if case.test.external is not None:  # a report calls no sanitizer of third parties; dit explain does
            return {}
        return {case.test.id: explanation_sentences(explain(case, MOST_PERSONS))}
    except DitError as error:
        choose_progress(quiet=False).note(f"the persons at most risk are not explained: {error}")
        return {}


def _write_pack(folder: Folder, path: str, key: str | None) -> None:
    from dit_dask.cli.printing import write_file
    from dit_dask.reporting.evidence import make_pack
    from dit_dask.reporting.signature import read_private_key

    signer = None if key is None else read_private_key(key)
    write_file(path, make_pack(folder, signer), "--pack")
    write_line(path)


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a verification."""
    parser.add_argument("pack", metavar="FILE.zip", help="evidence pack that `dit report --pack` wrote")
    parser.add_argument(
        "--key", metavar="FILE", help="the signer's Ed25519 public key in PEM: the signature must be its owner's"
    )
    add_json(parser, "the verification")


def verify(options: argparse.Namespace) -> int:
    """dit verify."""
    from dit_dask.reporting.signature import read_public_key
    from dit_dask.reporting.verification import verify_pack
    from dit_dask.storage.documents import dump_json

    key = None if options.key is None else read_public_key(options.key)
    found = verify_pack(options.pack, key)
    if options.json:
        status = "failed" if found.problems else "passed"
        signer = {"signer": found.signer, "is_trusted": found.is_trusted}
        write_lines(dump_json({"pack": options.pack, "status": status, "problems": list(found.problems), **signer}))
        return GATE_FAILED if found.problems else OK
    for problem in found.problems:
        write_line(f"FAIL  {problem}")
    if found.problems:
        return GATE_FAILED
    write_line(f"PASS  all {found.files} files are as they were packed")
    if found.signer is None:
        write_line("not signed: whoever can replace the file can replace its checksums, too")
    elif found.is_trusted:
        write_line(f"signed by the given key, {found.signer}")
    else:
        write_line(f"signed by the enclosed key {found.signer}: compare it with the signer's, or give --key FILE")
    return OK


REPORT = Subcommand(
    "report",
    "(re)write report.html of a finished run, or its evidence pack",
    "dit report runs/adult-k-0123456789ab --pack evidence.zip --key key.pem",
    report_arguments,
    report,
)
VERIFY = Subcommand(
    "verify",
    "check that an evidence pack is what was packed, and who signed it",
    "dit verify evidence.zip --key signer.pem",
    verify_arguments,
    verify,
)
