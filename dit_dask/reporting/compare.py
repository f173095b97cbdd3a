"""Two audits side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dit_dask.reporting.html import columns, number, share

FIELDS = ("delta", "mean", "q0.99", "d>0.01", "guess changed")


def text(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> str:
    """Pair the tests of two runs by id; tests that only one of them has follow."""
    old, new = ({test["test"]: test for test in run} for run in (before, after))
    rows = [["test", *(f"{name} {side}" for name in FIELDS for side in ("1", "2")), "delta change"]]
    for identity in sorted({**old, **new}, key=lambda one: (one not in old) + 2 * (one not in new)):
        pair = old.get(identity), new.get(identity)
        cells = [_cells(test) for test in pair]
        deltas = [float(test["delta"]) for test in pair if test]
        change = "–" if len(deltas) < 2 else number(0.0 if deltas[0] == deltas[1] else deltas[1] - deltas[0])
        rows.append([identity, *(cell for both in zip(*cells, strict=True) for cell in both), change])
    return columns(rows)


def _cells(test: Mapping[str, Any] | None) -> list[str]:
    if test is None:
        return ["–"] * len(FIELDS)
    return [
        number(test["delta"]),
        number(test["mean"]),
        number(test["quantiles"]["0.99"]),
        share(test["share_over"]["0.01"]),
        share(test["argmax_changed"]),
    ]
