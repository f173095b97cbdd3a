"""Ctrl-C and SIGTERM: they end the command at once, or close a run first; there is one line and no trace either way."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

INTERRUPTED = "interrupted; the same command resumes where it stopped"
EXIT_CODE = 2
CLEAN_UP_SECONDS = 10  # after a second signal
CHECK_SECONDS = 1  # after which an interrupt that nobody handles was lost
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_on_interrupt() -> None:
    """End at once: nothing is open yet that must be closed."""
    _handle(_end)


def raise_on_interrupt() -> None:
    """Raise KeyboardInterrupt once, so that workers and files are closed; a second one limits the time of that."""
    _handle(_raise)


def ignore_interrupts() -> None:
    """Ignore signals while the interpreter ends: the exit code is decided."""
    _handle(signal.SIG_IGN)
    signal.alarm(0)


def _handle(handler: Any) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # a job in the background of a shell ignores Ctrl-C
            signal.signal(number, handler)


def _raise(_number: int, _frame: Any) -> None:
    _handle(_hurry)
    _raise_until_handled()


def _raise_until_handled(*_: Any) -> None:
    """Raise KeyboardInterrupt, and again later if it was lost: callbacks of compiled code and finalizers swallow exceptions."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None:
        signal.signal(signal.SIGALRM, _raise_until_handled)
        signal.alarm(CHECK_SECONDS)
        raise KeyboardInterrupt


def _hurry(_number: int, _frame: Any) -> None:
    """Let the clean-up go on, which an exception would break, but not for long; the next signal ends it."""
    end_on_interrupt()
    signal.signal(signal.SIGALRM, _end)
    signal.alarm(CLEAN_UP_SECONDS)


def _end(_number: int, _frame: Any) -> None:
    os.write(2, f"dit: {INTERRUPTED}\n".encode())
    os._exit(EXIT_CODE)  # no clean-up that a further signal could break; workers end when this process is gone
