"""A cluster on this machine, on loopback only, which no other user of the machine can use."""

from __future__ import annotations

import logging
import math
import os
import signal
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.config.cluster import ClusterConfig

if TYPE_CHECKING:
    from distributed import Client

LOOPBACK = "127.0.0.1"
# Dask makes workers return memory at once; arrays of a megabyte, made for every record, then cost as much in page faults
# as in arithmetic
ALLOCATOR = {"MALLOC_TRIM_THRESHOLD_": 2**27, "MALLOC_MMAP_THRESHOLD_": 2**26}


def workers(settings: ClusterConfig) -> int:
    """Return the number of workers: as configured, else one for each core this process may use."""
    return settings.workers or cores()


def cores() -> int:
    """Return the cores that this process may use; as Dask counts them, without importing it."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_cores()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def _cgroup_cores() -> float | None:
    """Return the share of the machine that a container may use, if it is limited; version 2 of cgroups, then version 1."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota, period = (Path(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return None
    return int(quota) / int(period) if quota.strip().isdigit() else None  # "max" and -1 mean no limit


def memory(settings: ClusterConfig) -> int:
    """Return the bytes that each worker may use: an equal share of the machine's."""
    from distributed.system import MEMORY_LIMIT

    return int(MEMORY_LIMIT) // workers(settings)


@contextmanager
def start(settings: ClusterConfig, _variables: Sequence[str] = ()) -> Iterator[Client]:
    """Yield a client of the configured number of worker processes, on loopback and with mutual TLS.

    The scheduler unpickles what it gets, so no other machine may reach it, and no other user of this one may use it: the
    certificate is made for this cluster, exists in the memory of its processes, and ends with them.
    """
    from distributed import Client
    from distributed.security import Security

    from dit_dask.cluster.nodes import PrivateCluster, PrivateNanny

    with _ignore_interrupts():
        cluster = PrivateCluster(
            n_workers=workers(settings),
            threads_per_worker=1,
            memory_limit=memory(settings),
            host=LOOPBACK,
            protocol="tls://",
            security=Security.temporary(),
            worker_class=PrivateNanny,
            dashboard_address=f"{LOOPBACK}:0" if settings.dashboard else None,
            local_directory=scratch_folder(),
        )
    with cluster, Client(cluster) as client:
        yield client


def scratch_folder() -> str:
    """Return a folder that only this user can read: workers write there what does not fit into their memory.

    It has one name for each user, so that Dask finds and removes what killed workers left.
    """
    import dask

    base = dask.config.get("temporary-directory", None) or tempfile.gettempdir()
    path = os.path.join(base, f"dit-workers-{os.getuid()}")
    os.makedirs(base, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            return tempfile.mkdtemp(prefix="dit-workers-", dir=base)  # somebody else took the name
    return path


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
