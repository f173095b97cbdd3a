"""Questions on a terminal, each with a default that Enter takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dit_dask.errors import escape_text, unknown

if TYPE_CHECKING:
    from dit_dask.drafting.proposal import TableDraft

NOBODY = "-"


def is_interactive() -> bool:
    """Tell whether somebody can read a question and answer it."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, default: str) -> str:
    """Ask on stderr; an empty answer or the end of the input takes the default."""
    sys.stderr.write(escape_text(f"{question} [{default}]: "))
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default


def ask_about(draft: TableDraft) -> TableDraft:
    """Let the sensitive attribute, the subject and the quasi-identifiers be changed."""
    answer = ask("sensitive attributes, which nobody should infer", ", ".join(draft.sensitive))
    sensitive = _columns(answer, draft)
    answer = ask(f"subject, whose rows belong together ({NOBODY} for none)", draft.subject or NOBODY)
    subject = None if answer == NOBODY else _column(answer, draft)
    draft = draft.with_roles(sensitive, subject)
    chosen = ask("quasi-identifiers, which an adversary may know", ", ".join(draft.quasi_identifiers))
    return draft.with_quasi_identifiers(_columns(chosen, draft))


def _columns(answer: str, draft: TableDraft) -> list[str]:
    """The columns of an answer with commas between them; a column may have a comma in its name."""
    if answer in draft.columns:
        return [answer]
    return [_column(name.strip(), draft) for name in answer.split(",") if name.strip()]


def _column(name: str, draft: TableDraft) -> str:
    names: Sequence[str] = list(draft.columns)
    if name not in names:
        raise unknown("dit init: column", name, names)
    return name
