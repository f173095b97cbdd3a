"""The `dit` command: parses the arguments, runs a subcommand, turns failures into one line and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dit_dask.cli import interrupts

if TYPE_CHECKING:
    import argparse

__all__ = ["main"]

FAILED = interrupts.EXIT_CODE
LONGEST_LINE = 2000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    handlers = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    interrupts.end_on_interrupt()  # before anything slow is imported
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _failed(interrupts.INTERRUPTED)
    finally:
        interrupts.ignore_interrupts()
        if arguments is not None:  # called by a program, whose own handlers come back
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _run(arguments: Sequence[str] | None) -> int:
    from dit_dask.cli import terminal
    from dit_dask.cli.commands import SUBCOMMANDS
    from dit_dask.cli.parser import build_parser
    from dit_dask.errors import DitError, describe

    if not terminal.prepare_streams():
        return _failed("stdout is closed; send it to /dev/null if nobody reads it")
    options = build_parser(SUBCOMMANDS).parse_args(arguments)
    terminal.prepare_logging(debug=options.debug, quiet=getattr(options, "quiet", False))
    try:
        code: int = options.subcommand.run(options)
    except DitError as error:
        return _failed(error.revealed() if getattr(options, "show_values", False) else str(error), options)
    except BrokenPipeError:
        terminal.abandon(sys.stderr)
        return FAILED
    except MemoryError:
        return _failed("not enough memory; use fewer rows (data.limit), repeats or samples", options)
    except Exception as error:  # a trace is for developers: users get one line
        shown, hidden = describe(error)
        if getattr(options, "show_values", False) and hidden:
            shown = f"{type(error).__name__}: {hidden[0]}"
        return _failed(f"unexpected {shown} (--debug shows where)", options)
    return code


def _failed(text: str, options: argparse.Namespace | None = None) -> int:
    from dit_dask.errors import escape_text
    from dit_dask.storage.redaction import scrub

    if options is not None and options.debug:
        import logging

        logging.getLogger("dit_dask").exception("failed")
    cut = text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
    sys.stderr.write(f"dit: {escape_text(scrub(cut))}\n")
    return FAILED
