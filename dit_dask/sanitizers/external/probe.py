"""Probes a third-party sanitizer before any record is removed."""

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
    """How a sanitizer behaves on the whole table: deterministic, order-dependent, seconds a call; None is unknown.

    The counts are of the release: its rows, rows suppressed or left out, numbers read as the nearest level,
    and further columns, which no test looks at.
    """

    deterministic: bool | None
    order_matters: bool | None
    seconds: float
    rows: int
    suppressed: int
    absent: int
    nearest: int
    further: int = 0

    def document(self) -> dict[str, Any]:
        """Return the JSON object of the manifest."""
        return asdict(self)

    def description(self) -> str:
        """Describe the behaviour in one line, as progress shows it."""
        order = "order-dependent" if self.order_matters else "order-independent"
        behaviour = {
            True: f"deterministic, {order}",
            False: f"not deterministic, {order}",
            None: "read from files, not known to be deterministic",
        }[self.deterministic]
        missing = f"; {self.suppressed:,} rows suppressed, {self.absent:,} left out" if self.suppressed or self.absent else ""
        nearest = f"; {self.nearest:,} numbers read as the nearest value of the data" if self.nearest else ""
        return f"{behaviour}, {self.seconds:.2g} s a call{missing}{nearest}"


def probe(sanitizer: ExternalSanitizer, table: Table, streams: Streams) -> ProbeResult:
    """Sanitise the whole table twice, the second time in another order where that can save work; again if they differ."""
    try:
        was_cached = sanitizer.is_cached(table, streams("full"))
        start = time.perf_counter()
        first = sanitizer.call(table, streams("full"))
        seconds = time.perf_counter() - start
        deterministic, order_matters = None, sanitizer.order_matters
        if sanitizer.is_callable:
            shuffles = sanitizer.order_matters is None and sanitizer.has_equal_rows
            other = table.reordered(streams("order").permutation(table.distinct)) if shuffles else table
            start = time.perf_counter()
            again = sanitizer.call(other, streams("examine"), use_cache=False)
            seconds = time.perf_counter() - start
            deterministic, order_matters = first.fingerprint() == again.fingerprint(), bool(order_matters)
            if not deterministic and was_cached:
                _refuse_stale_cache(sanitizer, table, streams, first.fingerprint())
            if not deterministic and shuffles:
                order_matters = True
                deterministic = first.fingerprint() == sanitizer.call(table, streams("examine"), use_cache=False).fingerprint()
    except ExternalSanitizerError as error:
        raise RunError(f"{error}, on the whole table", hidden=error.hidden) from error
    absent = max(0, table.rows - first.rows - first.suppressed)
    return ProbeResult(
        deterministic, order_matters, seconds, first.rows, first.suppressed, absent, first.nearest, first.further
    )


def _refuse_stale_cache(sanitizer: ExternalSanitizer, table: Table, streams: Streams, cached: bytes) -> None:
    """Raise InputError if the cache was filled by other code: the sanitizer repeats itself, but not the cached release."""
    fresh, repeated = (
        sanitizer.call(table, streams(purpose), use_cache=False).fingerprint() for purpose in ("full", "examine")
    )
    if fresh == repeated != cached:
        raise InputError(f"{sanitizer.where}: the cache holds releases of other code than runs now; --fresh empties it")
