"""What can be known of a black box before any record is removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import ExternalSanitizerError, InputError, RunError
from dit_dask.sanitizers.external.sanitizer import ExternalSanitizer

if TYPE_CHECKING:
    from dit_dask.values.table import Table

Streams = Callable[[str], np.random.Generator]


@dataclass(frozen=True)
class ProbeResult:
    """How a black box behaves on the whole table: whether it repeats itself, minds the order of rows, and how long it takes.

    What nobody could ask is not known. The tallies are of the release: rows that it holds, rows suppressed or left out,
    numbers read as the nearest level.
    """

    deterministic: bool | None
    order_matters: bool | None
    seconds: float
    rows: int
    suppressed: int
    absent: int
    nearest: int

    def document(self) -> dict[str, Any]:
        """As the manifest keeps it."""
        return asdict(self)

    def words(self) -> str:
        """In words."""
        mind = "minds the order of rows" if self.order_matters else "does not mind the order of rows"
        if self.deterministic is None:
            mind = "so nobody knows whether it draws at random"
        mood = {True: "deterministic", False: "not deterministic", None: "only read, not asked"}[self.deterministic]
        gone = f"; {self.suppressed:,} rows suppressed, {self.absent:,} left out" if self.suppressed or self.absent else ""
        guess = f"; {self.nearest:,} numbers read as the nearest value of the data" if self.nearest else ""
        return f"{mood}, {mind}, {self.seconds:.2g} s a call{gone}{guess}"


def examine(oracle: ExternalSanitizer, table: Table, streams: Streams) -> ProbeResult:
    """Ask twice for the whole table, the second time in another order if that would save work; more often if they differ."""
    try:
        was_known = oracle.is_cached(table, streams("full"))
        began = time.perf_counter()
        first = oracle.ask(table, streams("full"))
        seconds = time.perf_counter() - began
        deterministic, order_matters = None, oracle.order_matters
        if oracle.is_asked:
            shuffles = oracle.order_matters is None and oracle.has_equal_rows
            other = table.reordered(streams("order").permutation(table.distinct)) if shuffles else table
            began = time.perf_counter()
            again = oracle.ask(other, streams("examine"), anew=True)
            seconds = time.perf_counter() - began
            deterministic, order_matters = first.fingerprint() == again.fingerprint(), bool(order_matters)
            if not deterministic and was_known:
                _refuse_stale(oracle, table, streams, first.fingerprint())
            if not deterministic and shuffles:
                order_matters = True
                deterministic = first.fingerprint() == oracle.ask(table, streams("examine"), anew=True).fingerprint()
    except ExternalSanitizerError as error:
        raise RunError(f"{error}, on the whole table") from error
    absent = max(0, table.rows - first.rows - first.suppressed)
    return ProbeResult(deterministic, order_matters, seconds, first.rows, first.suppressed, absent, first.nearest)


def _refuse_stale(oracle: ExternalSanitizer, table: Table, streams: Streams, known: bytes) -> None:
    """Tell a cache that other code filled from an oracle that draws at random: the latter does not repeat itself."""
    fresh, once_more = (oracle.ask(table, streams(purpose), anew=True).fingerprint() for purpose in ("full", "examine"))
    if fresh == once_more != known:
        raise InputError(f"{oracle.where}: the cache holds releases of other code than runs now; --fresh empties it")
