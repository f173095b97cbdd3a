"""The plan of a run: how the rows of each test are cut into parts, fixed before work starts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.engines import ENGINES
from dit_dask.errors import InputError
from dit_dask.sweep import Test
from dit_dask.table import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST, LONGEST = 1.5, 10.0  # seconds of work in a part: enough to hide overhead, little enough to lose
PROBE_SECONDS, PROBE_RECORDS = 0.25, 12


@dataclass(frozen=True, eq=False)
class TestPlan:
    """One test's cut: part p holds the audited rows boundaries[p] to boundaries[p + 1]."""

    __test__ = False

    boundaries: "NDArray[np.int64]"
    distinct: int
    seconds_per_record: float

    @property
    def parts(self) -> int:
        """The number of part files."""
        return len(self.boundaries) - 1

    @property
    def seconds(self) -> float:
        """Estimated engine time of the whole test on one core."""
        return self.distinct * self.seconds_per_record

    def document(self) -> dict[str, Any]:
        """The plan as the manifest keeps it."""
        return {
            "boundaries": self.boundaries.tolist(),
            "distinct": self.distinct,
            "seconds_per_record": self.seconds_per_record,
        }


def document(tests: Sequence[Test], plans: Sequence[TestPlan]) -> dict[str, Any]:
    """The plans of all tests as the manifest keeps them."""
    return {test.id: one.document() for test, one in zip(tests, plans, strict=True)}


def restore(kept: Mapping[str, Any]) -> TestPlan:
    """Read a plan back from a manifest."""
    return TestPlan(np.array(kept["boundaries"]), kept["distinct"], kept["seconds_per_record"])


def first_rows(test: Test, rows: Rows) -> "NDArray[np.bool_]":
    """Return (audited,): whether a row is the first audited one of its distinct record."""
    _, position = np.unique(rows.index[test.audited], return_index=True)
    first = np.zeros(len(test.audited), bool)
    first[position] = True
    return first


def make(tests: Sequence[Test], rows: Rows, workers: int) -> list[TestPlan]:
    """Probe every test and cut it into parts of about equal work."""
    costs = [probe(test, rows) for test in tests]
    firsts = [first_rows(test, rows) for test in tests]
    total = sum(cost * first.sum() for cost, first in zip(costs, firsts, strict=True))
    goal = min(LONGEST, max(SHORTEST, total / (32 * workers)))
    return [TestPlan(cut(first, goal / cost), int(first.sum()), cost) for first, cost in zip(firsts, costs, strict=True)]


def probe(test: Test, rows: Rows) -> float:
    """Measure the seconds a record takes, on a few of them; the first call may compile and does not count."""
    records = np.unique(rows.index[test.audited])
    engine = ENGINES[test.engine]
    try:
        engine(rows.table, records[:1], test.procedure)
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise InputError(f"the test {test.id} cannot run: {type(error).__name__}: {line}") from error
    spent, done = 0.0, 0
    while done < PROBE_RECORDS and spent < PROBE_SECONDS:
        start = time.perf_counter()
        engine(rows.table, records[done * len(records) // PROBE_RECORDS :][:1], test.procedure)
        spent += time.perf_counter() - start
        done += 1
    return spent / done


def cut(first: "NDArray[np.bool_]", records_per_part: float) -> "NDArray[np.int64]":
    """Return the row boundaries of parts that each begin about so many distinct records."""
    distinct = int(first.sum())
    parts = int(min(max(1, round(distinct / records_per_part)), distinct))
    starts = np.flatnonzero(first)[(np.arange(parts) * distinct) // parts]
    return np.concatenate([[0], starts[1:], [len(first)]]).astype(np.int64)
