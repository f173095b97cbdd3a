"""kmock as a Kubernetes API over HTTP, in which a Dask operator's doings are played from a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp.web
import kmock

JOBS, PODS = "daskjobs", "pods"


def runner(phase: str, *, code: int | None = None, waiting: str | None = None, reason: str | None = None) -> dict[str, Any]:
    """A runner pod in some state."""
    state: dict[str, Any] = {"running": {}}
    if code is not None:
        state = {"terminated": {"exitCode": code, **({"reason": reason} if reason else {})}}
    if waiting is not None:
        state = {"waiting": {"reason": waiting, "message": f"about {waiting}"}}
    containers = [] if phase == "Evicted" else [{"name": "runner", "state": state}]
    status = {"phase": "Failed" if phase == "Evicted" else phase, "containerStatuses": containers}
    return {"metadata": {"name": "the-runner"}, "status": status | ({"reason": "Evicted"} if phase == "Evicted" else {})}


class Api(kmock.KubernetesEmulator):
    """Remembers objects; answers for pods from `script`, one step a look; fails as `faults` say."""

    def prepare(self) -> Api:
        """Set what a test may change."""
        self.script: list[dict[str, Any] | None] = []
        self.faults: list[dict[str, Any]] = []
        self.made: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self["get /version/"] << {"major": "1", "minor": "31", "gitVersion": "v1.31.0"}
        return self

    async def _handle(self, request: kmock.Request) -> aiohttp.web.StreamResponse:
        plural = request.resource.plural if request.resource else ""
        fault = next((one for one in self.faults if one["on"] == (request.method.value.upper(), plural)), None)
        if fault is not None:
            fault["times"] = fault.get("times", 1) - 1
            if fault["times"] <= 0:
                self.faults.remove(fault)
            if "seconds" in fault:
                await asyncio.sleep(fault["seconds"])
            if fault.get("after"):
                await self._answer(request, plural)
            if "status" in fault:
                body = {"kind": "Status", "code": fault["status"], "message": f"told to answer {fault['status']}"}
                return aiohttp.web.json_response(body, status=fault["status"])
        return await self._answer(request, plural)

    async def _answer(self, request: kmock.Request, plural: str) -> aiohttp.web.StreamResponse:
        method = request.method.value.upper()
        if method == "POST":
            request.data["metadata"] |= {
                "uid": f"uid-{len(self.made)}",
                "creationTimestamp": f"2026-01-01T00:00:{len(self.made):02}Z",
            }
            response = await super()._handle(request)
            if response.status < 300:
                self.made.append(request.data)
            return response
        if method == "DELETE" and request.name:
            self.deleted.append(request.name)
        if method == "GET" and plural == PODS:
            step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            return aiohttp.web.json_response({"items": [step] if step else []})
        if method == "GET" and request.name is None and plural == JOBS:
            return aiohttp.web.json_response({"items": self._selected(request)})
        return await super()._handle(request)

    def _selected(self, request: kmock.Request) -> list[dict[str, Any]]:
        wanted = dict(pair.split("=") for pair in request.params.get("labelSelector", "").split(",") if pair)
        found = [dict(one.raw) for (what, _, _), one in self.objects.items() if what.plural == JOBS and not one.deleted]
        return [one for one in found if wanted.items() <= one["metadata"].get("labels", {}).items()]

    def put(self, name: str, labels: dict[str, str], status: str | None) -> None:
        """Leave a DaskJob of an earlier time."""
        body = {"metadata": {"name": name, "labels": labels, "creationTimestamp": "2025-" + name[-2:]}}
        key = (kmock.resource("kubernetes.dask.org", "v1", JOBS), "default", name)
        self.objects[key] = body | ({"status": {"jobStatus": status}} if status else {})


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Api, Path]]:
    """Serve on loopback from a thread; yield the server and a kubeconfig for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[Api, kmock.Server]:
        api = Api().prepare()
        await api.__aenter__()
        server = kmock.Server(api)
        await server.__aenter__()
        return api, server

    async def stop() -> None:
        await server.__aexit__(None, None, None)
        await api.__aexit__(None, None, None)
        await asyncio.sleep(0.05)  # sockets close in the loop's next rounds

    api, server = asyncio.run_coroutine_threadsafe(start(), loop).result(120)
    kubeconfig = folder / "kubeconfig"
    user = {"clusters": [{"name": "k", "cluster": {"server": str(server.url)}}], "users": [{"name": "k", "user": {}}]}
    context = {"contexts": [{"name": "k", "context": {"cluster": "k", "user": "k"}}], "current-context": "k"}
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **user, **context}))
    try:
        yield api, kubeconfig
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(120)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(120)
        loop.close()
