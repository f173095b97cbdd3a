"""Two audits side by side."""

from __future__ import annotations

from collections.abc import Sequence

from dit_dask.audit.summary import TestSummary
from dit_dask.reporting.text import NOTHING, align, columns_in, number


def text(before: Sequence[TestSummary], after: Sequence[TestSummary]) -> str:
    """Pair the tests of two runs by id; tests that only one of them has follow."""
    shown = columns_in("compare")
    old, new = ({one.test: one for one in run} for run in (before, after))
    rows = [["test", *(f"{column.title} {side}" for column in shown for side in ("1", "2")), "delta change"]]
    for test in sorted({**old, **new}, key=lambda one: (one not in old) + 2 * (one not in new)):
        pair = old.get(test), new.get(test)
        cells = [NOTHING if one is None else column.cell(one) for column in shown for one in pair]
        rows.append([test, *cells, _change([one.delta for one in pair if one is not None])])
    return align(rows)


def _change(deltas: Sequence[float | None]) -> str:
    if len(deltas) < 2 or deltas[0] is None or deltas[1] is None:
        return NOTHING
    return number(0.0 if deltas[0] == deltas[1] else deltas[1] - deltas[0])
