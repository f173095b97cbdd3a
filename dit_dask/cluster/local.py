"""A cluster on this machine, on loopback only."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from dit_dask.config.cluster import ClusterConfig

if TYPE_CHECKING:
    from distributed import Client

LOOPBACK = "127.0.0.1"
# Dask makes workers return memory at once; arrays of a megabyte, made for every record, then cost as much in page faults
# as in arithmetic
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": 2**27, "MALLOC_MMAP_THRESHOLD_": 2**26}


@contextmanager
def in_process() -> Iterator[Client]:
    """Yield a client whose one worker is a thread of this process: works in scripts, notebooks and tests alike."""
    from distributed import Client, LocalCluster

    configure(debug=False)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="inproc://",
            dashboard_address=f"{LOOPBACK}:0",
            memory_limit=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def workers(settings: ClusterConfig) -> int:
    """Return the number of workers: as configured, else one for each core this process may use."""
    from dask.system import CPU_COUNT

    return int(settings.workers or CPU_COUNT)


def memory(settings: ClusterConfig) -> int:
    """Return the bytes that each worker may use: an equal share of the machine's."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT) // workers(settings)


@contextmanager
def start(settings: ClusterConfig, _variables: Sequence[str] = ()) -> Iterator[Client]:
    """Yield a client of the configured number of worker processes, on loopback."""
    from distributed import Client, LocalCluster

    with _ignore_interrupts():
        cluster = LocalCluster(
            n_workers=workers(settings),
            threads_per_worker=1,
            memory_limit=memory(settings),
            host=LOOPBACK,  # the scheduler unpickles what it gets, so no other machine may reach it
            dashboard_address=f"{LOOPBACK}:0",
        )
    with cluster, Client(cluster) as client:
        yield client


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Start processes that ignore SIGINT: a terminal sends it to them too, and each would print a trace."""
    resource_tracker.ensure_running()  # its start would unblock the signal again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def configure(debug: bool) -> None:
    """Hide Dask's log lines unless configured otherwise, and let workers reuse their memory."""
    import dask

    level = "info" if debug else "critical"
    names = ("distributed", *(f"distributed.{part}" for part in ("worker", "nanny", "scheduler", "client")), "tornado", "bokeh")
    settings: dict[str, Any] = {"logging": dict.fromkeys(names, level)}
    # a worker reads its levels while it starts, before any config reaches it
    settings["distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED"] = level
    for name, size in ALLOCATOR.items():
        settings[f"distributed.nanny.pre-spawn-environ.{name}"] = size
    dask.config.set(settings)
    for name in names:
        logging.getLogger(name).setLevel(level.upper())
