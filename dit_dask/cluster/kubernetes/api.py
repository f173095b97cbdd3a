"""The few calls of the Kubernetes API that an audit needs; each has a time limit and fails with one line."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from dit_dask.errors import InputError, RunError, first_line

CALL_SECONDS = 20.0
EXTRA = "Kubernetes needs another package: pip install 'dit_dask[kubernetes]'"
DASK = "kubernetes.dask.org/v1"
# kind: (API version, plural)
KINDS = {
    "DaskJob": (DASK, "daskjobs"),
    "DaskCluster": (DASK, "daskclusters"),
    "DaskAutoscaler": (DASK, "daskautoscalers"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "Pod": ("v1", "pods"),
}


class KubeError(RunError):
    """A call that failed; `status` is the HTTP code, 0 without an answer, None if nothing was sent."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__(text)
        self.status = status

    @property
    def transient(self) -> bool:
        """Whether the same call may work later."""
        return self.status is not None and (self.status in (0, 429) or self.status >= 500)


def check_installed() -> None:
    """Raise InputError that names the extra if kr8s is missing."""
    from importlib.util import find_spec

    if find_spec("kr8s") is None:
        raise InputError(EXTRA)


class Kube:
    """A connection to a cluster's API; it has a thread of its own, so that ports stay forwarded during computations."""

    def __init__(self, namespace: str | None = None) -> None:
        check_installed()
        self.namespace = namespace or ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._forwards: list[Any] = []
        self._api: Any = None

    def __enter__(self) -> Kube:
        self._thread.start()
        try:
            self._call(self._connect(), "reach the Kubernetes API")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.namespace = self.namespace or str(self._api.namespace)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(KubeError):
            self._call(self._close(), "close the connection to the Kubernetes API")
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_SECONDS)
        self._loop.close()

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object and return the server's version of it."""
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        made: dict[str, Any] = self._call(self._request("POST", kind, json=dict(manifest)), f"create {kind} {name}")
        return made

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an object, or None where there is none of that name."""
        try:
            found: dict[str, Any] = self._call(self._request("GET", kind, name), f"read {kind} {name}")
        except KubeError as error:
            if error.status == 404:
                return None
            raise
        return found

    def find(self, kind: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the objects that carry all these labels, oldest first."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        found = self._call(self._request("GET", kind, params={"labelSelector": selector}), f"list {kind}s")
        return sorted(found.get("items", []), key=lambda one: str(one["metadata"].get("creationTimestamp", "")))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and what it owns; an object that does not exist is no error."""
        try:
            options = {"propagationPolicy": "Background"}
            self._call(self._request("DELETE", kind, name, json=options), f"delete {kind} {name}")
        except KubeError as error:
            if error.status != 404:
                raise

    def forward(self, pod: str, port: int) -> int:
        """Forward a port of this machine's loopback to a pod, through the API's own encryption, until this closes."""
        local: int = self._call(self._forward(pod, port), f"forward port {port} of pod {pod}")
        return local

    def _call(self, work: Coroutine[Any, Any, Any], what: str) -> Any:
        """Run a call in the API's own thread; every failure becomes a one-line KubeError."""
        future = asyncio.run_coroutine_threadsafe(_with_timeout(work), self._loop)
        try:
            return future.result()
        except TimeoutError as error:
            raise KubeError(f"kubernetes: cannot {what}: no answer within {CALL_SECONDS:g} s", 0) from error
        except BaseException as error:
            future.cancel()
            if not isinstance(error, Exception):
                raise
            status = _status(error)
            raise KubeError(f"kubernetes: cannot {what}: {_reason(error, status)}", status) from error

    async def _connect(self) -> None:
        import kr8s.asyncio

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of Kubernetes that kr8s is not tested with
            self._api = await kr8s.asyncio.api(namespace=self.namespace or None)

    async def _request(self, method: str, kind: str, name: str = "", **more: Any) -> Any:
        version, plural = KINDS[kind]
        url = f"{plural}/{name}" if name else plural
        async with self._api.call_api(method, version=version, namespace=self.namespace, url=url, **more) as response:
            return response.json()

    async def _forward(self, pod: str, port: int) -> int:
        from kr8s.asyncio.objects import Pod

        found = await Pod.get(pod, namespace=self.namespace, api=self._api)
        forward = found.portforward(remote_port=port, local_port="auto")
        number = int(await forward.start())
        self._forwards.append(forward)
        return number

    async def _close(self) -> None:
        for forward in self._forwards:
            await forward.stop()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        session = getattr(self._api, "_session", None)
        if session is not None:
            await session.aclose()
        await asyncio.sleep(0.01)  # sockets close in the next iterations of the loop


async def _with_timeout(work: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(CALL_SECONDS):
        return await work


def _status(error: Exception) -> int | None:
    import httpx

    response: Any = getattr(error, "response", None)
    if response is not None:
        return int(response.status_code)
    return 0 if isinstance(error, OSError | httpx.TransportError) else None


def _reason(error: Exception, status: int | None) -> str:
    """Shorten the server's message."""
    if status == 404 and "page not found" in str(error):
        return "the Dask operator's definitions are not installed (see deploy/README.md)"
    text = first_line(error, 200) or type(error).__name__
    return f"{status}: {text}" if status else text
