"""The pods of an audit as Kubernetes objects: a Dask cluster, a job around it, and the network policies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.cluster.local import ALLOCATOR
from dit_dask.config.cluster import KubernetesConfig, Resources, memory_bytes

Manifest = dict[str, Any]

DASK = "kubernetes.dask.org/v1"
JOB_NAME = "JOB-NAME"  # a placeholder in templates for the name that the launcher gives
USER = 10001  # of the image's one user
COMM, DASHBOARD, WORKER_DASHBOARD = 8786, 8787, 8788
SCRATCH, CERTIFICATES, AUDIT = "/scratch", "/etc/dit/tls", "/etc/dit/audit"
CLUSTER_NAME, COMPONENT = "dask.org/cluster-name", "dask.org/component"
NAME_LENGTH = 53  # the operator adds "-scheduler", and 63 is the limit
# the HTTP routes that the operator needs, and none that forwards requests to other hosts
ROUTES = [f"distributed.http.{name}" for name in ("health", "statics", "scheduler.info", "scheduler.json", "scheduler.api")]
POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "privileged": False,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True)
class ClusterTemplate:
    """What the pods of one Dask cluster have in common; `instance` is the audit that they belong to."""

    name: str
    namespace: str
    instance: str
    workers: int
    settings: KubernetesConfig

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which network policies and clean-up select the audit's objects."""
        return labels(self.instance)

    @property
    def address(self) -> str:
        """The scheduler's address inside the cluster."""
        scheme = "tls" if self.settings.tls_secret else "tcp"
        return f"{scheme}://{self.name}-scheduler.{self.namespace}.svc:{COMM}"


@dataclass(frozen=True)
class ContainerTemplate:
    """What one container runs, its resources, and the ${NAME}s that it reads."""

    name: str
    arguments: Sequence[str]
    resources: Resources
    variables: Sequence[str] = ()
    environment: Mapping[str, str] | None = None
    volumes: Sequence[Manifest] = ()
    mounts: Sequence[Manifest] = ()


def labels(instance: str) -> dict[str, str]:
    """The recommended labels of everything that belongs to an audit."""
    return {
        "app.kubernetes.io/name": "dit-dask",
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/managed-by": "dit",
    }


def dask_cluster(template: ClusterTemplate, variables: Sequence[str], idle_seconds: int) -> Manifest:
    """A DaskCluster; the operator removes it after a long idle time, in case its client was killed."""
    return {
        "apiVersion": DASK,
        "kind": "DaskCluster",
        "metadata": {"name": template.name, "namespace": template.namespace, "labels": template.labels},
        "spec": {"idleTimeout": idle_seconds, **_cluster_spec(template, variables)},
    }


def dask_job(
    template: ClusterTemplate, worker: Sequence[str], runner: Sequence[str], arguments: Sequence[str], files: Manifest
) -> Manifest:
    """A DaskJob: a Dask cluster and the runner that uses it, with the variables of both; `files` is the config's volume."""
    container = ContainerTemplate(
        "runner",
        ["dit", *arguments],
        template.settings.resources.runner,
        runner,
        volumes=[{"name": "audit", **files}],
        mounts=[{"name": "audit", "mountPath": AUDIT, "readOnly": True}],
    )
    return {
        "apiVersion": DASK,
        "kind": "DaskJob",
        "metadata": {"name": template.name, "namespace": template.namespace, "labels": template.labels},
        "spec": {
            "cluster": {"spec": _cluster_spec(template, worker)},
            "job": {"spec": {"restartPolicy": "Never", **pod_spec(template.settings, container)}},
        },
    }


def autoscaler(template: ClusterTemplate) -> Manifest:
    """A DaskAutoscaler for the cluster of that name."""
    limits = template.settings.adaptive
    if limits is None:
        raise TypeError("only an adaptive cluster has an autoscaler")
    return {
        "apiVersion": DASK,
        "kind": "DaskAutoscaler",
        "metadata": {"name": template.name, "namespace": template.namespace, "labels": template.labels},
        "spec": {"cluster": template.name, "minimum": limits.minimum, "maximum": limits.maximum},
    }


def network_policy(name: str, namespace: str, instance: str, settings: KubernetesConfig) -> Manifest:
    """Allow an audit's Dask pods to connect to each other, to DNS and storage outside, and to the operator, only."""
    ours = {"podSelector": {"matchLabels": labels(instance)}}
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": settings.operator_namespace}}}
    dask = {"key": COMPONENT, "operator": "In", "values": ["scheduler", "worker", "job-runner"]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": labels(instance)},
        "spec": {
            "podSelector": {"matchLabels": labels(instance), "matchExpressions": [dask]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [ours]}, {"from": [operator], "ports": [_tcp(DASHBOARD)]}],
            "egress": [{"to": [ours]}, DNS, {"ports": [_tcp(port) for port in settings.egress_ports]}],
        },
    }


def _tcp(port: int) -> Manifest:
    return {"protocol": "TCP", "port": port}


DNS: Manifest = {"ports": [{"protocol": "UDP", "port": 53}, _tcp(53)]}


def _cluster_spec(template: ClusterTemplate, variables: Sequence[str]) -> Manifest:
    settings, resources = template.settings, template.settings.resources
    adaptive = settings.adaptive
    protocol = ["--protocol", "tls"] if settings.tls_secret else []
    scheduler = ContainerTemplate(
        "scheduler",
        ["dask", "scheduler", "--host", "0.0.0.0", *protocol, "--dashboard-address", f":{DASHBOARD}"],  # noqa: S104 - a pod's own address, behind a policy  # nosec B104
        resources.scheduler,
        environment={"DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": repr(ROUTES)},
    )
    memory = str(memory_bytes(resources.worker.memory))
    worker = ContainerTemplate(
        "worker",
        ["dask", "worker", "--name", "$(DASK_WORKER_NAME)", "--nthreads", "1", "--memory-limit", memory,
         "--dashboard-address", f":{WORKER_DASHBOARD}", "--local-directory", f"{SCRATCH}/dask"],
        resources.worker,
        variables,
        environment={"DASK_SCHEDULER_ADDRESS": template.address, "DASK_DISTRIBUTED__NANNY__PRE_SPAWN_ENVIRON": repr(ALLOCATOR)},
    )  # fmt: skip
    return {
        "scheduler": {"spec": _serving(pod_spec(settings, scheduler), _SCHEDULER_PORTS), "service": _service(template.name)},
        "worker": {
            "replicas": adaptive.minimum if adaptive else template.workers,
            "spec": _serving(pod_spec(settings, worker), {"http-dashboard": WORKER_DASHBOARD}),
        },
    }


_SCHEDULER_PORTS = {"tcp-comm": COMM, "http-dashboard": DASHBOARD}


def _service(name: str) -> Manifest:
    """Return the Service; its selector has the cluster's name, or it would match every scheduler of the namespace."""
    ports = [{"name": port, "protocol": "TCP", "port": number, "targetPort": port} for port, number in _SCHEDULER_PORTS.items()]
    return {"type": "ClusterIP", "selector": {CLUSTER_NAME: name, COMPONENT: "scheduler"}, "ports": ports}


def _serving(spec: Manifest, ports: Mapping[str, int]) -> Manifest:
    """Add ports and health checks to the one container of a pod."""
    health = {"httpGet": {"port": "http-dashboard", "path": "/health"}}
    container = spec["containers"][0] | {
        "ports": [{"name": name, "containerPort": number, "protocol": "TCP"} for name, number in ports.items()],
        "readinessProbe": {**health, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 30},
        "livenessProbe": {
            **health,
            "initialDelaySeconds": 60,
            "periodSeconds": 20,
            "timeoutSeconds": 15,
            "failureThreshold": 6,
        },
    }
    return spec | {"containers": [container]}


def pod_spec(settings: KubernetesConfig, container_template: ContainerTemplate, *, dask: bool = True) -> Manifest:
    """Return a pod that runs one container_template: not as root, only its scratch folder writable, no API token."""
    certified = dask and settings.tls_secret
    volumes: list[Manifest] = [{"name": "scratch", "emptyDir": {"sizeLimit": settings.scratch}}, *container_template.volumes]
    mounts: list[Manifest] = [{"name": "scratch", "mountPath": SCRATCH}, *container_template.mounts]
    if certified:
        volumes.append({"name": "tls", "secret": {"secretName": settings.tls_secret, "defaultMode": 0o440}})
        mounts.append({"name": "tls", "mountPath": CERTIFICATES, "readOnly": True})
    memory = container_template.resources.memory
    container = {
        "name": container_template.name,
        "image": settings.image,
        "args": list(container_template.arguments),
        "env": _environment(settings, container_template, certified=bool(certified)),
        **({"envFrom": [{"secretRef": {"name": name}} for name in settings.env_from]} if dask and settings.env_from else {}),
        "resources": {"requests": {"cpu": container_template.resources.cpu, "memory": memory}, "limits": {"memory": memory}},
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": mounts,
    }
    account = settings.service_account
    return {
        **({"serviceAccountName": account} if dask and account else {}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": POD_SECURITY,
        "containers": [container],
        "volumes": volumes,
        **_placement(settings),
    }


def _placement(settings: KubernetesConfig) -> Manifest:
    tolerations = [{key: value for key, value in one.items() if value is not None} for one in settings.tolerations]
    pull = [{"name": name} for name in settings.image_pull_secrets]
    given = {"tolerations": tolerations, "nodeSelector": dict(settings.node_selector), "imagePullSecrets": pull}
    return {key: value for key, value in given.items() if value}


def _environment(settings: KubernetesConfig, container_template: ContainerTemplate, *, certified: bool) -> list[Manifest]:
    """Return environment entries: plain settings by value, secrets by reference only."""
    plain = {
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "NUMBA_CACHE_DIR": f"{SCRATCH}/numba",
        **(container_template.environment or {}),
    }
    if certified:
        prefix = "DASK_DISTRIBUTED__COMM__"
        plain |= {f"{prefix}REQUIRE_ENCRYPTION": "True", f"{prefix}TLS__CA_FILE": f"{CERTIFICATES}/ca.crt"}
        for role in ("SCHEDULER", "WORKER", "CLIENT"):
            plain |= {f"{prefix}TLS__{role}__CERT": f"{CERTIFICATES}/tls.crt"}
            plain |= {f"{prefix}TLS__{role}__KEY": f"{CERTIFICATES}/tls.key"}
    listed: list[Manifest] = [{"name": name, "value": value} for name, value in plain.items()]
    secret = {"name": settings.secret}
    return listed + [
        {"name": name, "valueFrom": {"secretKeyRef": {**secret, "key": name}}} for name in container_template.variables
    ]


def trouble(pod: Mapping[str, Any]) -> str | None:
    """Return why a pod is not ready: the last message of its scheduling or its container; None for a ready one."""
    status = pod.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions") or []}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            for kind in ("waiting", "terminated"):
                if state.get(kind, {}).get("reason"):
                    return _words(state[kind])
    unscheduled = conditions.get("PodScheduled", {})
    if unscheduled.get("status") == "False":
        return _words(unscheduled)
    phase = str(status.get("phase", "unknown")).lower()
    return "running, but not answering its health check" if phase == "running" else phase


def _words(state: Mapping[str, Any]) -> str:
    """Return reason, exit code and the first line of the message."""
    code = f" with exit code {state['exitCode']}" if state.get("exitCode") else ""
    lines = str(state.get("message") or "").strip().splitlines()
    return f"{state['reason']}{code}" + (f" ({lines[0][:160]})" if lines else "")
