"""The workers of a run, as long as they are not connected and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dit_dask.audit.grammar import read_gates
from dit_dask.config.document import Config
from dit_dask.inputs.partitions import source_bytes

if TYPE_CHECKING:
    from distributed import Client

LARGE_BYTES = 2**26  # of a source that workers read


@dataclass(frozen=True)
class Workers:
    """How to connect to the workers, how many there are, the bytes that each may use, and how long they may finish nothing.

    Without `connect` the work is done in this process; so it is if `only_if_long` and the work is short.
    """

    connect: Callable[[], AbstractContextManager[Client]] | None
    count: int
    memory: Callable[[], int | None] = lambda: None
    stall_seconds: float | None = None
    only_if_long: bool = False
    client: Client | None = None  # if they are connected already


def is_large(config: Config) -> bool:
    """Tell whether it is worth having workers read the source."""
    return source_bytes(config) >= LARGE_BYTES


def workers_read(config: Config) -> bool:
    """Tell whether a run of the command has the source read by workers, and leaves its rows with them."""
    return not config.cluster.only_if_long and not config.measures and is_large(config)


@contextmanager
def connect_early(workers: Workers, config: Config) -> Iterator[Workers]:
    """Connect before the table is read, where it is worth having workers read it."""
    if workers.connect is None or workers.only_if_long or not is_large(config):
        yield workers
        return
    read_gates(config)  # what is wrong with them is said before a cluster is started
    with workers.connect() as client:
        yield replace(workers, connect=lambda: nullcontext(client), client=client)
