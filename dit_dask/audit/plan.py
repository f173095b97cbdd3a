"""The plan of a run: how the rows of each test are cut into parts, fixed before work starts."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.test import Test
from dit_dask.engines import ENGINES
from dit_dask.errors import InputError, describe
from dit_dask.values.arrays import Ints

if TYPE_CHECKING:
    from dit_dask.sanitizers.external.probe import ProbeResult

SHORTEST, LONGEST = 1.5, 10.0  # seconds of work in a task: enough to hide overhead, little enough to lose
PROBE_SECONDS = 0.25
LEAST_GROWTH, MOST_GROWTH = 4, 32  # of the records from one probe to the next
ENOUGH = 64  # a probe of so small a part of the records tells whether all of them take less time than a probe
MOST_ROWS = 250_000  # of a part
FEWEST_TASKS = 8  # a worker, of such a test: a failed gate should show before the end
MOST_TASKS = 2**31  # no table has as many rows
MOST_PARTS = 512  # of a test with an external sanitizer


@dataclass(frozen=True)
class Cost:
    """Seconds of engine time: once for every task, and for each distinct record."""

    task: float
    record: float


@dataclass(frozen=True, eq=False)
class TestPlan:
    """One test's cut: part p holds the audited rows boundaries[p] to boundaries[p + 1]; `tasks` compute them."""

    __test__ = False

    boundaries: Ints
    tasks: int
    distinct: int
    cost: Cost
    probe: ProbeResult | None = None  # of the external sanitizer

    @property
    def parts(self) -> int:
        """The number of part files."""
        return len(self.boundaries) - 1

    @property
    def seconds(self) -> float:
        """Estimated engine time of the whole test on one core."""
        return self.tasks * self.cost.task + self.distinct * self.cost.record

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> TestPlan:
        """The inverse of `document`."""
        cost = Cost(**kept["seconds"])
        return cls(np.array(kept["boundaries"]), kept["tasks"], kept["distinct"], cost, _read_probe(kept))

    def document(self) -> dict[str, Any]:
        """The plan as the manifest keeps it."""
        shown = {
            "boundaries": self.boundaries.tolist(),
            "tasks": self.tasks,
            "distinct": self.distinct,
            "seconds": {"task": self.cost.task, "record": self.cost.record},
        }
        return shown if self.probe is None else shown | {"oracle": self.probe.document()}


def _read_probe(kept: Mapping[str, Any]) -> ProbeResult | None:
    if "oracle" not in kept:
        return None
    from dit_dask.sanitizers.external.probe import ProbeResult

    return ProbeResult(**kept["oracle"])


def are_usable(plans: Mapping[str, TestPlan], tests: Sequence[Test]) -> bool:
    """Tell whether stored plans are those of these tests: a damaged file must not decide how much work there is."""
    return all(test.id in plans and _is_usable(plans[test.id], test) for test in tests)


def _is_usable(plan: TestPlan, test: Test) -> bool:
    numbers = (plan.cost.task, plan.cost.record)
    if not all(type(count) is int and 1 <= count <= MOST_TASKS for count in (plan.tasks, plan.distinct)):
        return False
    if not all(isinstance(number, int | float) and 0 <= number < float("inf") for number in numbers):
        return False
    cuts = plan.boundaries
    if cuts.dtype.kind != "i" or cuts.ndim != 1 or len(cuts) < 2:
        return False
    return bool(cuts[0] == 0 and cuts[-1] == len(test.audited) and (np.diff(cuts) > 0).all())


def first_rows(test: Test) -> Ints:
    """Return, ascending, the place among the audited rows of the first one of each distinct record."""
    found = test.rows.first_places(test.audited)
    return np.sort(found[found < len(test.audited)])


def make(tests: Sequence[Test], workers: int, probes: Mapping[str, ProbeResult] = MappingProxyType({})) -> dict[str, TestPlan]:
    """Time a few records of every test, and cut it into tasks and parts of about equal work; by the tests' ids.

    `probes` has the results of the first calls of external sanitizers.
    """
    costs = [_call_cost(test, probes[test.id]) if test.policy.planned_by_calls else time_records(test) for test in tests]
    firsts = [first_rows(test) for test in tests]
    total = sum(cost.record * len(first) for cost, first in zip(costs, firsts, strict=True))
    goal = min(LONGEST, max(SHORTEST, total / (32 * workers)))
    plans = {}
    for test, first, cost in zip(tests, firsts, costs, strict=True):
        distinct, rows = len(first), len(test.audited)
        if test.policy.planned_by_calls:  # calls may be slow: parts are not cut as small as tasks
            tasks = min(distinct, max(FEWEST_TASKS * workers, int(distinct * cost.record / goal)))
            boundaries = cut(first, max(goal / max(cost.record, 1e-9), distinct / MOST_PARTS), rows)
        elif ENGINES[test.engine].chunks is None:
            boundaries = cut(first, goal / max(cost.record, 1e-9), rows)
            tasks = len(boundaries) - 1
        else:  # every task has the engine's fixed cost, so a test is cut only where that pays
            boundaries = cut(first, distinct * min(1.0, MOST_ROWS / rows), rows)
            tasks = min(4 * workers, max(1, int(distinct * cost.record / max(goal, cost.task))))
        plans[test.id] = TestPlan(split_long(boundaries), tasks, distinct, cost, probes.get(test.id))
    return plans


def _call_cost(test: Test, probed: ProbeResult) -> Cost:
    """A record of an external sanitizer costs its calls; training adds little."""
    return Cost(0.0, probed.seconds * test.repeats)


def memory_needed(available: int | None) -> int:
    """Return the bytes a worker will need, or refuse if that is more than it has.

    This process has loaded the table and run tasks of every test, so its own peak is the estimate.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    needed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if available is not None and needed > available:
        raise InputError(
            f"cluster: a worker needs about {needed / 1e6:,.0f} MB and has {available / 1e6:,.0f} MB; "
            "use fewer workers, or fewer rows (data.limit)"
        )
    return needed


def time_records(test: Test) -> Cost:
    """Measure one record, then a few more; the very first call may compile and does not count."""
    rows, engine = test.rows, ENGINES[test.engine]
    records = np.flatnonzero(rows.count_records(test.audited))
    if engine.chunks is not None:  # in the order in which a task has them
        records = np.concatenate(engine.chunks(rows.table, records, test.procedure, 1))

    def seconds(count: int) -> float:
        if engine.chunks is None:
            some = records[np.arange(count) * len(records) // count]
        else:  # neighbours, as in a real task
            middle = (len(records) - count) // 2
            some = records[middle : middle + count]
        start = time.perf_counter()
        try:
            engine.influence(rows.table, some, test.procedure)
        except Exception as error:
            shown, hidden = describe(error)
            raise InputError(f"the test {test.id} cannot run: {shown}", hidden=hidden) from error
        return time.perf_counter() - start

    seconds(1)
    one, count, several = seconds(1), 1, 0.0
    # where tasks share work a record takes microseconds, and every probe the fixed cost of a task
    first_count = 0 if engine.chunks is None else len(records) // ENOUGH**2
    while count < len(records) and several < PROBE_SECONDS + one:
        if count > 1:
            growth = 2 * PROBE_SECONDS / max(several - one, 1e-9)
            count = min(int(count * min(max(growth, LEAST_GROWTH), MOST_GROWTH)), len(records))
        else:
            count = min(max(LEAST_GROWTH, first_count), len(records))
        several = seconds(count)
        if count * ENOUGH >= len(records) and (several - one) * len(records) < PROBE_SECONDS * count:
            break
    each = max(0.0, several - one) / (count - 1) if count > 1 else one
    return Cost(max(0.0, one - each), each)


def cut(first: Ints, records_per_part: float, rows: int) -> Ints:
    """Return the row boundaries of parts that each begin about so many distinct records."""
    parts = int(min(max(1, round(len(first) / records_per_part)), len(first)))
    starts = first[(np.arange(parts) * len(first)) // parts]
    return np.concatenate([[0], starts[1:], [rows]]).astype(np.int64)


def split_long(boundaries: Ints) -> Ints:
    """Cut parts of too many rows: records that began before may go on for long."""
    parts = -(-np.diff(boundaries) // MOST_ROWS)
    ends = zip(pairwise(boundaries), parts, strict=True)
    pieces = [np.linspace(start, stop, count, endpoint=False) for (start, stop), count in ends]
    return np.concatenate([*pieces, boundaries[-1:]]).astype(np.int64)
