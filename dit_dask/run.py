"""The whole flow of a run: open → plan → execute → publish."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from dit_dask.audit import manifest, plan
from dit_dask.audit.build import build_tests, external_columns
from dit_dask.audit.disclosure import FIGURES_OF_TESTS, Results, read_results, without_lists, write_tiers
from dit_dask.audit.gates import Gate
from dit_dask.audit.grammar import read_gates, resolve_config
from dit_dask.audit.identity import run_digest, secret_key, test_ids
from dit_dask.audit.journal import Journal, Opened, open_journal
from dit_dask.audit.judging import judge_run
from dit_dask.audit.manifest import InputFingerprint, Manifest, Timings
from dit_dask.audit.measure_plan import MeasurePlan, build_measure_plan, columns_of
from dit_dask.audit.other_audit import OpenedAudit, read_other_config
from dit_dask.audit.plan import TestPlan
from dit_dask.audit.state import TestState
from dit_dask.audit.stored_run import StoredRun
from dit_dask.audit.summary import Outcome, TestSummary, summarise
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import RunVerdict
from dit_dask.config.document import Config
from dit_dask.engines import ENGINES
from dit_dask.errors import DitError, InputError
from dit_dask.execution import external, measures, tests
from dit_dask.execution.baselines import Baseline, execute_baselines, plan_baselines
from dit_dask.execution.checkpoint import Checkpoint, GateFailedError
from dit_dask.execution.compiling import compile_beside
from dit_dask.execution.progress import Progress
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.stall import Watchdog
from dit_dask.execution.workers import Workers
from dit_dask.inputs.counted import load_counted
from dit_dask.inputs.load import load, load_with
from dit_dask.inputs.partitions import Gather, gather_here
from dit_dask.inputs.person_ids import repeated_person_ids
from dit_dask.inputs.source import check_source, read_text
from dit_dask.measures.base import AuditSource, MeasureEntry
from dit_dask.reporting.publish import publish
from dit_dask.storage.folder import Folder, output_folder
from dit_dask.values.schema import MIN_DISCLOSED_COUNT
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

    from dit_dask.values.arrays import Bools

STAGES = 4
SHORT_SECONDS = 5.0  # of engine time on one core: two workers need about as long to start
THREADED_SECONDS = 60.0  # the same where threads of this process share the work: they share its tables, too
SHORT_CELLS = 2_000_000  # of tables under measures: seconds, too
SHORT_RELEASE_ROWS = 1_000  # of releases alone: learning from each row less takes seconds, too


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A config and its data: everything that can be known before work starts."""

    config: Config
    rows: Rows
    tests: Sequence[Test]
    gates: Sequence[Gate]
    measure_plan: MeasurePlan | None
    output: Folder
    folder: Folder
    person_ids: Sequence[str] = ()  # columns that look like a person's id and repeat

    @property
    def stored(self) -> StoredRun:
        """What earlier sessions left of it."""
        return StoredRun(self.folder, self.tests, self.rows)


@dataclass(frozen=True, eq=False)
class RunResult:
    """A run that is complete, or that ended early because a gate has failed already."""

    folder: Folder
    summaries: Sequence[TestSummary]
    measures: Sequence[MeasureEntry]
    verdict: RunVerdict
    personal_data: Sequence[str] = ()  # files of the folder that must not be shared
    withheld: Sequence[str] = ()  # tests and measures whose figures the folder does not have, but its private place
    stopped: bool = False  # before its end, because a gate has failed already


def probe(config: Config) -> None:
    """Find out, before anything is loaded, whether the input can be listed and the output written."""
    check_source(config)
    output_folder(config.output).probe()


def test_names(config: Config) -> list[str]:
    """The ids of a config's tests, which need no data."""
    return test_ids([point.identity() for point in config.points])


def prepare(
    config: Config, frame: pd.DataFrame | None = None, left_out: Bools | None = None, gather: Gather = gather_here
) -> PreparedRun:
    """Check gates, parameters, table, files; used rows may be left out of the table. `gather` has the source read."""
    parsed = read_gates(config)
    seen = external_columns(config)
    if config.measures:
        rows, cells = load_counted(config, columns_of(config.measures), frame, seen, gather)
    else:
        rows, cells = load(config, frame, seen, gather), None
    if left_out is not None:
        rows, cells = rows.only(~left_out), None if cells is None else cells.only(~left_out)
    digests: dict[str, str] = {}

    def read(path: str, where: str) -> str:
        text = read_text(path, config, where)
        digests[path] = hashlib.sha256(text.encode()).hexdigest()
        return text

    output = output_folder(config.output)
    built, code = external.prepare_sanitizers(build_tests(config, rows, read), config, output)
    open_audit = partial(_open_audit, config, output)
    measure_plan = None if cells is None else build_measure_plan(config, rows, cells, built, read, open_audit)
    measured = None if measure_plan is None else measure_plan.digest
    digest = run_digest(config, rows, [test.parameters for test in built], digests | code, measured)
    folder = output.child(f"{config.name}-{digest}")
    ids = repeated_person_ids(config, frame) if rows.table.subject is None else ()
    prepared = PreparedRun(config, rows, built, parsed, measure_plan, output, folder, ids)
    closed = frozenset(_list_personal_data(prepared))
    return replace(prepared, folder=replace(prepared.folder, closed=closed))


def _open_audit(config: Config, output: Folder, source: AuditSource, where: str) -> OpenedAudit:
    """Load the table of another audit and build its tests, as its own run would."""
    other, digest = read_other_config(source.path, config.folder, where)
    try:
        rows, cells = load_with(other, list(source.columns), None, external_columns(other))
        if digest is not None and rows.digest() != digest:
            raise InputError("the table of this run has changed since; give a config of the right one instead")
        built = build_tests(other, rows, lambda path, place: read_text(path, other, place))
        tests, _ = external.prepare_sanitizers(built, other, output)
    except InputError as error:
        raise InputError(f"{where}.with: {error}", hidden=error.hidden) from error
    return OpenedAudit(cells, rows, tests)


@dataclass(frozen=True, eq=False)
class Draft:
    """The plans before they are fixed, the cells that measures look at, and whether the tests were timed in this process.

    `threads` of this process can share the work of the tests.
    """

    plans: Mapping[str, TestPlan]
    measured_cells: int
    threads: int
    is_timed: bool

    @property
    def is_short(self) -> bool:
        """Whether worker processes would take longer to start than they could save."""
        longest = THREADED_SECONDS if self.threads > 1 else SHORT_SECONDS
        return sum(one.seconds for one in self.plans.values()) < longest and self.measured_cells < SHORT_CELLS


@dataclass(frozen=True, eq=False)
class Session:
    """The workers of a run while it is under way; `connection` closes them before the results are published."""

    client: Client | None
    workers: Workers
    draft: Draft | None
    progress: Progress
    connection: ExitStack
    clock: Clock

    def announce(self, number: int, stage: str) -> None:
        """Say which stage begins; a run without workers takes seconds, and says nothing."""
        if self.client is not None:
            self.progress.note(f"stage {number} of {STAGES}: {stage}")


def run(prepared: PreparedRun, workers: Workers, progress: Progress, *, fresh: bool = False) -> RunResult:
    """Do what is missing of a run and write its folder; nothing is written or removed before the workers have answered."""
    stored = None if fresh else _finished_manifest(prepared)
    if stored is not None:
        progress.note(f"nothing new: this data was audited at {stored.timings.finished}")
        return _publish_stored(prepared, stored)
    clock = Clock()
    draft = _draft_plans(prepared, workers, fresh=fresh)
    clock.lap("plan")
    connect = None if workers.only_if_long and _is_short(prepared, draft) else workers.connect
    with ExitStack() as connection:
        client = None if connect is None else connection.enter_context(connect())
        clock.lap("cluster")
        if fresh:
            manifest.discard(prepared.folder)
            external.clear_caches(prepared.tests)
        is_new = not prepared.folder.names("")
        journal = _open(prepared, progress)
        try:
            return _complete(prepared, journal, Session(client, workers, draft, progress, connection, clock))
        except GateFailedError as error:
            journal.fail(f"stopped early: {error}")
            verdict = RunVerdict(error.verdicts, has_controls=False)
            return RunResult(prepared.folder, [], [], verdict, journal.manifest.personal_data, stopped=True)
        except BaseException as error:
            if is_new and isinstance(error, InputError) and prepared.folder.names("") <= {manifest.NAME}:
                manifest.discard(prepared.folder)  # refused before any work: there is nothing to resume
            else:
                journal.fail(str(error) if isinstance(error, DitError) else type(error).__name__)
            raise


def _draft_plans(prepared: PreparedRun, workers: Workers, *, fresh: bool) -> Draft | None:
    """Plan before anything is started or written, where that decides whether workers are needed.

    Only its first calls, which workers make, tell how long an external sanitizer takes.
    """
    if workers.connect is not None and not workers.only_if_long:
        return None
    if any(test.external is not None for test in prepared.tests):
        return None
    stored = None if fresh else manifest.read(prepared.folder)
    cells = 0 if prepared.measure_plan is None else prepared.measure_plan.cells
    threads = workers.count if all(ENGINES[test.engine].shares_process for test in prepared.tests) else 1
    if stored is not None and stored.versions == manifest.versions() and plan.are_usable(stored.plan, prepared.tests):
        return Draft(stored.plan, cells, threads, is_timed=False)
    with compile_beside({test.engine for test in prepared.tests}):
        return Draft(plan.make(prepared.tests, workers.count), cells, threads, is_timed=True)


def _is_short(prepared: PreparedRun, draft: Draft | None) -> bool:
    """Tell whether worker processes would only delay a run; releases alone are read once, so no call needs to be timed."""
    if draft is not None:
        return draft.is_short
    only_read = all(test.external is None or test.external.match is not None for test in prepared.tests)
    cells = 0 if prepared.measure_plan is None else prepared.measure_plan.cells
    return only_read and prepared.rows.table.distinct <= SHORT_RELEASE_ROWS and cells < SHORT_CELLS


def _finished_manifest(prepared: PreparedRun) -> Manifest | None:
    """Return the manifest of this run if it is complete already, with the config as it is now."""
    stored = manifest.read(prepared.folder)
    if stored is None or not stored.is_complete or stored.versions["dit_dask"] != manifest.versions()["dit_dask"]:
        return None
    if not plan.are_usable(stored.plan, prepared.tests):
        return None
    if not _is_finished(prepared, stored, prepared.stored.restore(stored)):
        return None
    config = resolve_config(prepared.config, secret_key(prepared.rows))
    return replace(stored, config=config, personal_data=_list_personal_data(prepared))


def _complete(prepared: PreparedRun, journal: Journal, session: Session) -> RunResult:
    """Plan and execute what is missing on the workers, then publish."""
    progress, clock = session.progress, session.clock
    journal.reopen()
    if session.client is not None and session.client.dashboard_link:
        progress.note(f"{session.client.dashboard_link} shows the cluster at work")
    threads = 1 if session.draft is None else session.draft.threads
    runner = TaskRunner(session.client, Watchdog(session.workers.stall_seconds), progress, threads)
    _compiling = None if session.client is None else tests.start_compiling(session.client)  # held, or it would be cancelled
    session.announce(1, "plan")
    prepared = _plan(prepared, journal, runner, session)
    states = _restore(prepared, journal.manifest, progress)
    clock.lap("plan")
    session.announce(2, _count_work(prepared))
    is_warm = session.client is None and session.draft is not None and session.draft.is_timed
    outcomes, entries = _execute(prepared, journal, states, runner, is_warm=is_warm)
    session.announce(3, "controls, and what the tests could have shown at most")
    baselines = _execute_baselines(prepared, runner)
    session.announce(4, "publish")
    planted = {test: (baseline.attainable, baseline.planting_error) for baseline in baselines for test in baseline.tests}
    pairs = zip(states, outcomes, strict=True)
    summaries = [summarise(state, outcome, *planted[state.test.id]) for state, outcome in pairs]
    session.connection.close()
    clock.lap("work")
    stored = manifest.read(prepared.folder)
    if stored and _is_finished(prepared, stored, states):  # the same audit ran elsewhere at the same time and was first
        return _publish_stored(prepared, stored)
    finished = zip(summaries, outcomes, strict=True)
    curves = {one.test: outcome.points for one, outcome in finished if one.release_only is None}
    controls = [control for baseline in baselines for control in baseline.controls]
    if prepared.rows.table.subject is not None:
        entries = [without_lists(entry, prepared.rows.table.persons) for entry in entries]
    results = Results(summaries, curves, entries, RunVerdict(controls=controls))
    write_tiers(prepared.folder, results)
    journal.finish({state.test.id: prepared.stored.describe_parts(state) for state in states}, clock.laps)
    return _publish(prepared, journal.completed(), results)


def _open(prepared: PreparedRun, progress: Progress) -> Journal:
    """Open the folder: go on with an earlier session of this version, or begin."""
    prepared.folder.remove_temporary()
    moved = prepared.folder.move_personal_data() + external.move_caches(prepared.tests, prepared.output)
    if moved:
        progress.note(f"moved {moved:,} files of personal data from {prepared.output.url} to output.private")
    journal, opened = open_journal(prepared.folder, _new_manifest(prepared))
    if opened is Opened.OTHER_VERSION:
        progress.note("the folder holds a run of another version: starting over")
    if opened is not Opened.EARLIER_SESSION:
        progress.note(f"{prepared.rows.described()}; measuring {_count_work(prepared)}")
    return journal


def _new_manifest(prepared: PreparedRun) -> Manifest:
    rows, config = prepared.rows, prepared.config
    return Manifest(
        status=manifest.RUNNING,
        config=resolve_config(config, secret_key(rows)),
        files=list(rows.files),
        input=InputFingerprint(rows.read, rows.dropped, rows.used, rows.digest(), rows.known_persons, rows.left_out or None),
        versions=manifest.versions(),
        seed=config.seed,
        timings=Timings(manifest.now()),
        personal_data=_list_personal_data(prepared),
    )


def _list_personal_data(prepared: PreparedRun) -> list[str]:
    """The files of the run folder that tell about single persons, by their paths in it; a folder ends with a slash."""
    cache = f"../{external.CACHE}/"
    if prepared.folder.private is not None:
        return [cache] if external.has_shared_cache(prepared.output) else []
    measured = [] if prepared.measure_plan is None else prepared.measure_plan.measurements
    records = [f"records/{test.id}/" for test in prepared.tests]
    records += [f"measures/{one.id}.parquet" for one in measured if one.writes_records]
    is_small = prepared.rows.table.persons < MIN_DISCLOSED_COUNT
    exact = [one.id for one in measured if is_small or one.parameters.get("show_values", False)]
    shown = ["measures.json", *(f"measures/{name}.json" for name in exact)] if exact else []
    if any(test.rows.count_persons(test.audited) < MIN_DISCLOSED_COUNT for test in prepared.tests):
        shown += FIGURES_OF_TESTS
    shown += ["report.html"] if shown else []
    beside = prepared.output.child(external.CACHE).location.url
    caches = [test.external.cache for test in prepared.tests if test.external is not None]
    is_beside = any(cache is not None and cache.location.url.startswith(f"{beside}/") for cache in caches)
    return [*records, *shown, *([cache] if is_beside else [])]


def _count_work(prepared: PreparedRun) -> str:
    measured = [] if prepared.measure_plan is None else prepared.measure_plan.measurements
    counts: Mapping[str, int] = {"test": len(prepared.tests), "measure": len(measured)}
    return " and ".join(f"{count} {noun}{'s' if count > 1 else ''}" for noun, count in counts.items() if count)


def _plan(prepared: PreparedRun, journal: Journal, runner: TaskRunner, session: Session) -> PreparedRun:
    """Probe external sanitizers, unless an earlier session did, and fix the plan; return the run with the rows to test."""
    plans = journal.manifest.plan if plan.are_usable(journal.manifest.plan, prepared.tests) else {}
    known = {test: kept.probe for test, kept in plans.items() if kept.probe is not None}
    probe_test, by_risk = partial(external.probe_on_cluster, runner), prepared.config.stop_on_breach
    probed, results = external.probe_sanitizers(prepared.tests, known, probe_test, runner.progress, by_risk=by_risk)
    if not plans:
        draft, usable = session.draft, partial(plan.are_usable, tests=probed)

        def make() -> Mapping[str, TestPlan]:
            return plan.make(probed, session.workers.count, results) if draft is None else draft.plans

        plans = manifest.agreed_plan(prepared.folder, make, usable)
        if session.client is not None:
            plan.memory_needed(session.workers.memory())
    journal.plan(plans)
    return replace(prepared, tests=probed)


def _restore(prepared: PreparedRun, current: Manifest, progress: Progress) -> list[TestState]:
    """Remove what is not valid any more, and go on with what is."""
    prepared.stored.remove_unplanned(current)
    prepared.stored.remove_altered(current)
    states = prepared.stored.restore(current)
    kept = sum(len(state.written) for state in states)
    if kept:
        progress.note(f"resuming: {kept} of {sum(state.plan.parts for state in states)} parts are there already")
    return states


def _is_finished(prepared: PreparedRun, stored: Manifest, states: Sequence[TestState]) -> bool:
    """Tell whether a run is complete and nothing of it was lost or altered since."""
    is_there = prepared.stored.is_finished(stored, states, controls=prepared.config.controls)
    return is_there and measures.is_complete(prepared.measure_plan, prepared.folder)


def _execute(
    prepared: PreparedRun, journal: Journal, states: Sequence[TestState], runner: TaskRunner, *, is_warm: bool
) -> tuple[Sequence[Outcome], Sequence[MeasureEntry]]:
    """Run the tests, then the measures."""
    early = prepared.gates if prepared.config.stop_on_breach else ()
    checkpoint = Checkpoint(journal, states, early, runner.progress)
    outcomes = []
    if states:
        outcomes = tests.execute_tests(runner, prepared.tests, prepared.folder, states, checkpoint, warmed_up=is_warm)
    for note in sorted(set().union(*(state.notes for state in states))):
        runner.progress.note(f"an adversary raised {note} while training")
    if prepared.measure_plan is None:
        return outcomes, []
    alone = replace(runner, threads=1)  # measures hold Python's lock
    return outcomes, measures.execute_measures(alone, prepared.measure_plan, prepared.folder)


def _execute_baselines(prepared: PreparedRun, runner: TaskRunner) -> list[Baseline]:
    """Find out what the tests could have shown at most, and test the controls."""
    plans = plan_baselines(prepared.tests, prepared.rows, prepared.config.seed)
    return execute_baselines(runner, plans, controls=prepared.config.controls)


def stored_verdict(prepared: PreparedRun) -> RunVerdict | None:
    """What the gates say now of the results that the folder holds; None where it holds no finished run."""
    if _finished_manifest(prepared) is None:
        return None
    return _judge(prepared, read_results(prepared.folder))


def _publish_stored(prepared: PreparedRun, stored: Manifest) -> RunResult:
    """Publish the results that the folder holds."""
    return _publish(prepared, stored, read_results(prepared.folder))


def _publish(prepared: PreparedRun, completed: Manifest, results: Results) -> RunResult:
    """Judge the results and publish them."""
    verdict = _judge(prepared, results)
    results = replace(results, verdict=verdict)
    written = publish(prepared.folder, prepared.output, completed, results)
    withheld = [] if prepared.folder.private is None else results.hidden
    return RunResult(prepared.folder, results.summaries, results.entries, verdict, written.personal_data, withheld)


def _judge(prepared: PreparedRun, results: Results) -> RunVerdict:
    return judge_run(prepared.config, prepared.gates, prepared.tests, prepared.rows, prepared.person_ids, results)


class Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Close a stage."""
        now = time.monotonic()
        self.laps[name] = round(now - self._last, 3)
        self._last = now
