"""The failures a user can cause or mend; their text is the one line that the command prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable

MOST_QUOTED = 80  # characters of a wrong value that a message repeats
PARAMETER_ERRORS = {"InvalidParameterError"}  # of scikit-learn: they speak of the config alone


class DitError(Exception):
    """Any expected failure; the command line prints its text and exits with 2.

    The text never holds a value of the data that few rows share; such values are `hidden`, and shown only with --show-values.
    """

    def __init__(self, text: str = "", *, hidden: Iterable[str] = ()) -> None:
        super().__init__(escape_text(text))  # one line, whatever names and values it holds
        self.hidden = tuple(hidden)

    def revealed(self) -> str:
        """The text with the values that it hides."""
        return f"{self}; hidden: {', '.join(map(quote, self.hidden))}" if self.hidden else str(self)


class InputError(DitError):
    """A config, table, hierarchy, URL or parameter that cannot be used as it is."""


class RunError(DitError):
    """Work that started and could not be finished."""


class ExternalSanitizerError(DitError):
    """Someone else's sanitizer did not return a table that can be used; the record may be skipped if that was allowed."""

    def __init__(self, text: str, *, skip: bool = False, hidden: Iterable[str] = ()) -> None:
        super().__init__(text, hidden=hidden)
        self.skip = skip


def escape_text(text: str) -> str:
    """Write control, bidirectional and invisible characters as \\x1b, \\n or \\u202e, so that text from data is one line."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def quote(value: object, limit: int = MOST_QUOTED) -> str:
    """Show a value as code, cut to a number of characters; a long text is cut before it is copied."""
    if isinstance(value, str | bytes) and len(value) > limit:
        return f"{value[:limit]!r}… ({len(value):,} characters)"
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to write out an integer of more than 4,300 digits
        return f"a {type(value).__name__} too long to show"
    return shown if len(shown) <= limit + 2 else f"{shown[:limit]}… ({len(shown):,} characters)"


def describe_value(value: object) -> str:
    """Show a plain value, and of others only the type: a frame that was given by mistake is full of persons."""
    named = {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(value))
    if named is not None:
        return named
    return quote(value) if isinstance(value, str | bytes | int | float) else f"a value of type {class_name(type(value))}"


def describe(error: BaseException | None) -> tuple[str, tuple[str, ...]]:
    """Describe any failure: what may be shown, and what to hide. Messages of other packages may hold values of the data."""
    if isinstance(error, DitError):
        return str(error), error.hidden
    kind, message = class_name(type(error)), first_line(error, 200)
    if kind in PARAMETER_ERRORS or not message:
        return f"{kind}: {message}" if message else kind, ()
    return f"{kind} (--show-values shows its message, which may hold values)", (message,)


def class_name(kind: type) -> str:
    """Name a class that its module has under that name; one that was made while running may be named after data."""
    for known in kind.__mro__:
        if getattr(sys.modules.get(known.__module__), known.__qualname__, None) is known:
            return str(known.__name__)
    return "Exception"


def first_line(error: BaseException | None, limit: int | None = None) -> str:
    """The first line of an error's text, which may be empty, cut to a number of characters."""
    return (str(error).strip().splitlines() or [""])[0][:limit]


def unknown(what: str, got: object, known: Iterable[str], hint: str = "") -> InputError:
    """Name the nearest known name first, then all of them; `hint` says what else there may be."""
    import difflib

    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    text = got[:MOST_QUOTED] if isinstance(got, str) else quote(got)
    near = difflib.get_close_matches(text.casefold(), folded, n=1, cutoff=0)
    nearest = f"did you mean {folded[near[0]]!r}? " if near else ""
    return InputError(f"{what}: unknown {quote(got)}; {nearest}known: {', '.join(names) or 'none'}{hint}")
