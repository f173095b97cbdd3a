"""A real Kubernetes control plane on this machine, with pods as processes, and a small client of its API."""

from __future__ import annotations

import fcntl
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

RIG = Path(os.environ.get("DIT_RIG") or ROOT.parent / "shared" / "rig")
CACHE = Path(os.environ.get("DIT_RIG_CACHE") or ROOT / ".rig")
PLACES = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1beta1/namespaces/{}/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "DaskJob": "/apis/kubernetes.dask.org/v1/namespaces/{}/daskjobs",
    "DaskCluster": "/apis/kubernetes.dask.org/v1/namespaces/{}/daskclusters",
    "DaskAutoscaler": "/apis/kubernetes.dask.org/v1/namespaces/{}/daskautoscalers",
}


class Cluster:
    """The rig's API, as its administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        config = yaml.safe_load(kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]
        self._server, self._token = server["server"], config["users"][0]["user"]["token"]
        context = ssl.create_default_context(cafile=server["certificate-authority"])
        handler = urllib.request.HTTPSHandler(context=context)
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), handler)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request; raises HTTPError."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data=data, method=method, headers=headers)
        with self._opener.open(request, timeout=30) as answer:
            content = answer.read().decode()
        return json.loads(content) if content.startswith("{") else content

    def apply(self, manifest: dict[str, Any]) -> None:
        """Create an object; a CronJob in the version that this server knows."""
        if manifest["kind"] == "CronJob":
            manifest = {**manifest, "apiVersion": "batch/v1beta1"}
        self.call("POST", PLACES[manifest["kind"]].format(manifest["metadata"].get("namespace", "default")), manifest)

    def all(self, kind: str, namespace: str = "default", labels: str = "") -> list[dict[str, Any]]:
        """The objects of a kind, oldest first."""
        found = self.call("GET", f"{PLACES[kind].format(namespace)}?labelSelector={labels}")["items"]
        return sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object with all that it owns."""
        self.call("DELETE", f"{PLACES[kind].format(namespace)}/{name}", {"propagationPolicy": "Background"})

    def log(self, pod: str, namespace: str = "default") -> str:
        """What a pod printed."""
        try:
            return str(self.call("GET", f"{PLACES['Pod'].format(namespace)}/{pod}/log"))
        except urllib.error.HTTPError as error:
            return f"no log: {error}"


def wait(what: str, check: Callable[[], Any], seconds: float = 240) -> Any:
    """Return what a check finds, once it finds something."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, f"not after {seconds} s: {what}"
        time.sleep(0.5)


@contextmanager
def running(state: Path) -> Iterator[Cluster]:
    """Build what is missing of the rig, start it, and stop it."""
    if not (RIG / "up.py").is_file():
        pytest.skip("no rig: set DIT_RIG to the folder of its build.sh")
    if os.geteuid() != 0:
        pytest.skip("the rig needs root, for the mounts of its pods")
    with open("/etc/hosts") as hosts:
        try:
            fcntl.flock(hosts, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.skip("another rig runs on this machine")
    build = ["bash", str(RIG / "build.sh"), str(CACHE), "-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[kubernetes]"]
    with (state / "build.log").open("wb") as log:
        environment = os.environ | {"PYTHON": sys.executable}
        assert (
            subprocess.run([*build, "dask-kubernetes"], stdout=log, stderr=log, env=environment, check=False).returncode == 0
        ), (state / "build.log").read_text()[-2000:]
    with (state / "up.log").open("wb") as log:
        up = [sys.executable, str(RIG / "up.py"), "--cache", str(CACHE), "--state", str(state / "state")]
        process = subprocess.Popen(up, stdout=log, stderr=log, start_new_session=True)
    try:
        wait("rig up", lambda: process.poll() is not None or "KUBECONFIG=" in (state / "up.log").read_text())
        assert process.poll() is None, (state / "up.log").read_text()
        yield Cluster(state / "state" / "kubeconfig")
    finally:
        process.terminate()
        process.wait(60)
