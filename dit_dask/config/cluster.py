"""The keys of `cluster:` in a config: where the work runs, and what a pod of it may use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dit_dask.config.constraints import Choice, Field, Flag, Integer, ListOf, MapOf, Number, Record, Text

NAME = Text(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a Kubernetes name: 1 to 63 lower-case letters, digits and inner dashes")
# a Secret or a ServiceAccount may have dots in its name
OBJECT = Text(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", "the name of a Kubernetes object, such as audit-credentials")
CPU = Text(r"[0-9]+(\.[0-9]{1,3})?|[0-9]+m", "a Kubernetes CPU quantity such as '2' or '500m'")
BYTES = Text(r"[1-9][0-9]*([KMGT]i|[kMGT])?", "a Kubernetes memory quantity such as 2Gi")
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG, _DIGEST = r":(?!latest(?:@|$))[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", r"@sha256:[0-9a-f]{64}"
_TAGGED = rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?:{_TAG}(?:{_DIGEST})?|{_DIGEST})"
IMAGE = Text(_TAGGED, "an image with a tag other than latest, or a digest, such as registry.example.org/dit:0.1.0")
KINDS = ("auto", "local", "address", "kubernetes")
ADDRESS = Text(r"(tcp|tls)://[^/\s]+:[0-9]+", "an address such as tls://HOST:PORT")
VALUE = Text(r"[A-Za-z0-9]?([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", "a label value")

MOST_WORKERS = 10_000


@dataclass(frozen=True)
class TlsFiles:
    """Certificate files of a client."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class Resources:
    """What one container may use."""

    cpu: str
    memory: str


@dataclass(frozen=True)
class PodResources:
    """What each kind of pod may use."""

    worker: Resources
    scheduler: Resources
    runner: Resources


@dataclass(frozen=True)
class Adaptive:
    """Between which numbers of workers the operator may choose."""

    minimum: int
    maximum: int


@dataclass(frozen=True)
class KubernetesConfig:
    """The keys of `cluster.kubernetes`."""

    image: str | None
    namespace: str | None
    resources: PodResources
    adaptive: Adaptive | None
    tolerations: Sequence[Mapping[str, Any]]  # passed on to Kubernetes as they are
    node_selector: Mapping[str, str]
    secret: str | None
    env_from: Sequence[str]
    service_account: str | None
    image_pull_secrets: Sequence[str]
    tls_secret: str | None
    scratch: str
    egress_ports: Sequence[int]
    operator_namespace: str
    deadline: int
    retries: int
    keep: int


@dataclass(frozen=True)
class ClusterConfig:
    """The keys of `cluster`."""

    kind: str
    workers: int | None
    address: str | None
    timeout: int | None
    tls: TlsFiles | None
    kubernetes: KubernetesConfig
    stall_minutes: float | None
    dashboard: bool

    @property
    def is_local(self) -> bool:
        """Whether the work is done on this machine."""
        return self.kind in ("auto", "local")

    @property
    def only_if_long(self) -> bool:
        """Whether a run of a few seconds needs no workers, since nothing was said about them."""
        return self.kind == "auto" and self.workers is None and not self.dashboard

    @property
    def stall_seconds(self) -> float | None:
        """After how many seconds without progress a run ends, if that was set."""
        return None if self.stall_minutes is None else 60 * self.stall_minutes


TLS = Record(
    {
        "ca": Field(Text(), description="certificate of the authority that signed everybody's certificates"),
        "cert": Field(Text(), description="this client's certificate"),
        "key": Field(Text(), description="its key; a file that only you can read"),
    },
    TlsFiles,
)


def _resources(cpu: str, memory: str) -> Field:
    record = Record({"cpu": Field(CPU, cpu), "memory": Field(BYTES, memory)}, Resources)
    return Field(record, record.check({}, ""), description="requested, and for memory also the limit")


RESOURCES = Record(
    {"worker": _resources("1", "2Gi"), "scheduler": _resources("500m", "2Gi"), "runner": _resources("500m", "2Gi")},
    PodResources,
)
TOLERATION = Record(
    {
        "key": Field(Text(), None),
        "operator": Field(Choice(("Equal", "Exists")), None),
        "value": Field(VALUE, None),
        "effect": Field(Choice(("NoSchedule", "PreferNoSchedule", "NoExecute")), None),
        "tolerationSeconds": Field(Integer(0), None),
    }
)
KUBERNETES = Record(
    {
        "image": Field(IMAGE, None, description="image of all pods, with dit_dask in the version of this client"),
        "namespace": Field(NAME, None, description="the kubeconfig's by default"),
        "resources": Field(
            RESOURCES, RESOURCES.check({}, ""), description="of one worker, the scheduler, and a scheduled run's runner"
        ),
        "adaptive": Field(
            Record({"minimum": Field(Integer(1), 1), "maximum": Field(Integer(1))}, Adaptive),
            None,
            description="let the operator choose the number of workers between these",
        ),
        "tolerations": Field(ListOf(TOLERATION), []),
        "node_selector": Field(MapOf(VALUE), {}),
        "secret": Field(OBJECT, None, description="Secret whose keys are the ${NAME}s of storage_options"),
        "env_from": Field(
            ListOf(OBJECT), [], description="Secrets whose keys all become variables, for the usual credential chains"
        ),
        "service_account": Field(OBJECT, None, description="ServiceAccount of the pods, for a cloud's workload identity"),
        "image_pull_secrets": Field(ListOf(OBJECT), []),
        "tls_secret": Field(OBJECT, None, description="Secret with ca.crt, tls.crt and tls.key: mutual TLS between the pods"),
        "scratch": Field(BYTES, "4Gi", description="size of the one folder that a pod can write to"),
        "egress_ports": Field(ListOf(Integer(1)), [443], description="TCP ports outside the audit that its pods may reach"),
        "operator_namespace": Field(NAME, "dask-operator", description="where the Dask operator runs"),
        "deadline": Field(Integer(60), 21_600, description="seconds that a deployed audit may take, its retries included"),
        "retries": Field(Integer(0), 2, description="how often a deployed audit that failed is resumed"),
        "keep": Field(Integer(1), 3, description="how many finished runs of a schedule stay to be looked at"),
    },
    KubernetesConfig,
)
CLUSTER = Record(
    {
        "kind": Field(
            Choice(KINDS), "auto", description="auto: a run of a few seconds stays in one process, a longer one is local"
        ),
        "workers": Field(Integer(1, MOST_WORKERS), None, description="the machine's cores by default; 2 on Kubernetes"),
        "address": Field(ADDRESS, None),
        "timeout": Field(Integer(1), None, description="seconds to wait for the cluster; 8 for an address, 300 on Kubernetes"),
        "tls": Field(
            TLS, None, description="certificate files for tls:// and for tls_secret; Dask's own configuration by default"
        ),
        "kubernetes": Field(KUBERNETES, KUBERNETES.check({}, "")),
        "stall_minutes": Field(
            Number(0), None, description="end a run in which nothing is finished for so long; 30 by default"
        ),
        "dashboard": Field(
            Flag(),
            False,
            description="local clusters: serve Dask's dashboard on loopback, without a password, to every user of this machine",
        ),
    },
    ClusterConfig,
)
DEFAULT = CLUSTER.check({}, "cluster")


def memory_bytes(quantity: str) -> int:
    """Turn a memory quantity such as 2Gi into bytes."""
    match = re.fullmatch(r"([0-9]+)([kKMGT]?)(i?)", quantity)
    if match is None:
        raise ValueError(quantity)
    power = ("", "k", "M", "G", "T").index(match[2].replace("K", "k"))
    return int(match[1]) * int((1024 if match[3] else 1000) ** power)
