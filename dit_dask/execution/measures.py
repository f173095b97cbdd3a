"""The measures of a run on the cluster: a task or a few for each, kept in the run folder as soon as it is done."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dit_dask.audit.manifest import write_json
from dit_dask.audit.measure_plan import Measurement, MeasurePlan, ReleaseSource, SharedInputs
from dit_dask.errors import RunError
from dit_dask.execution.progress import Progress
from dit_dask.execution.tests import ATTEMPTS, RETRIES, LostWorkError, gathered, result_of
from dit_dask.measures.base import DividedMeasure, MeasureEntry, MeasureResult
from dit_dask.measures.synthetic.closeness import Piece, Records
from dit_dask.measures.synthetic.space import Neighbours
from dit_dask.storage.folder import Folder
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from distributed import Client, Future


def take(client: Client, measure_plan: MeasurePlan, folder: Folder, progress: Progress) -> list[MeasureEntry]:
    """Take the measurements that the folder does not have; return the objects of all, in order."""
    known = [entry for one in measure_plan.measurements if (entry := stored(folder, one)) is not None]
    if known:
        progress.note(f"resuming: {len(known)} of {len(measure_plan.measurements)} measures are there already")
    for _ in range(ATTEMPTS):
        entries = [stored(folder, one) for one in measure_plan.measurements]
        missing = [one for one, entry in zip(measure_plan.measurements, entries, strict=True) if entry is None]
        if not missing:
            return [entry for entry in entries if entry is not None]
        try:
            gathered(client)
            Tasks(client, measure_plan.shared_inputs, folder).run(missing)
        except (LostWorkError, CancelledError, TimeoutError):
            progress.note("the cluster lost its workers; sending them the measures again")
    raise RunError(f"the measures could not be finished in {ATTEMPTS} attempts; the same command resumes what is left")


def whole(measure_plan: MeasurePlan | None, folder: Folder) -> bool:
    """Tell whether every measurement is in the folder."""
    return measure_plan is None or all(stored(folder, one) is not None for one in measure_plan.measurements)


def stored(folder: Folder, measurement: Measurement) -> MeasureEntry | None:
    """Read back what an earlier task wrote, if all of it is there."""
    try:
        entry = MeasureEntry.read(json.loads(folder.read(f"measures/{measurement.id}.json") or b""))
    except (ValueError, KeyError, TypeError):
        return None
    if entry.columns and f"{measurement.id}.parquet" not in folder.names("measures"):
        return None
    return entry if entry.id == measurement.id else None


class Tasks:
    """One try with one copy of the shared_inputs on the cluster."""

    def __init__(self, client: Client, shared_inputs: SharedInputs, folder: Folder) -> None:
        self._client, self._material, self._folder = client, shared_inputs, folder
        self._shared = client.scatter(shared_inputs, hash=False)
        self._name = uuid4().hex[:8]
        self._releases: dict[int, Future] = {}
        self._pieces: list[Future] = []  # held: the scheduler cannot cancel what nobody wants any more

    def run(self, measurements: Sequence[Measurement]) -> None:
        """Submit all, wait for all, fail with the first failure."""
        futures = [self._task(one) for one in measurements]
        try:
            self._client.gather(futures, errors="skip")  # waits, and says nothing of failures yet
            for one, future in zip(measurements, futures, strict=True):
                result_of(future, one.id)
        finally:
            self._client.cancel([*futures, *self._pieces, *self._releases.values()])

    def _task(self, one: Measurement) -> Future:
        release, one = self._release(one.release_source), one.light()
        if not isinstance(one.measure, DividedMeasure):
            return self._submit(take_whole, self._shared, one, release, self._folder, key=f"measure-{one.id}")
        pieces = one.measure.pieces(self._material.evidence(one))
        found = [
            self._submit(take_piece, self._shared, one, release, piece, key=f"measure-{one.id}-{place:05d}")
            for place, piece in enumerate(pieces)
        ]
        self._pieces += found
        return self._submit(take_joined, self._shared, one, release, self._folder, found, key=f"join-{one.id}")

    def _release(self, release_source: ReleaseSource | None) -> Future | None:
        if release_source is None:
            return None
        if id(release_source) not in self._releases:
            key = f"release-{len(self._releases)}"
            self._releases[id(release_source)] = self._submit(publish, self._shared, release_source, key=key)
        return self._releases[id(release_source)]

    def _submit(self, function: Any, *arguments: Any, key: str) -> Future:
        return self._client.submit(function, *arguments, key=f"{key}-{self._name}", retries=RETRIES, pure=False)


def publish(shared_inputs: SharedInputs, release_source: ReleaseSource) -> Release:
    """On a worker: what a sanitizer of the run publishes."""
    return release_source.release(shared_inputs.rows)


def take_whole(shared_inputs: SharedInputs, one: Measurement, release: Release | None, folder: Folder) -> None:
    """On a worker: take and keep one measurement."""
    keep(folder, one, one.measure.find(shared_inputs.evidence(one, release)))


def take_piece(shared_inputs: SharedInputs, one: Measurement, release: Release | None, piece: Any) -> Any:
    """On a worker: do one piece of a measurement."""
    return (
        one.measure.find_piece(shared_inputs.evidence(one, release), piece) if isinstance(one.measure, DividedMeasure) else None
    )


def take_joined(
    shared_inputs: SharedInputs, one: Measurement, release: Release | None, folder: Folder, found: Sequence[Any]
) -> None:
    """On a worker: put the pieces together and keep the result."""
    if isinstance(one.measure, DividedMeasure):
        keep(folder, one, one.measure.join(shared_inputs.evidence(one, release), found))


def keep(folder: Folder, one: Measurement, finding: MeasureResult) -> None:
    """Write the columns first and the object last, so that an object means that all is there."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if finding.columns:
        length = len(next(iter(finding.columns.values())))
        buffer = io.BytesIO()
        pq.write_table(pa.table({"record": np.arange(length), **finding.columns}), buffer, compression="zstd")
        folder.write(f"measures/{one.id}.parquet", buffer.getvalue())
    write_json(folder, f"measures/{one.id}.json", one.entry(finding).document())


def spread(client: Client, records: Records) -> list[Neighbours]:
    """Search for the closest records on a cluster, one task for each block."""
    shared = client.scatter(records, broadcast=True, hash=False)
    name = uuid4().hex[:8]
    futures = [
        client.submit(search, shared, piece, key=f"closest-{piece[0]}-{piece[1]}-{name}", retries=RETRIES, pure=False)
        for piece in records.pieces()
    ]
    client.gather(futures, errors="skip")
    return [
        result_of(future, f"closeness: {piece[0]} records") for future, piece in zip(futures, records.pieces(), strict=True)
    ]


def search(records: Records, piece: Piece) -> Neighbours:
    """On a worker: search one block."""
    return records.search(piece)
