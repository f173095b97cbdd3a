"""A Dask cluster made for one run by the Dask operator on Kubernetes, and removed with it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dit_dask.cluster import address, security
from dit_dask.cluster.kubernetes import api as kube
from dit_dask.cluster.kubernetes import objects as pods
from dit_dask.config.cluster import ClusterConfig
from dit_dask.errors import InputError, RunError

if TYPE_CHECKING:
    from distributed import Client

READY_SECONDS = 300
IDLE_SECONDS = 1800
GONE_SECONDS = 90
POLL_SECONDS = 1.0
# a pod does not leave these states by itself; the time allows for delays
HOPELESS = ("InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError", "CrashLoopBackOff")
HOPELESS_SECONDS = 30


def check(settings: ClusterConfig, variables: Sequence[str]) -> None:
    """Check what can be checked without the Kubernetes API."""
    kube.check_installed()
    chosen = settings.kubernetes
    if chosen.image is None:
        raise InputError("cluster.kubernetes.image is missing: the pods need an image that holds dit_dask")
    if variables and chosen.secret is None:
        named = ", ".join(f"${{{name}}}" for name in variables)
        raise InputError(f"cluster.kubernetes.secret is missing: which Secret holds {named} for the pods?")
    if chosen.tls_secret is not None:
        security.client_security(settings.tls)


@contextmanager
def start(settings: ClusterConfig, variables: Sequence[str] = ()) -> Iterator[Client]:
    """Yield a client of a new cluster, which is removed in every case."""
    import dask

    chosen = settings.kubernetes
    with kube.Kube(chosen.namespace) as api:
        name, workers = f"dit-{uuid4().hex[:10]}", settings.workers or 1
        template = pods.ClusterTemplate(name, api.namespace, name, workers, chosen)
        seconds = settings.timeout or READY_SECONDS
        try:
            _create(api, template, variables)
            scheduler = _ready(api, template, seconds)
            place, dashboard = _route(api, template, scheduler)
            with (
                dask.config.set({"distributed.dashboard.link": dashboard}),
                address.reach(place, settings.tls, seconds) as client,
            ):
                yield client
        finally:
            with _ignore_signals():
                _remove(api, name)


def _create(api: kube.Kube, template: pods.ClusterTemplate, variables: Sequence[str]) -> None:
    made = api.create(pods.dask_cluster(template, variables, IDLE_SECONDS))
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {key: made["metadata"][key] for key in ("name", "uid")}
    policy = pods.network_policy(template.name, template.namespace, template.instance, template.settings)
    more = [policy, pods.autoscaler(template)] if template.settings.adaptive else [policy]
    for manifest in more:
        manifest["metadata"]["ownerReferences"] = [owner]  # removed with the cluster
        api.create(manifest)


def _ready(api: kube.Kube, template: pods.ClusterTemplate, seconds: float) -> str:
    """Wait for the scheduler and one worker; return the scheduler's pod. The operator may miss that they are ready."""
    deadline, stuck_since = time.monotonic() + seconds, 0.0
    while True:
        found = api.find("Pod", {pods.CLUSTER_NAME: template.name})
        by_part: dict[str, list[dict[str, Any]]] = {"scheduler": [], "worker": []}
        for pod in found:
            by_part.setdefault(pod["metadata"]["labels"].get(pods.COMPONENT, ""), []).append(pod)
        ready = {part: [pod for pod in many if pods.trouble(pod) is None] for part, many in by_part.items()}
        if ready["scheduler"] and ready["worker"]:
            return str(ready["scheduler"][0]["metadata"]["name"])
        now = time.monotonic()
        waiting = [part for part in ("scheduler", "worker") if not ready[part]]
        stuck = any((pods.trouble(pod) or "").startswith(HOPELESS) for part in waiting for pod in by_part[part])
        stuck_since = (stuck_since or now) if stuck else 0.0
        if now > deadline or (stuck and now - stuck_since > HOPELESS_SECONDS):
            limit = seconds if now > deadline else HOPELESS_SECONDS
            raise RunError(f"kubernetes: after {limit:g} s {_not_ready(waiting, by_part)}")
        time.sleep(POLL_SECONDS)


def _not_ready(waiting: Sequence[str], by_part: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Describe what is missing and why."""
    texts = []
    for part in waiting:
        if by_part[part]:
            pod = by_part[part][0]
            texts.append(f"{part} pod {pod['metadata']['name']} is not ready: {pods.trouble(pod)}")
        else:
            texts.append(f"there is no {part} pod")
    if len(waiting) == 2 and not any(by_part[part] for part in waiting):
        return "the Dask operator has not acted: there is neither a scheduler nor a worker pod; is it running?"
    return "; ".join(texts)


def _route(api: kube.Kube, template: pods.ClusterTemplate, scheduler: str) -> tuple[str, str]:
    """Return the addresses of scheduler and dashboard: names inside Kubernetes; outside, where a name server is not to be
    trusted, ports forwarded through the API."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return template.address, f"http://{template.name}-scheduler.{template.namespace}.svc:{pods.DASHBOARD}/status"
    scheme = template.address.partition(":")[0]
    comm, dashboard = api.forward(scheduler, pods.COMM), api.forward(scheduler, pods.DASHBOARD)
    return f"{scheme}://127.0.0.1:{comm}", f"http://127.0.0.1:{dashboard}/status"


def _remove(api: kube.Kube, name: str) -> None:
    """Delete the cluster with all it owns and wait, twice: an interrupted request may create it after the first time."""
    deadline, gone = time.monotonic() + GONE_SECONDS, 0
    while time.monotonic() < deadline:
        try:
            api.delete("DaskCluster", name)
            there = api.get("DaskCluster", name) is not None or api.find("Pod", {pods.CLUSTER_NAME: name})
            gone = 0 if there else gone + 1
            if gone == 2:
                return
        except kube.KubeError as error:
            if not error.transient:
                raise
        time.sleep(POLL_SECONDS)
    raise RunError(f"kubernetes: DaskCluster {name} is not gone after {GONE_SECONDS} s; kubectl delete daskcluster {name}")


@contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore a second Ctrl-C while the cluster is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
