"""Reading a source in parts, on workers or in threads of this process; what they return is put together as it comes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dit_dask.execution.cluster_session import call_on_all
from dit_dask.execution.progress import Counting, Progress, Silent
from dit_dask.execution.runner import TaskRunner
from dit_dask.inputs.collapsed import CollapsedRows, Merger
from dit_dask.inputs.partitions import WHERE, Partition, PartitionReader, threads
from dit_dask.storage.filesystem import is_local

if TYPE_CHECKING:
    from distributed import Client

    from dit_dask.execution.session import TaskSession


@dataclass(frozen=True, eq=False)
class Gatherer:
    """Has the parts of a source read: on the workers of a client or, without one, in threads of this process."""

    client: Client | None = None
    progress: Progress = field(default_factory=Silent)

    def __call__(self, reader: PartitionReader, partitions: Sequence[Partition]) -> CollapsedRows:
        """Read all parts and put them together, in their order."""
        runner = TaskRunner(self._workers_for(reader, partitions), progress=self.progress, threads=threads())

        def work(session: TaskSession) -> CollapsedRows:
            merger, waiting, following = Merger(WHERE), dict[int, CollapsedRows](), 0
            places = {}
            with Counting(self.progress, len(partitions), 0, "parts of the source read"):
                for place, partition in enumerate(partitions):
                    name = f"read-source-{place:05d}"
                    task = session.submit(reader.read, partition, key=name, description=f"{WHERE}, part {place}", retries=0)
                    places[task] = place
                for task in session.completed():
                    waiting[places.pop(task)] = session.result(task)
                    while following in waiting:
                        merger.add(waiting.pop(following))
                        following += 1
                    self.progress.advance(1)
            return merger.merged()

        return runner.run(work)

    def _workers_for(self, reader: PartitionReader, partitions: Sequence[Partition]) -> Client | None:
        """The client, if there is work for several and all of them see the same files as this process."""
        if self.client is None or len(partitions) < 2:
            return None
        if not is_local(reader.location.url):
            return self.client
        sizes = partial(_sizes_of, sorted({partition.path for partition in partitions}))
        expected = sizes()
        return self.client if all(found == expected for found in call_on_all(self.client, sizes)) else None


def _sizes_of(paths: Sequence[str]) -> list[int] | None:
    """On a worker: the sizes of files; None if one is not there."""
    try:
        return [os.path.getsize(path) for path in paths]
    except OSError:
        return None
