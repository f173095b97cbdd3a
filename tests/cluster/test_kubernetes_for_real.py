"""Audits on a real Kubernetes control plane with the real Dask operator; only the kubelet is replaced (pods are processes)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import S3Access
from tests.cluster.rig import Cluster, running, wait
from tests.cluster.runs import DIT, dit

pytestmark = pytest.mark.slow

IMAGE = "registry.example.org/dit:0.1.0"  # never pulled here
CONFIG = """\
version: 1
name: Census_K
data: {source: dit://census, limit: 1500}
schema:
  quasi_identifiers:
    age: {kind: numeric}
    education: {kind: categorical, hierarchy: trees/education.csv}
  sensitive: occupation
tests:
  - sanitizer: {name: mondrian, k: [2, 5]}
gates: ["delta <= 2"]
output: {url: "s3://audits/", storage_options: OPTIONS}
cluster:
  workers: 2
  kubernetes:
    image: registry.example.org/dit:0.1.0
    secret: bucket
    resources: {worker: {cpu: 500m, memory: 1Gi}}
seed: 3
"""
OURS = ("DaskCluster", "DaskJob", "DaskAutoscaler", "NetworkPolicy", "Deployment", "Service", "Pod")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, s3: S3Access) -> Iterator[Cluster]:
    """The rig, with the Secret that the pods need."""
    with running(tmp_path_factory.mktemp("rig")) as found:
        found.apply({"kind": "Secret", "metadata": {"name": "bucket"}, "stringData": s3.environment})
        yield found


@pytest.fixture
def audit(tmp_path: Path, s3: S3Access) -> Path:
    """A config and the hierarchy beside it."""
    from tests.conftest import ROOT

    (tmp_path / "trees").mkdir()
    tree = ROOT / "dit_dask" / "data" / "hierarchies" / "adult-education.csv"
    (tmp_path / "trees" / "education.csv").write_text(tree.read_text("utf-8"), "utf-8")
    path = tmp_path / "census.yaml"
    path.write_text(CONFIG.replace("OPTIONS", json.dumps(s3.options)), "utf-8")
    return path


def left(cluster: Cluster) -> list[str]:
    """What of ours is still there; the API's own Service is not."""
    found = [f"{kind} {one['metadata']['name']}" for kind in OURS for one in cluster.all(kind)]
    return [name for name in found if name != "Service kubernetes"]


def without_seconds(text: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "seconds"} for entry in json.loads(text)["tests"]]


def test_a_run_on_kubernetes_finds_what_a_laptop_finds_and_leaves_nothing(cluster: Cluster, audit: Path, s3: S3Access) -> None:
    here = dit("run", audit, "--fresh", "--json", "--quiet", **s3.environment)
    assert here.returncode == 0, here.stderr
    there = dit(
        "run", audit, "--fresh", "--json", "--cluster", "kubernetes", "--set", "data.limit=1500", timeout=600,
        KUBECONFIG=str(cluster.kubeconfig), **s3.environment,
    )  # fmt: skip
    assert there.returncode == 0, there.stderr
    assert "http://127.0.0.1:" in there.stderr
    assert without_seconds(there.stdout) == without_seconds(here.stdout)
    assert left(cluster) == []


def certify(cluster: Cluster, folder: Path, secret: str) -> None:
    """Make certificates, and a Secret of those that the pods share."""
    assert dit("certificates", "--to", folder).returncode == 0
    names = {"ca.crt": "ca.crt", "tls.crt": "worker.crt", "tls.key": "worker.key"}
    content = {key: (folder / file).read_text() for key, file in names.items()}
    cluster.apply({"kind": "Secret", "metadata": {"name": secret}, "stringData": content})


def test_mutual_tls_and_adaptive_workers(cluster: Cluster, audit: Path, s3: S3Access) -> None:
    certify(cluster, audit.parent / "certificates", "trial-tls")
    files = "{ca: certificates/ca.crt, cert: certificates/client.crt, key: certificates/client.key}"
    options = [f"cluster.tls={files}", "cluster.kubernetes.tls_secret=trial-tls"]
    options.append("cluster.kubernetes.adaptive={minimum: 1, maximum: 2}")
    command = [*DIT, "run", str(audit), "--fresh", "--cluster", "kubernetes", *(f"--set={one}" for one in options)]
    environment = os.environ | s3.environment | {"KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    scaler = wait("autoscaler", lambda: cluster.all("DaskAutoscaler"))[0]
    assert scaler["spec"]["maximum"] == 2
    shown, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "s3://audits/Census_K-" in shown
    assert left(cluster) == []


def test_ctrl_c_removes_the_cluster(cluster: Cluster, audit: Path, s3: S3Access) -> None:
    command = [*DIT, "run", str(audit), "--fresh", "--cluster", "kubernetes"]
    environment = os.environ | s3.environment | {"KUBECONFIG": str(cluster.kubeconfig)}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also where the tests themselves run in the background
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=environment, preexec_fn=heard, **pipes)
    wait("scheduler pod", lambda: cluster.all("Pod"))
    for _ in range(2):  # an impatient user
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 2
    assert said.splitlines()[-1] == "dit: interrupted; the same command resumes where it stopped"
    assert left(cluster) == []


def test_what_is_not_ready_is_named(cluster: Cluster, audit: Path, s3: S3Access) -> None:
    failed = dit(
        "run", audit, "--fresh", "--quiet", "--cluster", "kubernetes", "--set", "cluster.kubernetes.secret=nowhere",
        timeout=300, KUBECONFIG=str(cluster.kubeconfig), **s3.environment,
    )  # fmt: skip
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert "worker pod dit-" in failed.stderr
    assert "CreateContainerConfigError" in failed.stderr
    assert "nowhere" in failed.stderr
    assert left(cluster) == []


def deploy(cluster: Cluster, audit: Path, *options: str) -> list[dict[str, Any]]:
    """Apply what `dit deploy` prints, with no variable set."""
    printed = dit("deploy", audit, *options)
    assert printed.returncode == 0, printed.stderr
    manifests = list(yaml.safe_load_all(printed.stdout))
    for manifest in manifests:
        cluster.apply(manifest)
    return manifests


def undeploy(cluster: Cluster, manifests: list[dict[str, Any]]) -> None:
    for manifest in manifests:
        cluster.delete(manifest["kind"], manifest["metadata"]["name"])
    wait("all gone", lambda: not left(cluster))


def ended(cluster: Cluster, kind: str = "Job") -> dict[str, Any] | None:
    """The first Job that has ended."""
    found = [job for job in cluster.all(kind) if job["status"].get("succeeded") or job["status"].get("failed")]
    return found[0] if found else None


def exit_codes(cluster: Cluster) -> dict[str, int]:
    """The launcher's pods that have ended. This old server knows no podFailurePolicy: it tries again, and finds the same."""
    found = {}
    for pod in cluster.all("Pod", labels="app.kubernetes.io/name=dit-launcher"):
        for container in pod["status"].get("containerStatuses") or []:
            if "terminated" in container["state"]:
                found[pod["metadata"]["name"]] = container["state"]["terminated"]["exitCode"]
    return found


def test_a_deployed_audit_runs_once_and_ends_as_the_audit_ends(cluster: Cluster, audit: Path) -> None:
    audit.write_text(audit.read_text().replace("delta <= 2", "delta <= 0.001"))
    manifests = deploy(cluster, audit)
    try:
        codes = wait("end of a second launcher", lambda: len(found := exit_codes(cluster)) > 1 and found, 600)
        said = [cluster.log(pod) for pod in codes]
        (job,) = cluster.all("DaskJob")  # the second launcher found the first one's
        name = job["metadata"]["name"]
        audit_said = cluster.log(f"{name}-runner")
    finally:
        undeploy(cluster, manifests)
    assert set(codes.values()) == {1}, said
    assert name.startswith("census-k-")
    assert all(f"DaskJob {name} ended with 1: exit code 1" in text for text in said)
    assert "FAIL  delta <= 0.001" in audit_said


def test_a_scheduled_audit_starts_by_itself_speaks_tls_and_goes_with_its_cron_job(cluster: Cluster, audit: Path) -> None:
    certify(cluster, audit.parent / "certificates", "nightly-tls")
    more = ["cluster.kubernetes.tls_secret=nightly-tls", "cluster.kubernetes.adaptive.maximum=2"]
    manifests = deploy(cluster, audit, "--schedule", "* * * * *", *(f"--set={one}" for one in more))
    try:
        job = wait("end of a Job", lambda: ended(cluster), 600)
        (launched, *_) = cluster.all("DaskJob")
        said = cluster.log(f"{launched['metadata']['name']}-runner")
    finally:
        undeploy(cluster, manifests)
    assert job["status"].get("succeeded") == 1, said
    assert job["metadata"]["name"].startswith("census-k-")
    assert "tls://" in str(launched["spec"])
    assert "s3://audits/Census_K-" in said
