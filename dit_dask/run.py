"""The one place that knows the whole flow: load, plan, execute, write."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.audit import gates, manifest, plan
from dit_dask.audit import index as history
from dit_dask.audit.build import Test, build_tests, check_tests, columns_seen, given, run_digest, test_id
from dit_dask.audit.gates import Gate, Verdict
from dit_dask.audit.measure_plan import MeasurePlan, build_measure_plan, check_measures, columns_of
from dit_dask.audit.state import TestState
from dit_dask.audit.summary import TestSummary, read_complete, read_measures, results_are_complete, summarise, write_results
from dit_dask.config.document import Config
from dit_dask.errors import DitError, RunError
from dit_dask.execution import external as black_boxes
from dit_dask.execution import measures as measuring
from dit_dask.execution import tests as graph
from dit_dask.execution.progress import Progress
from dit_dask.execution.stall import Watchdog
from dit_dask.inputs.load import load, load_with
from dit_dask.inputs.source import check_source, read_text
from dit_dask.measures.base import MeasureEntry
from dit_dask.reporting import html as report
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import redacted
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


CHECKPOINT_SECONDS = 2.0


@dataclass(frozen=True)
class Workers:
    """Who does the work: how to reach them, how many they are, the bytes each may use, if known, and their longest silence."""

    connect: Callable[[], AbstractContextManager[Client]]
    workers: int
    memory: int | None = None
    stall_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A config that has met its data: everything that can be known before work starts."""

    config: Config
    rows: Rows
    tests: Sequence[Test]
    gates: Sequence[Gate]
    measure_plan: MeasurePlan | None
    folder: Folder


@dataclass(frozen=True, eq=False)
class RunResult:
    """A run that is complete, or that ended early because a gate has failed already."""

    folder: Folder
    summaries: list[TestSummary]
    measures: list[MeasureEntry]
    verdicts: list[Verdict]
    stopped: bool = False  # before its end, because a gate has failed already

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return all(verdict.passed for verdict in self.verdicts)


def prepare(config: Config, frame: pd.DataFrame | None = None) -> PreparedRun:
    """Check everything that needs no cluster: gates, parameters, table, files."""
    parsed = [gates.parse(text, f"gates[{place}]") for place, text in enumerate(config.gates)]
    check_tests(config)
    points, seen = check_measures(config), columns_seen(config)
    rows, shown = load_with(config, columns_of(points), frame, seen) if points else (load(config, frame, seen), None)
    files: dict[str, str] = {}

    def read(path: str, where: str) -> str:
        text = read_text(path, config, where)
        files[path] = hashlib.sha256(text.encode()).hexdigest()
        return text

    output = Folder(_absolute(config.output))
    tests, code = black_boxes.ready(build_tests(config, rows, read), config, output)
    measure_plan = None if shown is None else build_measure_plan(config, rows, shown, tests, read)
    name = (
        f"{config.name}-{run_digest(config, rows, tests, files | code, None if measure_plan is None else measure_plan.digest)}"
    )
    return PreparedRun(config, rows, tests, parsed, measure_plan, output.child(name))


def probe(config: Config) -> None:
    """Find out, before anything is loaded, whether the input can be listed and the output written."""
    check_source(config)
    Folder(_absolute(config.output)).probe()


def names(config: Config) -> list[str]:
    """The ids of a config's tests, which need no data."""
    return [test_id(given(point)) for point in check_tests(config)]


def _absolute(location: Location) -> Location:
    """Workers may run elsewhere in the file system, so a path is made absolute here."""
    url = location.url
    return location if "://" in url else Location(str(Path(url).expanduser().absolute()), location.storage_options)


def run(prepared: PreparedRun, crew: Workers, progress: Progress, *, fresh: bool = False) -> RunResult:
    """Do what is missing of a run and write its folder."""
    folder = prepared.folder
    if fresh:
        manifest.discard(folder)
        black_boxes.forget(prepared.tests)
    folder.remove_temporary()
    document = _opened(prepared, progress)
    try:
        return _completed(prepared, document, crew, progress)
    except GateFailedError as error:
        _mark_failed(folder, document, f"stopped early: {error}")
        return RunResult(folder, [], [], error.verdicts, stopped=True)
    except BaseException as error:
        text = str(error) if isinstance(error, DitError) else type(error).__name__
        _mark_failed(folder, document, text)
        raise


def _completed(prepared: PreparedRun, document: dict[str, Any], crew: Workers, progress: Progress) -> RunResult:
    """Publish a run that is whole; else reach the crew and do what is missing."""
    folder = prepared.folder
    states = _restored(prepared, document, progress) if document["plan"] else []
    if _is_whole(prepared, document, states):
        progress.note(f"nothing new: this data was audited at {document['timings']['finished']}")
        return _publish(prepared, document, read_complete(folder)[1], read_measures(folder))
    if document["status"] == "complete":
        manifest.write(folder, document | {"status": "running"})  # it lost something; from here on it is not complete
    clock = Clock()
    with crew.connect() as client:
        if client.dashboard_link:
            progress.note(f"{client.dashboard_link} shows the cluster at work")
        clock.lap("cluster")
        _compiling = graph.warm_up(client)
        prepared = _examined(prepared, document, client, crew, progress)
        if not states or any(test.oracle is not None for test in prepared.tests):  # now it is known which rows stand for which
            states = _restored(prepared, document, progress)
        document["status"] = "running"
        document.pop("error", None)
        manifest.note(folder, document)
        clock.lap("plan")
        study = graph.Study(prepared.tests)
        checkpoint, watchdog = Checkpoint(prepared, document, states, progress), Watchdog(crew.stall_seconds)
        outcomes = graph.execute(client, study, folder, states, progress, checkpoint, watchdog) if states else []
        measures = [] if prepared.measure_plan is None else measuring.take(client, prepared.measure_plan, folder, progress)
    clock.lap("work")
    theirs = manifest.read(folder)
    if theirs and _is_whole(prepared, theirs, states):  # someone ran the same audit at the same time and was first
        return _publish(prepared, theirs, read_complete(folder)[1], measures)
    for note in sorted(set().union(*(state.notes for state in states))):
        progress.note(f"an adversary raised {note} while training")
    summaries = [summarise(state, outcome) for state, outcome in zip(states, outcomes, strict=True)]
    write_results(folder, summaries, outcomes, measures)
    document["parts"] = {state.test.id: _parts(state) for state in states}
    document["timings"] |= {"finished": _now(), "seconds": clock.laps}
    return _publish(prepared, document, summaries, measures)


def _examined(
    prepared: PreparedRun, document: dict[str, Any], client: Client, crew: Workers, progress: Progress
) -> PreparedRun:
    """Examine the black boxes, unless an earlier session did; fix the plan; and settle which rows must be tested."""
    known = {name: kept["oracle"] for name, kept in document["plan"].items() if "oracle" in kept}
    hurry = prepared.config.stop_on_breach
    tests, found = black_boxes.examine(prepared.tests, known, partial(graph.examined, client), progress, hurry=hurry)
    if not document["plan"]:
        document["plan"] = manifest.agreed_plan(
            prepared.folder, lambda: plan.document(tests, plan.make(tests, crew.workers, found))
        )
        plan.memory_needed(crew.memory)
    return replace(prepared, tests=tests)


def _refuse_skipped(states: Sequence[TestState], progress: Progress) -> None:
    """Records that could not be tested leave a run incomplete, unless so many were allowed."""
    for state in states:
        oracle, skipped = state.test.oracle, state.skipped
        if oracle is None or not len(skipped):
            continue
        few = ", ".join(map(str, skipped[:10])) + (", …" if len(skipped) > 10 else "")
        text = f"{state.test.id}: {len(skipped):,} of {len(state.test.audited):,} records were skipped ({few})"
        progress.note(text)
        if len(skipped) > oracle.policy.allowed or len(skipped) == len(state.test.audited):
            cause = next(iter(state.failures.values()))
            raise RunError(
                f"{text}; the first because {cause}; allow_skipped lets the run complete, the same command tries again"
            )


def _restored(prepared: PreparedRun, document: dict[str, Any], progress: Progress) -> list[TestState]:
    """Take over the parts and seconds of earlier sessions."""
    folder, spent = prepared.folder, document["timings"].get("engine_seconds", {})
    states = [TestState(test, plan.restore(document["plan"][test.id])) for test in prepared.tests]
    for state in states:
        state.restore(folder, folder.names(f"records/{state.test.id}"))
        state.seconds = spent.get(state.test.id, 0.0)
    kept = sum(len(state.written) for state in states)
    if kept:
        progress.note(f"resuming: {kept} of {sum(state.plan.parts for state in states)} parts are there already")
    return states


class Checkpoint:
    """Keeps the engine seconds in the manifest, for a resumed run to add to; ends a run that has already failed a gate."""

    def __init__(
        self, prepared: PreparedRun, document: dict[str, Any], states: Sequence[TestState], progress: Progress
    ) -> None:
        self._watcher = progress
        self._folder, self._document, self._ledgers = prepared.folder, document, states
        self._gates = prepared.gates if prepared.config.stop_on_breach else ()
        self._last = time.monotonic()

    def __call__(self) -> None:
        """Note the seconds; write them if that was not done just now."""
        if self._gates and any(state.done < state.plan.distinct for state in self._ledgers):
            failed = gates.already_failed(self._gates, {state.test.id: state.lower_bounds() for state in self._ledgers})
            if failed:
                done = sum(state.done for state in self._ledgers)
                text = f"{failed[0].name} has already failed after {done:,} records: {failed[0].reason} at least"
                raise GateFailedError(failed, text)
        seconds = {state.test.id: round(state.seconds, 6) for state in self._ledgers}
        self._document["timings"]["engine_seconds"] = seconds
        if time.monotonic() - self._last > CHECKPOINT_SECONDS:
            manifest.note(self._folder, self._document)
            self._last = time.monotonic()

    def settle(self) -> None:
        """Refuse a run that skipped more records than it may."""
        _refuse_skipped(self._ledgers, self._watcher)


class GateFailedError(RunError):
    """A gate has failed already, whatever the rest of the records say."""

    def __init__(self, verdicts: list[Verdict], text: str) -> None:
        super().__init__(text)
        self.verdicts = verdicts


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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _opened(prepared: PreparedRun, progress: Progress) -> dict[str, Any]:
    """Return the manifest of a run that goes on, or of a new one; it has no plan yet."""
    versions, rows = manifest.versions(), prepared.rows
    earlier = manifest.read(prepared.folder)
    if earlier is not None and earlier["versions"]["dit_dask"] == versions["dit_dask"]:
        return earlier | {"config": _resolved(prepared)}
    if earlier is not None:
        progress.note("the folder holds a run of another version: starting over")
        manifest.discard(prepared.folder)
    many = [f"{len(some)} {what}{'s' if len(some) > 1 else ''}" for what, some in _work(prepared).items() if some]
    progress.note(f"{rows.described()}; measuring {' and '.join(many)}")
    document = {
        "status": "running",
        "config": _resolved(prepared),
        "files": list(rows.files),
        "input": {"read": rows.read, "dropped": rows.dropped, "used": rows.used, "digest": rows.digest()},
        "versions": versions,
        "seed": prepared.config.seed,
        "timings": {"started": _now()},
        "plan": {},
        "parts": {},
    }
    manifest.write(prepared.folder, document)  # also finds out, before any work, whether the output can be written
    return document


def _work(prepared: PreparedRun) -> dict[str, Sequence[object]]:
    return {"test": prepared.tests, "measure": [] if prepared.measure_plan is None else prepared.measure_plan.measurements}


def _resolved(prepared: PreparedRun) -> dict[str, Any]:
    """The config as it was understood, without secrets."""
    config = prepared.config
    document = {
        "version": 1,
        "name": config.name,
        "data": config.data,
        "schema": config.schema,
        "tests": [_full(test) for test in prepared.tests],
        "measures": config.measures,
        "gates": config.gates,
        "stop_on_breach": config.stop_on_breach,
        "output": {"url": config.output.url, "storage_options": config.output.storage_options},
        "cluster": config.cluster,
        "seed": config.seed,
    }
    shown = redacted(document)
    return shown if isinstance(shown, dict) else {}


def _full(test: Test) -> dict[str, Any]:
    """All keys of a test, those that cannot change a result too."""
    settings = {key: value for key, value in test.settings.items() if value is not None}
    return {**test.parameters, "sanitizer": {**test.parameters["sanitizer"], **settings}}


def _is_whole(prepared: PreparedRun, document: dict[str, Any], states: Sequence[TestState]) -> bool:
    """Tell whether a run is complete and nothing of it was lost or altered since."""
    folder = prepared.folder
    unchanged = all(document["parts"].get(state.test.id) == _parts(state) for state in states)
    is_there = document["status"] == "complete" and unchanged and results_are_complete(folder)
    return is_there and measuring.whole(prepared.measure_plan, folder)


def _parts(state: TestState) -> list[dict[str, Any]]:
    return [asdict(state.written[part]) for part in sorted(state.written)]


def _publish(
    prepared: PreparedRun, document: dict[str, Any], summaries: list[TestSummary], measures: list[MeasureEntry]
) -> RunResult:
    """Judge, write the report, and only then call the run complete."""
    verdicts = gates.judge(prepared.gates, summaries)
    finished = document | {"status": "complete"}
    report.write(prepared.folder, finished, summaries, measures, verdicts)
    manifest.write(prepared.folder, finished)
    history.append(Folder(_absolute(prepared.config.output)), history.describe_run(prepared.folder, finished, summaries))
    return RunResult(prepared.folder, summaries, measures, verdicts)


def _mark_failed(folder: Folder, document: dict[str, Any], text: str) -> None:
    """Say in the manifest why the run ended; what failed may be the storage itself."""
    try:
        manifest.note(folder, document | {"status": "failed", "error": text})
    except DitError:
        return
