"""The measures of a run on the cluster: a task or a few for each, kept in the run folder as soon as it is done."""

import io
import json
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dit_dask.errors import RunError
from dit_dask.graph import ATTEMPTS, RETRIES, LostWorkError, gathered, result_of
from dit_dask.manifest import write_json
from dit_dask.measurements import Agenda, Material, Measurement, Publisher
from dit_dask.measures.closeness import Piece, Records
from dit_dask.measures.kind import Divided, Finding
from dit_dask.measures.space import Neighbours
from dit_dask.progress import Observer
from dit_dask.release import Release
from dit_dask.store import Folder

if TYPE_CHECKING:
    from distributed import Client, Future


def take(client: "Client", agenda: Agenda, folder: Folder, watcher: Observer) -> list[dict[str, Any]]:
    """Take the measurements that the folder does not have; return the objects of all, in order."""
    known = [entry for one in agenda.measurements if (entry := stored(folder, one)) is not None]
    if known:
        watcher.note(f"resuming: {len(known)} of {len(agenda.measurements)} measures are there already")
    for _ in range(ATTEMPTS):
        entries = [stored(folder, one) for one in agenda.measurements]
        missing = [one for one, entry in zip(agenda.measurements, entries, strict=True) if entry is None]
        if not missing:
            return [entry for entry in entries if entry is not None]
        try:
            gathered(client)
            Tasks(client, agenda.material, folder).run(missing)
        except (LostWorkError, CancelledError, TimeoutError):
            watcher.note("the cluster lost its workers; sending them the measures again")
    raise RunError(f"the measures could not be finished in {ATTEMPTS} attempts; the same command resumes what is left")


def whole(agenda: Agenda | None, folder: Folder) -> bool:
    """Tell whether every measurement is in the folder."""
    return agenda is None or all(stored(folder, one) is not None for one in agenda.measurements)


def stored(folder: Folder, measurement: Measurement) -> dict[str, Any] | None:
    """Read back what an earlier task wrote, if all of it is there."""
    try:
        entry = json.loads(folder.read(f"measures/{measurement.id}.json") or b"")
    except ValueError:
        return None
    whole = isinstance(entry, dict) and entry.get("id") == measurement.id
    if whole and entry["columns"] and f"{measurement.id}.parquet" not in folder.names("measures"):
        return None
    return entry if whole else None


class Tasks:
    """One try with one copy of the material on the cluster."""

    def __init__(self, client: "Client", material: Material, folder: Folder) -> None:
        self._client, self._material, self._folder = client, material, folder
        self._shared = client.scatter(material, hash=False)
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

    def _task(self, one: Measurement) -> "Future":
        release, one = self._release(one.publisher), one.light()
        if not isinstance(one.measure, Divided):
            return self._submit(take_whole, self._shared, one, release, self._folder, key=f"measure-{one.id}")
        pieces = one.measure.pieces(self._material.evidence(one))
        found = [
            self._submit(take_piece, self._shared, one, release, piece, key=f"measure-{one.id}-{place:05d}")
            for place, piece in enumerate(pieces)
        ]
        self._pieces += found
        return self._submit(take_joined, self._shared, one, release, self._folder, found, key=f"join-{one.id}")

    def _release(self, publisher: Publisher | None) -> "Future | None":
        if publisher is None:
            return None
        if id(publisher) not in self._releases:
            key = f"release-{len(self._releases)}"
            self._releases[id(publisher)] = self._submit(publish, self._shared, publisher, key=key)
        return self._releases[id(publisher)]

    def _submit(self, function: Any, *arguments: Any, key: str) -> "Future":
        return self._client.submit(function, *arguments, key=f"{key}-{self._name}", retries=RETRIES, pure=False)


def publish(material: Material, publisher: Publisher) -> Release:
    """On a worker: what a sanitizer of the run publishes."""
    return publisher.release(material.rows)


def take_whole(material: Material, one: Measurement, release: Release | None, folder: Folder) -> None:
    """On a worker: take and keep one measurement."""
    keep(folder, one, one.measure.find(material.evidence(one, release)))


def take_piece(material: Material, one: Measurement, release: Release | None, piece: Any) -> Any:
    """On a worker: do one piece of a measurement."""
    return one.measure.find_piece(material.evidence(one, release), piece) if isinstance(one.measure, Divided) else None


def take_joined(material: Material, one: Measurement, release: Release | None, folder: Folder, found: Sequence[Any]) -> None:
    """On a worker: put the pieces together and keep the result."""
    if isinstance(one.measure, Divided):
        keep(folder, one, one.measure.join(material.evidence(one, release), found))


def keep(folder: Folder, one: Measurement, finding: Finding) -> None:
    """Write the columns first and the object last, so that an object means that all is there."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if finding.columns:
        length = len(next(iter(finding.columns.values())))
        buffer = io.BytesIO()
        pq.write_table(pa.table({"record": np.arange(length), **finding.columns}), buffer, compression="zstd")
        folder.write(f"measures/{one.id}.parquet", buffer.getvalue())
    write_json(folder, f"measures/{one.id}.json", one.entry(finding))


def spread(client: "Client", records: Records) -> list[Neighbours]:
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
