"""The history of an output: the trend of every test, and what has risen since the run before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from typing import Any

from dit_dask.audit.index import Entry, series_of
from dit_dask.errors import unknown
from dit_dask.reporting.html import columns, number

ROUNDING = 1e-9  # another machine may round the last digits differently; nothing else makes an exact delta move


@dataclass(frozen=True)
class Rise:
    """A test whose delta is larger than in the run before, by more than noise explains."""

    name: str
    test: str
    run: str
    date: str
    before: float | str
    after: float | str


def named(runs: Sequence[Entry], name: str | None) -> list[Entry]:
    """Keep the runs of one name."""
    known = {one["name"] for one in runs}
    if name is not None and name not in known:
        raise unknown("--name", name, known)
    return [one for one in runs if name in (None, one["name"])]


def rises(runs: Sequence[Entry]) -> list[Rise]:
    """Compare each run with the one before it of the same name and audit."""
    found = []
    for before, after in _neighbours(runs):
        for test in before["tests"].keys() & after["tests"].keys():
            old, new = before["tests"][test], after["tests"][test]
            if is_rise(old, new):
                found.append(Rise(after["name"], test, after["run"], after["date"], old["delta"], new["delta"]))
    return sorted(found, key=lambda rise: (rise.name, rise.date, rise.test))


def is_rise(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Tell whether delta rose by more than rounding or, where it is estimated, beyond both intervals."""
    if None in (old["delta"], new["delta"]):
        return False
    most = float(old.get("interval", [old["delta"]])[-1])
    least = float(new.get("interval", [new["delta"]])[0])
    if math.isinf(most):
        return False
    return least > most + ROUNDING * max(1.0, abs(most))


def _neighbours(runs: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    ordered = sorted(runs, key=series_of)  # stable: within a series the order of completion stays
    return [pair for _, group in groupby(ordered, key=series_of) for pair in pairwise(group)]


def document(runs: Sequence[Entry]) -> dict[str, Any]:
    """The runs and their rises, for --json."""
    return {"runs": list(runs), "rises": [asdict(rise) for rise in rises(runs)]}


def text(runs: Sequence[Entry]) -> str:
    """Lay out the trend of every test, oldest first; a rise is marked."""
    flagged = {(rise.run, rise.date, rise.test) for rise in rises(runs)}
    lines = [["test", "name", "date", "run", "rows", "delta", "change", ""]]
    for _, group in groupby(sorted(runs, key=series_of), key=series_of):
        series = list(group)
        for test in dict.fromkeys(test for one in series for test in one["tests"]):
            last = math.nan
            for one in (one for one in series if test in one["tests"]):
                shown = one["tests"][test]["delta"]
                delta = math.nan if shown is None else float(shown)
                change = 0.0 if delta == last else delta - last
                mark = "ROSE" if (one["run"], one["date"], test) in flagged else ""
                figures = (number(one["rows"]), number(shown), number(None if math.isnan(change) else change))
                lines.append([test, one["name"], one["date"], one["run"], *figures, mark])
                last = delta
    return columns(lines)
