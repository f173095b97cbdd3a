"""The measures of a run on the cluster: a task or a few for each, written to the run folder as soon as it is done."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dit_dask.audit.measure_plan import Measurement, MeasurePlan, ReleaseSource, SharedInputs
from dit_dask.errors import DitError, RunError
from dit_dask.execution.progress import LINE_SECONDS, Progress
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import RETRIES, Task, TaskSession
from dit_dask.measures.base import DividedMeasure, MeasureEntry, MeasureResult, SanitizerInput
from dit_dask.storage.documents import write_json
from dit_dask.storage.folder import Folder
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.measures.synthetic.closeness import Piece, Records
    from dit_dask.measures.synthetic.space import Neighbours


def execute_measures(runner: TaskRunner, measure_plan: MeasurePlan, folder: Folder) -> list[MeasureEntry]:
    """Compute the measurements that the folder does not have; return the objects of all, in order."""
    measurements = measure_plan.measurements

    def count_done() -> int:
        return len(measurements) - len(find_missing(measurements, folder))

    def work(session: TaskSession) -> None:
        MeasureTasks(session, measure_plan.shared_inputs, folder, runner.progress).compute(find_missing(measurements, folder))

    done = count_done()
    if done:
        runner.progress.note(f"resuming: {done} of {len(measurements)} measures are there already")
    if done < len(measurements):
        runner.run(work, count_done, max((_call_seconds(one) for one in measurements), default=0.0))
    entries = [entry for measurement in measurements if (entry := read_entry(folder, measurement)) is not None]
    if len(entries) < len(measurements):
        raise RunError(
            f"{folder.url}/measures cannot be read back; the output must be one place for all workers and the client"
        )
    return entries


def _call_seconds(measurement: Measurement) -> float:
    """The longest that a call of the external sanitizer may take which a measurement calls itself, if it does."""
    attacked, source = measurement.sanitizer_input, measurement.release_source
    if attacked is None or attacked.procedure.external is None or source is None or source.test is None:
        return 0.0
    return float(source.test.config.sanitizer.settings.get("timeout", 0.0))


def is_complete(measure_plan: MeasurePlan | None, folder: Folder) -> bool:
    """Tell whether every measurement is in the folder."""
    return measure_plan is None or not find_missing(measure_plan.measurements, folder)


def find_missing(measurements: Sequence[Measurement], folder: Folder) -> list[Measurement]:
    """The measurements that are not in the folder."""
    return [measurement for measurement in measurements if read_entry(folder, measurement) is None]


def read_entry(folder: Folder, measurement: Measurement) -> MeasureEntry | None:
    """Read back what an earlier task wrote, if all of it is there."""
    try:
        entry = MeasureEntry.read(json.loads(folder.read(f"measures/{measurement.id}.json") or b""))
    except (ValueError, KeyError, TypeError):
        return None
    if entry.id != measurement.id:
        return None
    if entry.columns and f"{measurement.id}.parquet" not in folder.names("measures"):
        return None
    return entry


class MeasureTasks:
    """The tasks of one session; each measurement writes its result itself."""

    def __init__(self, session: TaskSession, shared_inputs: SharedInputs, folder: Folder, progress: Progress) -> None:
        self._session, self._shared_inputs, self._folder = session, shared_inputs, folder
        self._shared = session.scatter(shared_inputs)
        self._releases: dict[int, Task] = {}
        self._counter = PieceCounter(progress)

    def compute(self, measurements: Sequence[Measurement]) -> None:
        """Submit all, wait for all, then raise the first failure."""
        for measurement in measurements:
            self._submit(measurement)
        failures = []
        for future in self._session.completed():
            self._counter.count(future)
            try:
                self._session.result(future)
            except DitError as error:  # the others are still worth having
                failures.append(error)
        if failures:
            raise failures[0]

    def _submit(self, measurement: Measurement) -> None:
        identity = measurement.id
        attacked, release = measurement.sanitizer_input, self._submit_release(measurement)
        measurement = measurement.light()
        inputs = (self._shared, measurement, release)
        if not isinstance(measurement.measure, DividedMeasure):
            key = f"measure-{identity}"
            self._session.submit(compute_measurement, *inputs, self._folder, key=key, description=identity)
            return
        retries = 0 if attacked is not None and attacked.procedure.external is not None else RETRIES  # calls have their own
        piece_results = []
        for number, piece in enumerate(measurement.measure.pieces(self._shared_inputs.inputs(measurement, attacked))):
            key = f"measure-{identity}-{number:05d}"
            is_counted = measurement.of_sanitizer  # it may take long
            future = self._session.submit(
                compute_piece, *inputs, piece, key=key, description=identity, retries=retries, wanted=is_counted
            )
            piece_results.append(future)
            if is_counted:
                self._counter.expect(future, identity)
        self._session.submit(join_pieces, *inputs, self._folder, piece_results, key=f"join-{identity}", description=identity)

    def _submit_release(self, measurement: Measurement) -> Task | None:
        """Have each sanitizer publish once, for all its measurements; send it to the workers where they sanitise themselves."""
        source = measurement.release_source
        if source is None:
            return None
        if measurement.sanitizer_input is not None:
            sent: Task = self._session.scatter(measurement.sanitizer_input)
            return sent
        if id(source) not in self._releases:
            key = f"release-{len(self._releases)}"
            future = self._session.submit(
                publish, self._shared, source, key=key, description=f"{measurement.id}: release", wanted=False
            )
            self._releases[id(source)] = future
        return self._releases[id(source)]


class PieceCounter:
    """Says every few seconds how many of the pieces of a measurement are done."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._said = progress, time.monotonic()
        self._expected: dict[Task, str] = {}
        self._totals: Counter[str] = Counter()
        self._done: Counter[str] = Counter()

    def expect(self, task: Task, measurement: str) -> None:
        """Count a task among the pieces of a measurement."""
        self._expected[task] = measurement
        self._totals[measurement] += 1

    def count(self, task: Task) -> None:
        """Count a task that is done, if it is a piece."""
        measurement = self._expected.pop(task, None)
        if measurement is None:
            return
        self._done[measurement] += 1
        if time.monotonic() - self._said >= LINE_SECONDS:
            self._said = time.monotonic()
            self._progress.note(
                f"{measurement}: {self._done[measurement]:,} of {self._totals[measurement]:,} blocks of persons"
            )


def publish(shared_inputs: SharedInputs, release_source: ReleaseSource) -> Release:
    """On a worker: what a sanitizer of the run publishes."""
    return release_source.release(shared_inputs.rows)


def compute_measurement(
    shared_inputs: SharedInputs, measurement: Measurement, release: Release | SanitizerInput | None, folder: Folder
) -> None:
    """On a worker: compute and write one measurement."""
    write_result(folder, measurement, measurement.measure.find(shared_inputs.inputs(measurement, release)))


def compute_piece(
    shared_inputs: SharedInputs, measurement: Measurement, release: Release | SanitizerInput | None, piece: Any
) -> Any:
    """On a worker: compute one piece of a measurement."""
    measure = measurement.measure
    return (
        measure.find_piece(shared_inputs.inputs(measurement, release), piece) if isinstance(measure, DividedMeasure) else None
    )


def join_pieces(
    shared_inputs: SharedInputs,
    measurement: Measurement,
    release: Release | SanitizerInput | None,
    folder: Folder,
    results: Sequence[Any],
) -> None:
    """On a worker: join the results of the pieces and write the measurement."""
    measure = measurement.measure
    if isinstance(measure, DividedMeasure):
        write_result(folder, measurement, measure.join(shared_inputs.inputs(measurement, release), results))


def write_result(folder: Folder, measurement: Measurement, result: MeasureResult) -> None:
    """Write the columns first and the object last, so that an object means that all is there."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if result.columns and measurement.writes_records:
        columns = {name: result.rows_of(name) for name in result.columns}
        length = len(next(iter(columns.values())))
        buffer = io.BytesIO()
        pq.write_table(pa.table({"record": np.arange(length), **columns}), buffer, compression="zstd")
        folder.write(f"measures/{measurement.id}.parquet", buffer.getvalue())
    write_json(folder, f"measures/{measurement.id}.json", measurement.entry(result).document())


def search_on_cluster(runner: TaskRunner, records: Records) -> list[Neighbours]:
    """Search for the closest records on a cluster, one task for each block."""
    neighbours: dict[Piece, Neighbours] = {}

    def work(session: TaskSession) -> None:
        shared = session.scatter(records)
        tasks = {}
        for piece in records.pieces():
            if piece not in neighbours:
                key, description = f"closest-{piece[0]}-{piece[1]}", f"closeness: {piece[0]} records"
                tasks[session.submit(search_block, shared, piece, key=key, description=description)] = piece
        for future in session.completed():
            neighbours[tasks[future]] = session.result(future)

    runner.run(work, lambda: len(neighbours))
    return [neighbours[piece] for piece in records.pieces()]


def search_block(records: Records, piece: Piece) -> Neighbours:
    """On a worker: search one block."""
    return records.search(piece)
