"""The `dit` command: parses the arguments, runs a subcommand, turns failures into one line and an exit code."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from dit_dask.cli.commands import FAILED, SUBCOMMANDS
from dit_dask.cli.parser import build_parser
from dit_dask.errors import DitError, first_line
from dit_dask.storage.redaction import scrub

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = build_parser(SUBCOMMANDS).parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(ScrubbingFormatter("dit: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO if options.debug else logging.WARNING)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code: int = options.subcommand.run(options)
    except DitError as error:
        return _failed(str(error), options.debug)
    except KeyboardInterrupt:
        return _failed("interrupted; the same command resumes where it stopped", debug=False)
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    except Exception as error:  # a trace is for developers: users get one line
        return _failed(f"unexpected {type(error).__name__}: {first_line(error)} (--debug shows where)", options.debug)
    return code


class ScrubbingFormatter(logging.Formatter):
    """Formats log lines and traces without credentials: an error of a library may quote the URL or the options it got."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a line with its trace, then take credentials out."""
        return scrub(super().format(record))


def _interrupt(_signal: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _failed(text: str, debug: bool) -> int:
    if debug:
        logging.getLogger("dit_dask").exception("failed")
    sys.stderr.write(f"dit: {scrub(text)}\n")
    return FAILED
