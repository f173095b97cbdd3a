"""Scheduler and workers of a local cluster that open no HTTP port: Dask's own serve HTTP to everybody, dashboard or not."""

from __future__ import annotations

from typing import Any

from distributed import LocalCluster, Nanny, Scheduler, Worker
from distributed.http.routing import RoutingApplication
from tornado.httpserver import HTTPServer


class WithoutHttp:
    """Replaces the start of a node's HTTP server: the server exists, and listens on nothing."""

    def start_http_server(self, routes: Any, *_: Any, **__: Any) -> None:
        """Make the server that other methods of the node expect."""
        self.http_application = RoutingApplication(routes)
        self.http_server = HTTPServer(self.http_application)


class PrivateScheduler(WithoutHttp, Scheduler):  # type: ignore[misc]
    """A scheduler without HTTP."""


class PrivateWorker(WithoutHttp, Worker):  # type: ignore[misc]
    """A worker without HTTP."""


class PrivateNanny(Nanny):  # type: ignore[misc]
    """A nanny whose worker process has no HTTP."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, worker_class=PrivateWorker, **options)


class PrivateCluster(LocalCluster):  # type: ignore[misc]
    """A cluster on this machine; HTTP only on its scheduler, and only with a dashboard."""

    async def _start(self) -> None:
        if self.scheduler_spec["options"]["dashboard_address"] is None:
            self.scheduler_spec["cls"] = PrivateScheduler
        await super()._start()
