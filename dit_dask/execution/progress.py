"""What a person sees while a run works: a bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import Any, Protocol

from dit_dask.errors import escape_text
from dit_dask.storage.redaction import scrub

LINE_SECONDS = 5.0
NOTEBOOK_SECONDS, REDRAW_SECONDS = 1.0, 0.2


class Progress(Protocol):
    """Someone who wants to know how far a run is."""

    def note(self, text: str) -> None:
        """Say one thing."""
        ...

    def start(self, total: int, done: int, what: str = "records") -> None:
        """Begin counting records, or something else."""
        ...

    def advance(self, records: int) -> None:
        """Count some that are done."""
        ...

    def stop(self) -> None:
        """End counting."""
        ...


class Silent:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def start(self, total: int, done: int, what: str = "records") -> None:
        """Ignore it."""

    def advance(self, records: int) -> None:
        """Ignore it."""

    def stop(self) -> None:
        """Ignore it."""


class Lines:
    """Plain lines on stderr, one every few seconds."""

    def __init__(self) -> None:
        self._total = self._done = self._before = 0
        self._began = self._said = 0.0
        self._what = ""

    def note(self, text: str) -> None:
        """Print a line."""
        sys.stderr.write(f"dit: {escape_text(scrub(text))}\n")
        sys.stderr.flush()

    def start(self, total: int, done: int, what: str = "records") -> None:
        """Remember when counting began; what an earlier session did says nothing about speed."""
        self._total, self._done, self._before, self._what = total, done, done, what
        self._began = self._said = time.monotonic()

    def advance(self, records: int) -> None:
        """Print how far it is, unless that was said just now."""
        self._done += records
        now = time.monotonic()
        is_end = self._done == self._total and (self._what == "records" or self._said > self._began)
        if now - self._said >= LINE_SECONDS or is_end:
            self._said = now
            left = (now - self._began) / max(1, self._done - self._before) * (self._total - self._done)
            self.note(f"{self._done:,} of {self._total:,} {self._what}, about {left:.0f} s left")

    def stop(self) -> None:
        """Nothing to close."""


class Bar:
    """A rich progress bar on stderr."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._bar: Any = None
        self._task: Any = None

    def note(self, text: str) -> None:
        """Print above the bar."""
        self._console.print(escape_text(scrub(text)), markup=False, soft_wrap=True)

    def start(self, total: int, done: int, what: str = "records") -> None:
        """Show the bar."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=self._console, transient=True)
        self._bar.start()
        self._task = self._bar.add_task(what, total=total, completed=done)

    def advance(self, records: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, advance=records)

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Notebook:
    """A bar in the cell of a notebook, once the work takes a second; it is removed at the end."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._began = self._shown = 0.0
        self._what = ""
        self._note = ""
        self._display: Any = None

    def note(self, text: str) -> None:
        """Show it below the bar until the next note."""
        self._note = escape_text(scrub(text))
        if self._display is not None:
            self._draw()

    def start(self, total: int, done: int, what: str = "records") -> None:
        """Begin counting; nothing is drawn yet."""
        self._total, self._done, self._what = total, done, what
        self._began = self._shown = time.monotonic()

    def advance(self, records: int) -> None:
        """Move the bar, a few times a second."""
        self._done += records
        now = time.monotonic()
        if now - self._began >= NOTEBOOK_SECONDS and now - self._shown >= REDRAW_SECONDS:
            self._shown = now
            self._draw()

    def stop(self) -> None:
        """Remove the bar."""
        if self._display is not None:
            self._show("")
            self._display = None

    def _draw(self) -> None:
        bar = f'<progress max="{self._total}" value="{self._done}"></progress> {self._done:,} of {self._total:,} {self._what}'
        self._show(f"<div>{bar}</div><div>{escape(self._note)}</div>")

    def _show(self, page: str) -> None:
        from IPython.display import HTML, display

        if self._display is None:
            self._display = display(HTML(page), display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(HTML(page))  # type: ignore[no-untyped-call]


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported to find out."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def choose_progress(*, quiet: bool | None) -> Progress:
    """Choose by where the output goes; None is quiet everywhere but in a notebook."""
    if quiet or (quiet is None and not is_notebook()):
        return Silent()
    if is_notebook():
        return Notebook()
    return Bar() if sys.stderr.isatty() else Lines()


class Counting:
    """Counts between start and stop, also when the work in between fails."""

    def __init__(self, progress: Progress, total: int, done: int, what: str = "records") -> None:
        self._progress, self._total, self._done, self._what = progress, total, done, what

    def __enter__(self) -> Progress:
        self._progress.start(self._total, self._done, self._what)
        return self._progress

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()
