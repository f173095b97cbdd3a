"""The history of an output: the trend of every test, and what has risen since the run before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from dit_dask.audit.index import IndexEntry, TestFigures
from dit_dask.audit.statistics import Figure, plain
from dit_dask.audit.verdict import Verdict
from dit_dask.errors import unknown
from dit_dask.reporting.text import align, columns_in, number

ROUNDING = 1e-9  # another machine may round the last digits differently; nothing else makes an exact delta move


@dataclass(frozen=True)
class Rise:
    """A test whose delta is larger than in the run before, by more than noise explains."""

    name: str
    test: str
    run: str
    date: str
    before: Figure
    after: Figure


def named(runs: Sequence[IndexEntry], name: str | None) -> list[IndexEntry]:
    """Keep the runs of one name."""
    known = {one.name for one in runs}
    if name is not None and name not in known:
        raise unknown("--name", name, known)
    return [one for one in runs if name in (None, one.name)]


def rises(runs: Sequence[IndexEntry]) -> list[Rise]:
    """Compare each run with the one before it of the same name and audit."""
    found = []
    for before, after in (pair for series in _series(runs) for pair in pairwise(series)):
        for test in before.tests.keys() & after.tests.keys():
            old, new = before.tests[test], after.tests[test]
            if is_rise(old, new):
                found.append(Rise(after.name, test, after.run, after.date, old.delta, new.delta))
    return sorted(found, key=lambda rise: (rise.name, rise.date, rise.test))


def is_rise(old: TestFigures, new: TestFigures) -> bool:
    """Tell whether delta rose by more than rounding or, where it is estimated, beyond both intervals."""
    if old.delta is None or new.delta is None:
        return False
    most = old.delta if old.interval is None else old.interval[1]
    least = new.delta if new.interval is None else new.interval[0]
    if math.isinf(most):
        return False
    return least > most + ROUNDING * max(1.0, abs(most))


def compositions(url: str, runs: Sequence[IndexEntry]) -> list[str]:
    """Warn where the newest release of a name is not the first: other data was audited under it before.

    The index does not say who is in a table. The same name and other data is what a schedule of the same people looks like.
    """
    warnings = []
    output = url.rstrip("/") if "://" in url else str(Path(url).absolute())  # a config's inputs are relative to its own folder
    for name in dict.fromkeys(run.name for run in runs):
        own = [run for run in runs if run.name == name]
        newest = own[-1]
        earlier = {run.fingerprint: run.run for run in own if run.fingerprint != newest.fingerprint}
        if earlier:
            measure = f"[{{name: composition, with: {output}/{list(earlier.values())[-1]}, match: {{key: COLUMN}}}}]"
            several = f"{len(earlier):,} earlier release{'s' if len(earlier) > 1 else ''} on other data"
            warnings.append(
                f"{name}: {newest.run} is composed with {several}: if some of the same persons are in them, whoever has two "
                f"can intersect their classes, which no delta of one release shows; measure it: dit run CONFIG --set "
                f"'measures={measure}' (without match where the schema has a subject)"
            )
    return warnings


def _series(runs: Sequence[IndexEntry]) -> list[list[IndexEntry]]:
    ordered = sorted(runs, key=lambda run: run.series)  # stable: within a series the order of completion stays
    return [list(group) for _, group in groupby(ordered, key=lambda run: run.series)]


def document(url: str, runs: Sequence[IndexEntry], *, is_judged: bool = False) -> dict[str, Any]:
    """The runs of an output and their rises, for --json; `tests` are those of the newest run of each series.

    Rises are judged only if they are to decide the exit code.
    """
    found = rises(runs)
    newest = [series[-1] for series in _series(runs)]
    tests = [{"test": test, "run": run.run} | one.document() for run in newest for test, one in run.tests.items()]
    verdicts = [_verdict(rise).document() for rise in found] if is_judged else []
    status = ("failed" if found else "passed") if is_judged else "none"
    head = {
        "run": url,
        "status": status,
        "tests": tests,
        "measures": [],
        "verdicts": verdicts,
        "warnings": compositions(url, runs),
    }
    listed = [asdict(rise) | {"before": plain(rise.before), "after": plain(rise.after)} for rise in found]
    return head | {"runs": [run.document() for run in runs], "rises": listed}


def _verdict(rise: Rise) -> Verdict:
    reason = f"delta rose from {number(rise.before)} to {number(rise.after)} in {rise.run}"
    return Verdict("failed", "delta does not rise", rise.test, rise.after, rise.before, reason)


def text(runs: Sequence[IndexEntry]) -> str:
    """Lay out the trend of every test, oldest first; a rise of delta is marked."""
    flagged = {(rise.run, rise.date, rise.test) for rise in rises(runs)}
    shown = sorted(columns_in("history"), key=lambda column: column.label == "delta")  # beside its change
    lines = [["test", "name", "date", "run", "rows", *(column.title for column in shown), "change", ""]]
    for series in _series(runs):
        for test in dict.fromkeys(test for run in series for test in run.tests):
            kept = [run for run in series if test in run.tests]
            for run, change in zip(kept, _changes([run.tests[test].delta for run in kept]), strict=True):
                figures = [column.show(run.tests[test].figures.get(column.label)) for column in shown]
                mark = "ROSE" if (run.run, run.date, test) in flagged else ""
                lines.append([test, run.name, run.date, run.run, number(run.rows), *figures, number(change), mark])
    return align(lines)


def _changes(deltas: Sequence[Figure]) -> Iterator[Figure]:
    """What each delta adds to the one before it."""
    for before, after in pairwise([None, *deltas]):
        if before is None or after is None:
            yield None
        else:
            yield 0.0 if before == after else after - before
