"""The tests of a run on the cluster: records spread over workers, parts written and checked by them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np

from dit_dask.audit.part_source import AuditedRows, PartSource
from dit_dask.audit.parts import Part, PartFile, WrittenPart, read_tallies, write_part
from dit_dask.audit.state import TestState
from dit_dask.audit.statistics import describe, describe_adversaries, points
from dit_dask.audit.summary import Description, Outcome
from dit_dask.audit.test import Test
from dit_dask.engines import ENGINES, Influence, exact
from dit_dask.engines.gain import GainTally, merge_tallies
from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
from dit_dask.errors import RunError
from dit_dask.execution.progress import Counting, Progress
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import Task, TaskSession
from dit_dask.measures.utility.figures import Utility
from dit_dask.sanitizers.claims import Recheck
from dit_dask.storage.folder import Folder
from dit_dask.values.pieces import PieceColumn, RowPiece, cut_piece

if TYPE_CHECKING:
    from distributed import Client, Future

    from dit_dask.values.arrays import Floats, Ints

WARM_UP_RECORDS = 32
COUNTED_PARTS = 8  # left to write, or it is done before anyone looks
SENT_RECORDS = 20_000  # of a test that are sent with every task
CHECKED_PARTS = 16  # by one task


class SharedTests:
    """What every task needs, scattered once: the tests with their tables, and with their rows if a sanitizer sees them.

    Each process adds to `warmed_up` the tests whose code it has compiled or loaded; that must not count as engine time.
    """

    def __init__(self, tests: Sequence[Test], warmed_up: Iterable[int] = ()) -> None:
        self.tests = [test if test.external is not None else test.without_rows() for test in tests]
        self.warmed_up = set(warmed_up)


@dataclass(frozen=True, eq=False)
class InfluenceTask:
    """Some records, tested for every test of a group."""

    group: tuple[int, ...]
    records: Ints


@dataclass(frozen=True)
class WriteTask:
    """Some parts of a test, written."""

    test: int
    parts: Sequence[int]


@dataclass(frozen=True)
class RecheckTask:
    """The release of a test, compared with its claim."""

    test: int


class Observer(Protocol):
    """Looks at the states between the tasks, and may end the run."""

    def __call__(self) -> None:
        """Look after every finished task."""
        ...

    def settle(self) -> None:
        """Look when all tasks are done, before anything is summed up."""
        ...


def start_compiling(client: Client) -> Future:
    """Have a worker load its code, and compile some of it if this is the first run ever; nobody needs to wait for it."""
    return client.submit(exact.compile_ahead, key=f"compile-{uuid4().hex[:8]}", pure=False)


def execute_tests(
    runner: TaskRunner,
    tests: Sequence[Test],
    folder: Folder,
    states: Sequence[TestState],
    checkpoint: Observer,
    *,
    warmed_up: bool = False,
) -> list[Outcome]:
    """Compute what is unknown, write what is unwritten, reduce every test; `warmed_up`: tasks run where all code is loaded."""
    shared = SharedTests(tests, range(len(tests)) if warmed_up else ())
    task_seconds = max(state.plan.seconds / max(1, state.plan.tasks) for state in states)

    def count_done() -> int:
        return sum(state.done for state in states)

    def work(session: TaskSession) -> list[Outcome]:
        tasks = TestTasks(session, session.scatter(shared), folder, states)
        tasks.compute(runner.progress, checkpoint)
        checkpoint.settle()
        return tasks.reduce()

    with Counting(runner.progress, sum(state.plan.distinct for state in states), count_done()):
        return runner.run(work, count_done, task_seconds)


class TestTasks:
    """The tasks of one session; their results go into the states, which outlive it."""

    def __init__(self, session: TaskSession, shared: Any, folder: Folder, states: Sequence[TestState]) -> None:
        self._session, self._shared, self._folder, self._states = session, shared, folder, states
        self._tasks: dict[Task, InfluenceTask | WriteTask | RecheckTask] = {}
        self._rechecks: dict[int, tuple[Recheck, PrivacyLoss | None, Utility]] = {}
        self._sources: dict[int, Any] = {}
        self._counts_parts = False

    def compute(self, progress: Progress, checkpoint: Observer) -> None:
        """Compute and write until nothing is missing."""
        for group in group_shared_releases(self._states):
            self._submit_influence(group)
        for test, state in enumerate(self._states):
            self._submit_write(test, state.ready())
            self._submit_recheck(test)
        for future in self._session.completed():
            result = self._session.result(future)  # raises what a task raised on which these depend
            task = self._tasks.pop(future)
            if isinstance(task, RecheckTask):
                self._rechecks[task.test] = result
                continue
            if isinstance(task, WriteTask):
                self._take_written(task, result)
                self._count_written(progress, len(task.parts))
                continue
            influences, seconds = result
            for test, influence in zip(task.group, influences, strict=True):
                state = self._states[test]
                done_before = state.done
                self._submit_write(test, state.record(task.records, influence))
                state.seconds += seconds / len(task.group)
                progress.advance(state.done - done_before)
            checkpoint()

    def _take_written(self, task: WriteTask, result: Sequence[WrittenPart]) -> None:
        for part, written in zip(task.parts, result, strict=True):
            if self._states[task.test].take_written(part, written):
                self._sources.pop(task.test, None)  # what workers have is not what is stored

    def _count_written(self, progress: Progress, parts: int) -> None:
        """Count parts once all records are known, if many are left to write."""
        if self._counts_parts:
            progress.advance(parts)
        elif all(state.is_done for state in self._states):
            total, written = sum(state.plan.parts for state in self._states), sum(len(state.written) for state in self._states)
            if total - written >= COUNTED_PARTS:
                progress.stop()
                progress.start(total, written, "parts written")
                self._counts_parts = True

    def _submit_influence(self, group: tuple[int, ...]) -> None:
        first, *others = (self._states[test] for test in group)
        for number, records in enumerate(first.chunks(others)):
            future = self._session.submit(
                influence_of,
                self._shared,
                group,
                records,
                key=f"influence-{first.test.id}-{number:05d}",
                description=f"{first.test.id}: influence of {len(records)} records",
                retries=first.test.policy.task_retries,
            )
            self._tasks[future] = InfluenceTask(group, records)

    def _submit_write(self, test: int, parts: Sequence[int]) -> None:
        """Have parts written; while records are unknown a task is sent its rows, and when all are known workers have them."""
        state = self._states[test]
        for batch in state.batches(parts):
            if state.is_done:
                content: Any = (self._source(test), *self._rows(state, batch), batch)
                write: Callable[..., list[WrittenPart]] = write_from
            else:
                content, write = ([state.source.part(part) for part in batch],), write_parts
            future = self._session.submit(
                write,
                self._folder,
                *content,
                key=f"write-{state.test.id}-{batch[0]:05d}",
                description=f"{state.test.id}: write of part {', '.join(map(str, batch))}",
                priority=10,
            )
            self._tasks[future] = WriteTask(test, batch)

    def _rows(self, state: TestState, batch: Sequence[int]) -> tuple[AuditedRows, list[Any]]:
        """The rows of some parts as arguments of a task; where they are kept elsewhere, a task there cuts them out."""
        pieces, chosen = state.rows.stretch(batch)
        if not isinstance(state.rows.record, PieceColumn):
            return chosen, pieces
        key, description = f"rows-{state.test.id}-{batch[0]:05d}", f"{state.test.id}: rows of part {batch[0]}"
        cut = [
            self._session.submit(cut_piece, *pair, key=f"{key}-{place}", description=description, wanted=False)
            for place, pair in enumerate(zip(pieces, chosen.cuts, strict=True))
        ]
        return replace(chosen, cuts=[slice(None)] * len(cut)), cut

    def _source(self, test: int) -> Any:
        """What the parts of a test are made of but its rows: sent once to every worker, or with each task if it is small."""
        if test not in self._sources:
            source = self._states[test].source
            recoded = () if source.rows.recoded is None else source.rows.recoded
            is_small = len(source.rows.counts) + len(recoded) < SENT_RECORDS
            light = source.without_rows()
            self._sources[test] = light if is_small else self._session.scatter(light)
        return self._sources[test]

    def reduce(self) -> list[Outcome]:
        """Check that each test's parts are stored, and describe what they say."""
        summaries = [self._submit_summary(test) for test in range(len(self._states))]
        results = {future: self._session.result(future) for future in self._session.completed()}
        outcomes = []
        for test, summary in enumerate(summaries):
            (description, curve), (recheck, loss, utility) = results[summary], self._rechecks[test]
            outcomes.append(Outcome(description, curve, recheck, loss, utility))
        return outcomes

    def _submit_recheck(self, test: int) -> None:
        identity = self._states[test].test.id
        key, description = f"recheck-{identity}", f"{identity}: release"
        future = self._session.submit(recheck_of, self._shared, test, key=key, description=description)
        self._tasks[future] = RecheckTask(test)

    def _submit_summary(self, test: int) -> Task:
        state = self._states[test]
        identity, description = state.test.id, f"{state.test.id}: summary"
        files, checks = state.parts(), []
        for number, start in enumerate(range(0, len(files), CHECKED_PARTS)):
            key, some = f"check-{identity}-{number:05d}", files[start : start + CHECKED_PARTS]
            checks.append(self._session.submit(check_parts, self._folder, some, key=key, description=description, wanted=False))
        source = self._source(test)
        return self._session.submit(describe_records, source, checks, key=f"finish-{identity}", description=description)


def group_shared_releases(states: Sequence[TestState]) -> list[tuple[int, ...]]:
    """Group the tests whose adversaries can learn from the same releases of an external sanitizer; others are alone."""
    groups: dict[Any, list[int]] = {}
    for position, state in enumerate(states):
        groups.setdefault(state.test.sharing_key(), []).append(position)
    return [tuple(group) for group in groups.values()]


def influence_of(shared: SharedTests, group: tuple[int, ...], records: Ints) -> tuple[list[Influence], float]:
    """On a worker: test some records, for every test of a group; also return the engine seconds."""
    tests = [shared.tests[test] for test in group]
    first, engine = tests[0], ENGINES[tests[0].engine]
    table = first.rows.table
    if group[0] not in shared.warmed_up and first.policy.warm_up:
        with suppress(Exception):  # an adversary may rightly refuse so few records; what counts is what has been loaded
            engine.influence(table.first(WARM_UP_RECORDS), np.arange(1), first.procedure)
        shared.warmed_up.add(group[0])
    start = time.perf_counter()
    if len(tests) > 1 and engine.together is not None:
        influences = engine.together([test.rows.table for test in tests], records, [test.procedure for test in tests])
    else:
        influences = [engine.influence(table, records, first.procedure)]
    return influences, time.perf_counter() - start


def recheck_of(shared: SharedTests, test: int) -> tuple[Recheck, PrivacyLoss | None, Utility]:
    """On a worker: compare what is published, or the noise, with what it claims, and with the table."""
    return shared.tests[test].recheck()


def write_parts(folder: Folder, contents: Sequence[Part]) -> list[WrittenPart]:
    """On a worker: write a few parts."""
    return [write_part(folder, content) for content in contents]


def write_from(
    folder: Folder, source: PartSource, chosen: AuditedRows, pieces: Sequence[RowPiece], parts: Sequence[int]
) -> list[WrittenPart]:
    """On a worker: make a few parts and write them."""
    own = source.cut_out(chosen, pieces)
    return [write_part(folder, own.part(part)) for part in parts]


def check_parts(folder: Folder, files: Sequence[PartFile]) -> dict[str, GainTally]:
    """On a worker: read a few parts back, so that the summary is of what is stored; return their tallies, added up."""
    found = []
    for file in files:
        tallies = read_tallies(folder, file)
        if tallies is None:
            raise RunError(
                f"{folder.url}/{file.name} cannot be read back; the output must be one place for all workers and the client"
            )
        found.append(tallies)
    return _add_up(found)


def _add_up(tallies: Sequence[Mapping[str, GainTally]]) -> dict[str, GainTally]:
    return {name: merge_tallies([each[name] for each in tallies]) for name in tallies[0]}


def describe_records(
    source: PartSource, tallies: Sequence[Mapping[str, GainTally]]
) -> tuple[Description, Mapping[str, Floats]]:
    """On a worker: the statistics and the points of the distribution of all records."""
    distribution = replace(source.distribution(), gains=_add_up(tallies))
    description = Description(describe(distribution), describe_adversaries(distribution), distribution.gains)
    return description, points(distribution)
