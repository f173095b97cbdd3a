"""What a worker and its sanitizer process tell each other, as lines of JSON; like process_main.py without dit_dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PREFIX = "dit-sanitizer-"
NONCE_SIZE = 32  # bytes, as text
MAX_WAIT_SECONDS = 600  # select takes no arbitrarily long timeout


@dataclass(frozen=True)
class Setup:
    """The first line from the worker: what to import (None for commands), where to look for it, or its pickle in base64."""

    target: str | None
    path: list[str]
    pickled: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SetupReply:
    """The folder for calls, why the target cannot be imported, its seed parameter and the digest of its code."""

    root: str
    error: str | None = None
    seed_name: str | None = None
    code: str = ""


@dataclass(frozen=True)
class FunctionCall:
    """A call of the imported target: a pickled DataFrame in, Parquet out."""

    input: str
    output: str
    params: Mapping[str, Any] = field(repr=False)
    columns: Sequence[str]
    seed_name: str | None
    seed: int


@dataclass(frozen=True)
class CommandCall:
    """A program to start, with its whole environment."""

    argv: Sequence[str] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Request:
    """One call, in a folder of its own: of the imported function or of a command."""

    folder: str
    timeout: float
    function: FunctionCall | None = None
    command: CommandCall | None = None


@dataclass(frozen=True)
class Reply:
    """How a call ended: ok, timeout, signal, raised, exit, not-started or gone; with the last bytes of its stderr."""

    status: str
    error: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class ForkNotes:
    """What a fork reports of itself: the name of the exception it raised, and the modules it imported."""

    raised: str | None = None
    imported: Sequence[str] = ()


def notes_path(folder: str) -> str:
    """Return the file beside a call's folder where a fork writes its notes: a command does not know the name."""
    return f"{folder}.notes"


def parse_request(document: dict[str, Any]) -> Request:
    """Read a request back."""
    function, command = document.pop("function"), document.pop("command")
    return Request(
        **document,
        function=None if function is None else FunctionCall(**function),
        command=None if command is None else CommandCall(**command),
    )
