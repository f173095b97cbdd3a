"""What goes to stdout and stderr: escaped text in any encoding, and one clear error where it cannot be written."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import Any

from dit_dask.errors import RunError, escape_text
from dit_dask.storage.redaction import scrub


def prepare_streams() -> bool:
    """Let any text be written in the terminal's encoding; return whether stdout is open."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows \u2013
    return sys.stdout is not None


def write_line(text: str) -> None:
    """Write one line to stdout, escaped."""
    write_lines(escape_text(text))


def write_lines(text: str) -> None:
    """Write lines to stdout, whose texts are escaped already: tables and JSON."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # a pipe whose reader is gone, a full disk, a closed file
        abandon(sys.stdout)
        cause = getattr(error, "strerror", None) or "it is closed"
        raise RunError(f"stdout: cannot write what was found: {cause}") from error


def abandon(stream: Any) -> None:
    """Send the rest of a stream nowhere: the interpreter writes it again when it ends, and would fail again."""
    with suppress(Exception):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class EscapingFormatter(logging.Formatter):
    """Escapes messages and traces, without credentials; no line of a trace can be taken for one of dit's own."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the message as one line, and a trace indented below it."""
        text = scrub(super().format(record))  # an error of a library may quote the URL or the options it got
        message, *trace = text.split("\n") if record.exc_info else [text]
        return "\n".join(["dit: " + escape_text(message), *(f"  {escape_text(line)}" for line in trace)])


def prepare_logging(*, debug: bool, quiet: bool = False) -> None:
    """Log to stderr: warnings and how text files are read, or with --debug everything."""
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO if debug else logging.WARNING)
    logging.getLogger("dit_dask.inputs").setLevel(logging.WARNING if quiet and not debug else logging.INFO)
