"""The Dask side of a run: records spread over workers, parts written by them, distributions merged as a tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np

from dit_dask.audit.parts import PartFile, part_name, read_part, write_part
from dit_dask.audit.state import TestState
from dit_dask.audit.statistics import Distribution, Statistics, describe, merge, points
from dit_dask.audit.summary import Outcome
from dit_dask.audit.test import Test
from dit_dask.engines import ENGINES, Influence, NoisyCounts, Procedure, exact
from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
from dit_dask.engines.noisy_counts.procedure import shown_loss
from dit_dask.engines.priority import estimated_influence
from dit_dask.errors import DitError, RunError, first_line
from dit_dask.execution.progress import Counting, Progress
from dit_dask.execution.stall import Watchdog
from dit_dask.sanitizers.claims import Recheck, recheck
from dit_dask.sanitizers.external.probe import ProbeResult, probe
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    from distributed import Client, Future, as_completed

    from dit_dask.values.arrays import Floats, Ints

RETRIES = 2
ATTEMPTS = 6
LONGEST_PAUSE = 15
RESTART_SECONDS, LOOK_SECONDS = 60, 10
FAN_IN = 8
WARM_RECORDS = 32
TICK_SECONDS, WAIT_SECONDS = 0.1, 5.0


@dataclass(frozen=True, eq=False)
class Study:
    """What every worker needs, scattered once: the tests with their rows."""

    tests: Sequence[Test]

    @cached_property
    def warm(self) -> set[int]:
        """The tests whose code this process has compiled or loaded; that must not count as engine time."""
        return set()


class LostWorkError(Exception):
    """Tasks were cancelled because workers died with data that only they had."""


class KilledTaskError(RunError):
    """Every worker that took a task died: it kills them, or something else does."""


def warm_up(client: Client) -> Future:
    """Have a worker load its code, and compile some of it if this is the first run ever; nobody needs to wait for it."""
    return client.submit(exact.compile_ahead, key=f"compile-{uuid4().hex[:8]}", pure=False)


class Steps(Protocol):
    """Someone who looks at the states between the steps, and may end the run."""

    def __call__(self) -> None:
        """Look after every finished task."""
        ...

    def settle(self) -> None:
        """Look when all tasks are done, before anything is summed up."""
        ...


def execute(
    client: Client,
    study: Study,
    folder: Folder,
    states: Sequence[TestState],
    progress: Progress,
    checkpoint: Steps,
    watchdog: Watchdog,
) -> list[Outcome]:
    """Compute what is unknown, write what is unwritten, reduce every test; start again if all workers died at once."""
    total = sum(state.plan.distinct for state in states)
    watchdog.expect(max(state.plan.seconds / max(1, state.plan.tasks) for state in states))
    vain, during = 0, "the start"  # sessions in a row that finished nothing, and where the last one ended
    with Counting(progress, total, sum(state.done for state in states)):
        while vain < ATTEMPTS:
            before = sum(state.done for state in states)
            try:
                gathered(client)
                session = Session(client, _sent(client, study), folder, states, watchdog, uuid4().hex[:8])
                session.work(progress, checkpoint)
                checkpoint.settle()
                return session.reduce()
            except (LostWorkError, CancelledError, TimeoutError, OSError) as error:  # OSError: a connection was cut
                during = str(error) if isinstance(error, LostWorkError) else during
                progress.note("the cluster lost its workers; sending them the data again")
            except KilledTaskError:  # it kills its workers, or something else does: then others will be finished
                if vain:
                    raise
                progress.note("a task lost its workers again and again; trying it again")
            vain = 0 if sum(state.done for state in states) > before else vain + 1
            time.sleep(min(2**vain, LONGEST_PAUSE))  # new workers need some seconds
    raise RunError(
        f"the cluster lost its workers {ATTEMPTS} times in a row, last during {during} (out of memory?); "
        "the same command resumes what is left"
    )


def gathered(client: Client) -> None:
    """Wait for a worker; a local cluster replaces one whose very start was cut short only when it is asked to."""
    from distributed import LocalCluster

    for _ in range(RESTART_SECONDS // LOOK_SECONDS):
        if isinstance(client.cluster, LocalCluster):
            client.cluster.scale(len(client.cluster.worker_spec))
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=LOOK_SECONDS)
            return
    raise LostWorkError("waiting for workers")


def _sent(client: Client, study: Study) -> Future:
    """Send every worker the data; where one dies meanwhile, the scheduler fails in any of several ways."""
    try:
        return client.scatter(study, broadcast=True, hash=False)
    except Exception as error:
        raise LostWorkError(f"sending the data: {type(error).__name__}: {first_line(error, 100)}") from error


@dataclass(frozen=True, eq=False)
class Session:
    """One try at the work with one copy of the data on the cluster; what it finds stays in the states."""

    client: Client
    shared: Future
    folder: Folder
    states: Sequence[TestState]
    watchdog: Watchdog
    name: str

    def work(self, progress: Progress, checkpoint: Callable[[], None]) -> None:
        """Compute and write until nothing is missing."""
        from distributed import as_completed

        tasks: dict[Future, tuple[str, tuple[int, ...], Any]] = {}
        for group in sharing(self.states):
            tasks |= self._compute(group)
        for test, state in enumerate(self.states):
            tasks |= self._write(test, state.ready())
        following = as_completed(list(tasks), raise_errors=False)
        try:
            for future in self._followed(following):
                kind, group, what = tasks.pop(future)
                result = result_of(future, f"{self.states[group[0]].test.id}: {kind} of {_label(kind, what)}")
                if kind == "write":
                    self.states[group[0]].written |= dict(zip(what, result, strict=True))
                    continue
                influences, seconds = result
                for test, influence in zip(group, influences, strict=True):
                    state = self.states[test]
                    before = state.done
                    more = self._write(test, state.learn(what, influence))
                    state.seconds += seconds / len(group)
                    tasks |= more
                    following.update(list(more))
                    progress.advance(state.done - before)
                checkpoint()
        finally:
            self.client.cancel(list(tasks))

    def _followed(self, following: as_completed) -> Iterator[Future]:
        """Yield futures as they end, and watch that they do."""
        self.watchdog.reset()
        while not following.is_empty():
            while not following.has_ready():
                with following.thread_condition:
                    following.thread_condition.wait(TICK_SECONDS)
                if self.watchdog.expired:
                    raise self.watchdog.stalled(self._waiting([future.key for future in following.futures]))
            yield next(following)
            self.watchdog.reset()

    def _waiting(self, keys: Sequence[str]) -> list[str]:
        """The tasks that are not done, those at work first, and where they are."""
        with suppress(Exception):  # a scheduler that does not answer cannot tell
            running = {key: worker for worker, held in self.client.processing().items() for key in held}
            keys = sorted(keys, key=lambda key: (key not in running, key))
            return [f"{key} on {running[key]}" if key in running else f"{key} (not started)" for key in keys]
        return sorted(keys)

    def _wait(self, futures: Sequence[Future]) -> None:
        """Wait for all; while other tasks come and go in the workers, there is progress."""
        from distributed import wait

        self.watchdog.reset()
        before: Any = None
        while True:
            try:
                wait(futures, timeout=WAIT_SECONDS)
                return
            except TimeoutError:
                now = self.client.processing()
                if now != before:
                    self.watchdog.reset()
                before = now
            if self.watchdog.expired:
                raise self.watchdog.stalled(self._waiting([key for held in before.values() for key in held]))

    def _submit(
        self, function: Callable[..., Any], *arguments: Any, key: str, retries: int = RETRIES, priority: int = 0
    ) -> Future:
        return self.client.submit(
            function, *arguments, key=f"{key}-{self.name}", retries=retries, priority=priority, pure=False
        )

    def _compute(self, group: tuple[int, ...]) -> dict[Future, tuple[str, tuple[int, ...], Any]]:
        first, *others = (self.states[test] for test in group)
        retries = RETRIES if first.test.oracle is None else 0  # a black box has a policy of its own
        tasks = {}
        for number, records in enumerate(first.chunks(others)):
            key = f"influence-{first.test.id}-{number:05d}"
            future = self._submit(influence_of, self.shared, group, records, key=key, retries=retries)
            tasks[future] = ("influence", group, records)
        return tasks

    def _write(self, test: int, parts: Sequence[int]) -> dict[Future, tuple[str, tuple[int, ...], Any]]:
        state = self.states[test]
        tasks: dict[Future, tuple[str, tuple[int, ...], Any]] = {}
        for batch in state.batches(parts):
            key = f"write-{state.test.id}-{batch[0]:05d}"
            contents = [state.part(part) for part in batch]
            tasks[self._submit(write_parts, self.folder, contents, key=key, priority=10)] = ("write", (test,), batch)
        return tasks

    def reduce(self) -> list[Outcome]:
        """Merge the distributions of each test's parts, a few at a time."""
        ends = [(self._described(state), self._rechecked(test)) for test, state in enumerate(self.states)]
        self._wait([future for pair in ends for future in pair])
        outcomes = []
        for state, (described, release) in zip(self.states, ends, strict=True):
            statistics, shape = result_of(described, f"{state.test.id}: summary")
            outcomes.append(Outcome(statistics, shape, *result_of(release, f"{state.test.id}: release")))
        return outcomes

    def _rechecked(self, test: int) -> Future:
        return self._submit(recheck_of, self.shared, test, key=f"recheck-{self.states[test].test.id}")

    def _described(self, state: TestState) -> Future:
        identity, level = state.test.id, []
        for batch in state.batches(range(state.plan.parts)):
            names, rows = [part_name(identity, part) for part in batch], [state.rows_of(part) for part in batch]
            marks = [(state.test.audited[part], state.first[part]) for part in rows]
            level.append(self._submit(distribution_of, self.folder, names, marks, key=f"read-{identity}-{batch[0]:05d}"))
        depth = 0
        while len(level) > 1:
            depth += 1
            groups = [level[start : start + FAN_IN] for start in range(0, len(level), FAN_IN)]
            level = [self._submit(merge, group, key=f"merge-{identity}-{depth}-{place}") for place, group in enumerate(groups)]
        return self._submit(finish, level[0], key=f"finish-{identity}")


def sharing(states: Sequence[TestState]) -> list[tuple[int, ...]]:
    """Group the tests whose adversaries can learn from the same releases of a black box; every other test is alone."""
    groups: dict[Any, list[int]] = {}
    for place, state in enumerate(states):
        test = state.test
        alone = test.oracle is None
        key: Any = place if alone else (id(test.oracle), test.engine, test.parameters.get("repeats"), test.audited.tobytes())
        groups.setdefault(key, []).append(place)
    return [tuple(group) for group in groups.values()]


def _label(kind: str, what: Any) -> str:
    return f"part {', '.join(map(str, what))}" if kind == "write" else f"{len(what)} records"


def result_of(future: Future, what: str) -> Any:
    """Return a future's result, or one clear line about why there is none."""
    from distributed import KilledWorker

    if future.status == "finished":
        return future.result()
    if future.status != "error":
        raise LostWorkError(what)
    error = future.exception()
    if isinstance(error, DitError):
        raise error
    if isinstance(error, KilledWorker):
        raise KilledTaskError(f"{what}: its worker died again and again (out of memory?)") from error
    raise RunError(f"{what}: {type(error).__name__}: {first_line(error, 200)}") from error


def influence_of(study: Study, group: tuple[int, ...], records: Ints) -> tuple[list[Influence], float]:
    """On a worker: test some records, for every test of a group; also return the engine seconds."""
    tests = [study.tests[test] for test in group]
    chosen, engine = tests[0], ENGINES[tests[0].engine]
    table = chosen.rows.table
    if group[0] not in study.warm and chosen.oracle is None:
        with suppress(Exception):  # an adversary may rightly refuse so few records; what counts is what has been loaded
            engine.influence(table.first(WARM_RECORDS), np.arange(1), chosen.procedure)
        study.warm.add(group[0])
    start = time.perf_counter()
    if len(tests) > 1 and engine.together is not None:
        found = engine.together(table, records, [test.procedure for test in tests])
    else:
        found = [engine.influence(table, records, chosen.procedure)]
    return found, time.perf_counter() - start


def examine_of(test: Test) -> tuple[ProbeResult, Floats]:
    """On a worker: ask a black box for the whole table; also return what that lets foresee of each record."""
    oracle, procedure = test.oracle, test.procedure
    if oracle is None or not isinstance(procedure, Procedure):
        raise TypeError("only black boxes are examined")
    found, table = probe(oracle, test.rows.table, procedure.rng), test.rows.table
    return found, estimated_influence(table, procedure.full(table), procedure)


def examined(client: Client, test: Test) -> tuple[ProbeResult, Floats]:
    """Have a worker examine the black box of a test."""
    future = client.submit(examine_of, client.scatter(test, hash=False), key=f"examine-{uuid4().hex[:8]}", pure=False)
    client.wait_for_workers(1, timeout=RESTART_SECONDS)
    wait_for(future)
    found: tuple[ProbeResult, Floats] = result_of(future, f"{test.id}: first calls")
    return found


def wait_for(future: Future) -> None:
    """Wait without raising."""
    from distributed import wait

    wait([future])


def recheck_of(study: Study, test: int) -> tuple[Recheck, PrivacyLoss | None]:
    """On a worker: hold what is published, or the noise, against what it claims."""
    procedure, table = study.tests[test].procedure, study.tests[test].rows.table
    if isinstance(procedure, NoisyCounts):
        loss = shown_loss(table, procedure)
        holds = None if loss is None else not loss.contradicts(procedure.protection.epsilon or 0.0)
        return Recheck(None, None, holds, 0, 0), loss
    return recheck(procedure.full(table), procedure.sanitizer.claim), None


def write_parts(folder: Folder, contents: Sequence[tuple[Any, ...]]) -> list[PartFile]:
    """On a worker: write a few parts."""
    return [write_part(folder, *content) for content in contents]


def distribution_of(folder: Folder, names: Sequence[str], marks: Sequence[tuple[Any, Any]]) -> Distribution:
    """On a worker: read a few parts back, so that the summary speaks of what is stored; marks hold (records, first)."""
    stored = []
    for name, (record, first) in zip(names, marks, strict=True):
        found = read_part(folder, name, record)
        if found is None:
            raise RunError(
                f"{folder.url}/{name} cannot be read back; the output must be one place for all workers and the client"
            )
        influence = found[1]
        changed = int((influence.predicted != influence.predicted_without).sum())
        stored.append(Distribution.of(influence.distance, first, changed))
    return merge(stored) if len(stored) > 1 else stored[0]


def finish(distribution: Distribution) -> tuple[Statistics, dict[str, Floats]]:
    """On a worker: describe a whole distribution."""
    return describe(distribution), points(distribution)
