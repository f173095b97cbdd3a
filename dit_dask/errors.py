"""The failures a user can cause or mend; their text is the one line that the command prints."""

from __future__ import annotations

from collections.abc import Iterable


class DitError(Exception):
    """Any expected failure; the command line prints its text and exits with 2."""


class InputError(DitError):
    """A config, table, hierarchy, URL or parameter that cannot be used as it is."""


class RunError(DitError):
    """Work that started and could not be finished."""


class ExternalSanitizerError(DitError):
    """Someone else's sanitizer did not return a table that can be used; the record may be skipped if that was allowed."""

    def __init__(self, text: str, *, skip: bool = False) -> None:
        super().__init__(text)
        self.skip = skip


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or nothing."""
    return (str(error).strip().splitlines() or [""])[0]


def unknown(what: str, got: object, known: Iterable[str]) -> InputError:
    """Name the nearest known name first, then all of them."""
    import difflib

    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(str(got).casefold(), folded, n=1, cutoff=0)
    hint = f"did you mean {folded[near[0]]!r}? " if near else ""
    return InputError(f"{what}: unknown {got!r}; {hint}known: {', '.join(names) or 'none'}")
