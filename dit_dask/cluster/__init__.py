"""Where the work runs: a cluster on this machine, one that already exists, or one made for the run on Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from dit_dask.cluster import address, local
from dit_dask.cluster.kubernetes import cluster as kubernetes
from dit_dask.cluster.local import configure
from dit_dask.config.cluster import ClusterConfig, memory_bytes

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["check", "connect", "memory", "warning", "workers"]

KUBERNETES_WORKERS = 2
OPENERS: dict[str, Callable[..., AbstractContextManager[Client]]] = {
    "auto": local.start,
    "local": local.start,
    "address": address.join,
    "kubernetes": kubernetes.start,
}


def check(settings: ClusterConfig, variables: Sequence[str] = ()) -> None:
    """Raise InputError if something is missing, before any work; `variables` are the ${NAME}s that workers will read."""
    if settings.kind == "address":
        address.check(settings)
    if settings.kind == "kubernetes":
        kubernetes.check(settings, variables)


@contextmanager
def connect(settings: ClusterConfig, *, debug: bool = False, variables: Sequence[str] = ()) -> Iterator[Client]:
    """Yield a client of the configured cluster, and stop everything that was started here."""
    configure(debug)
    with OPENERS[settings.kind](replace(settings, workers=workers(settings)), variables) as client:
        yield client


def workers(settings: ClusterConfig) -> int:
    """Return the number of workers to plan for: as configured, else the default of the kind of cluster."""
    if settings.kind == "kubernetes":
        adaptive = settings.kubernetes.adaptive
        return adaptive.maximum if adaptive else settings.workers or KUBERNETES_WORKERS
    return local.workers(settings)


def memory(settings: ClusterConfig) -> int | None:
    """Return the bytes that each worker may use; None for a cluster that runs already."""
    if settings.kind == "kubernetes":
        return memory_bytes(settings.kubernetes.resources.worker.memory)
    return local.memory(settings) if settings.is_local else None


def warning(settings: ClusterConfig) -> str | None:
    """Return a warning about the security of a cluster, if there is one."""
    if settings.kind == "address":
        return address.warning(settings.address or "")
    if settings.kind == "kubernetes" and settings.kubernetes.tls_secret is None:
        return "without cluster.kubernetes.tls_secret only a NetworkPolicy keeps others from the scheduler"
    return None
