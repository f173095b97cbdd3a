"""From a config to Kubernetes manifests: a launcher that runs once or on a schedule, what it may do, and what it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dit_dask import cluster
from dit_dask.audit.grammar import check_config, named_files, secret_values
from dit_dask.cluster.kubernetes import objects as pods
from dit_dask.cluster.kubernetes.objects import Manifest
from dit_dask.config.cluster import KUBERNETES, NAME, KubernetesConfig, Resources
from dit_dask.config.document import Config, config_folder, default_name, references
from dit_dask.config.yaml import read_document
from dit_dask.deployment import cron
from dit_dask.errors import InputError, quote
from dit_dask.inputs.source import read_text
from dit_dask.storage.filesystem import is_local
from dit_dask.storage.redaction import is_credential_name, mask_text, may_be_secret, named_values, public_url

MOST_NAME = pods.NAME_LENGTH - len("-1116030000-ab12")
MOST_BYTES = 1_000_000  # etcd takes no larger object
READY_SECONDS = 300
LAUNCH = "/etc/dit/launch"
LAUNCHER_RESOURCES = Resources("100m", "256Mi")
OPEN_OPTIONS = {
    *("account_name", "addressing_style", "compression", "endpoint_url", "profile", "project", "region", "region_name"),
    *("remote_protocol", "signature_version", "target_protocol"),
}
KEYLESS = {"anon", "cloud", "google_default"}  # values of gcsfs's token that are no secret


@dataclass(frozen=True)
class DeployOptions:
    """What the command line adds to a config."""

    image: str | None = None
    schedule: str | None = None
    time_zone: str | None = None
    namespace: str | None = None
    name: str | None = None
    secret: str | None = None
    overrides: Sequence[str] = ()
    allowed_literals: Sequence[str] = ()  # places whose values are no secrets


@dataclass(frozen=True)
class Variables:
    """The ${NAME}s that pods look up: workers those of tests and output, the runner all of them."""

    worker: Sequence[str]
    runner: Sequence[str]


@dataclass(frozen=True)
class Deployment:
    """A checked audit with everything that its manifests depend on."""

    name: str
    namespace: str
    config: Config
    text: str
    files: Mapping[str, str]
    settings: KubernetesConfig
    variables: Variables
    workers: int
    options: DeployOptions


def manifests(path: str, options: DeployOptions) -> str:
    """Return the YAML documents that `kubectl apply` takes."""
    deployment = prepare(path, options)
    return _header(deployment) + "".join(f"---\n{_yaml(manifest)}" for manifest in objects(deployment))


def prepare(path: str, options: DeployOptions) -> Deployment:
    """Check everything that would fail only inside the cluster: names, image, schedule, places, files and secrets."""
    literals = Literals(options.allowed_literals)
    for count in range(len(options.overrides) + 1):  # an option that another one replaces is sent too
        document = read_document(path, options.overrides[:count])
        literals.check(document)
    literals.refuse()
    config = check_config(document, config_folder(path), default_name(path))
    _check_schedule(options)
    text = Path(path).read_text("utf-8")
    literals.check_comments(text)
    literals.refuse()
    literals.check_allowed()
    _check_places(config)
    variables, settings = _variables(document), _settings(config, options, secret_values(document))
    if variables.runner and settings.secret is None:
        named = ", ".join(f"${{{name}}}" for name in variables.runner)
        raise InputError(f"--secret is missing: which Secret holds {named}?")
    files = dict(_read_files(config, named_files(document)))
    size = sum(len(content.encode()) for content in files.values())
    if size > MOST_BYTES:
        raise InputError(
            f"the config's hierarchies and matrices have {size:,} bytes; at most {MOST_BYTES:,} fit: use URLs for them"
        )
    return Deployment(
        name=_name(config, options),
        namespace=settings.namespace or "default",
        config=config,
        text=text,
        files=files,
        settings=settings,
        variables=variables,
        workers=cluster.workers(replace(config.cluster, kind="kubernetes")),
        options=options,
    )


def _check_schedule(options: DeployOptions) -> None:
    if options.schedule is not None:
        cron.check(options.schedule, "--schedule")
    elif options.time_zone is not None:
        raise InputError("--time-zone goes with --schedule, and only with it")
    if options.time_zone is not None:
        cron.zone(options.time_zone, "--time-zone")


def _variables(document: Mapping[str, Any]) -> Variables:
    """Find the ${NAME}s of every field that may hold secrets."""
    found = secret_values(document)
    workers = [value for where, value in found if where.startswith(("tests[", "output."))]
    return Variables(references(workers), references([value for _, value in found]))


def _settings(config: Config, options: DeployOptions, secrets: Sequence[tuple[str, Any]]) -> KubernetesConfig:
    """Let options win over the config, checked alike."""
    settings = config.cluster.kubernetes
    for key, value in (("image", options.image), ("namespace", options.namespace), ("secret", options.secret)):
        if value is not None:
            settings = replace(settings, **{key: KUBERNETES.fields[key].constraint.check(value, f"--{key}")})
    if settings.image is None:
        raise InputError(
            "--image is missing: the pods need an image that holds dit_dask (deploy/README.md says how to build it)"
        )
    ports = _ports([value for _, value in secrets])
    return replace(settings, egress_ports=sorted({*settings.egress_ports, *ports}))


def _ports(value: Any) -> set[int]:
    """Ports of the endpoints that storage options name."""
    if isinstance(value, Mapping | list):
        return {port for item in (value.values() if isinstance(value, Mapping) else value) for port in _ports(item)}
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return set()
    parts = urlsplit(value)
    return {parts.port or (443 if parts.scheme == "https" else 80)}


def _name(config: Config, options: DeployOptions) -> str:
    """Kubernetes takes fewer characters than a run folder."""
    name = options.name
    if name is None:
        name = re.sub(r"[^a-z0-9]+", "-", config.name.lower()).strip("-")
    NAME.check(name, "--name")
    if len(name) > MOST_NAME:
        raise InputError(f"--name must have at most {MOST_NAME} characters, for the operator adds to it; got {name!r}")
    return name


def _check_places(config: Config) -> None:
    """Pods do not see this machine's files."""
    private = [] if config.output.private is None else [("output.private", config.output.private.url)]
    for where, url in (("data.source", config.data.url), ("output", config.output.url), *private):
        if is_local(url):
            raise InputError(f"{where}: pods cannot reach this machine's files; use a URL such as s3://…; got {url!r}")
        if url.startswith("memory:"):
            raise InputError(f"{where}: memory:// ends with the pod; use a URL such as s3://…")


class Literals:
    """Refuses literals that may be secrets, for a ConfigMap is no place for them; `allowed` are places where there is none."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed, self._found = allowed, dict[str, str]()

    def check(self, document: Any) -> None:
        """Check a whole config: in fields that may hold secrets any text that is not ordinary, elsewhere credentials."""
        for where, field in secret_values(document):
            for place, names, value in named_values(field):
                is_known = value in KEYLESS or (bool(names) and names[-1] in OPEN_OPTIONS and mask_text(str(value)) == value)
                if not is_known and may_be_secret(value, names):
                    self._found[f"{where}{place}"] = _advice(where)
        self._check_texts(document, "")

    def refuse(self) -> None:
        """Raise InputError for what was found, all places in one line."""
        refused = {place: reason for place, reason in self._found.items() if place not in self._allowed}
        refused = dict(sorted(refused.items(), key=lambda found: not is_credential_name(found[0])))  # the clearest case first
        for place, reason in refused.items():
            others = f", and {len(refused) - 1} more values" if len(refused) > 1 else ""
            allow = " ".join(f"--allow-literal '{place}'" for place in refused)
            raise InputError(f"{place}{reason} would be readable in a ConfigMap{others} (if there is no secret: {allow})")

    def _check_texts(self, value: Any, where: str) -> None:
        """Refuse URLs that carry a password or a query, where tokens are, and other texts that look like a credential."""
        if isinstance(value, Mapping):
            for key, item in value.items():
                self._check_texts(item, f"{where}.{key}" if where else str(key))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._check_texts(item, f"{where}[{index}]")
        elif isinstance(value, str) and public_url(value) != value:
            self._found.setdefault(where, ": a URL with a password or query belongs in storage_options, it")
        elif isinstance(value, str) and mask_text(value) != value:
            self._found.setdefault(where, " looks like a credential, which")

    def check_comments(self, text: str) -> None:
        """Refuse comments that look like a credential: the file is sent as it was written."""
        for number, line in enumerate(text.splitlines(), 1):
            comment = line.partition("#")[2]
            if mask_text(comment) != comment:
                self._found[f"line {number}"] = " of the config has a comment that looks like a credential, which"

    def check_allowed(self) -> None:
        """Refuse an allowed place at which nothing had to be allowed: it may be misspelled."""
        for place in self._allowed:
            if place not in self._found:
                raise InputError(f"--allow-literal: there is nothing to allow at {quote(place)}")


def _advice(where: str) -> str:
    if where.endswith("storage_options"):
        return " must be a reference such as ${NAME}: a value"
    return " may be a secret; the sanitizer can read it from a file of its image instead: a value"


def _read_files(config: Config, named: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Read the small files that a config names, by their path relative to it; URLs are left for the pods to read."""
    for where, path in named:
        if "://" in path:
            continue
        relative = Path(path)
        if relative.is_absolute() or ".." in relative.parts:
            raise InputError(f"{where}: a deployed config takes along only files of its own folder; got {path!r}")
        yield relative.as_posix(), read_text(path, config, where)


def objects(deployment: Deployment) -> list[Manifest]:
    """The objects in the order in which they depend on each other."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(deployment), "automountServiceAccountToken": False},
        _role(deployment),
        _binding(deployment),
        pods.network_policy(deployment.name, deployment.namespace, deployment.name, deployment.settings),
        _launcher_policy(deployment),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(deployment), "data": _content(deployment)},
        _scheduled(deployment) if deployment.options.schedule else _once(deployment),
    ]


def _meta(deployment: Deployment) -> Manifest:
    return {"name": deployment.name, "namespace": deployment.namespace, "labels": pods.labels(deployment.name)}


def _role(deployment: Deployment) -> Manifest:
    """Start, see and remove DaskJobs; see pods, for only they tell an exit code. No logs, no secrets, no other namespace."""
    dask = ["kubernetes.dask.org"]
    rules = [
        {"apiGroups": dask, "resources": ["daskjobs"], "verbs": ["create", "get", "list", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    if deployment.settings.adaptive:
        rules.append({"apiGroups": dask, "resources": ["daskautoscalers"], "verbs": ["create"]})
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": _meta(deployment), "rules": rules}


def _binding(deployment: Deployment) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _meta(deployment),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": deployment.name},
        "subjects": [{"kind": "ServiceAccount", "name": deployment.name, "namespace": deployment.namespace}],
    }


def _launcher_labels(deployment: Deployment) -> dict[str, str]:
    return {"app.kubernetes.io/name": "dit-launcher", "app.kubernetes.io/instance": deployment.name}


def _launcher_policy(deployment: Deployment) -> Manifest:
    """The launcher is reached by nobody and reaches names and the Kubernetes API."""
    api = {"ports": [{"protocol": "TCP", "port": port} for port in (443, 6443)]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(deployment) | {"name": f"{deployment.name}-launcher"},
        "spec": {
            "podSelector": {"matchLabels": _launcher_labels(deployment)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [pods.DNS, api],
        },
    }


def _content(deployment: Deployment) -> dict[str, str]:
    """The config as it was written, the files that it names, and what the launcher is to do."""
    named = {f"file-{number}": text for number, text in enumerate(deployment.files.values())}
    return {"config.yaml": deployment.text, **named, "launch.yaml": _yaml(_launch(deployment))}


def _launch(deployment: Deployment) -> Manifest:
    """What the launcher reads: the objects to create, with a stand-in for their name, and its limits."""
    config, settings = deployment.config, deployment.settings
    template = pods.ClusterTemplate(pods.JOB_NAME, deployment.namespace, deployment.name, deployment.workers, settings)
    there = f"{{kind: address, address: {template.address}, workers: {deployment.workers}, timeout: {READY_SECONDS}}}"
    arguments = ["run", f"{pods.AUDIT}/{config.name}.yaml"]
    for override in (*deployment.options.overrides, f"cluster={there}"):
        arguments += ["--set", override.replace("$(", "$$(")]  # Kubernetes would replace it
    items = [{"key": "config.yaml", "path": f"{config.name}.yaml"}]
    items += [{"key": f"file-{number}", "path": path} for number, path in enumerate(deployment.files)]
    files = {"configMap": {"name": deployment.name, "items": items}}
    job = pods.dask_job(template, deployment.variables.worker, deployment.variables.runner, arguments, files)
    limits = {
        "deadline": settings.deadline,
        "ready": READY_SECONDS,
        "retries": settings.retries,
        "keep": settings.keep,
    }
    return {**limits, "job": job, **({"autoscaler": pods.autoscaler(template)} if settings.adaptive else {})}


def _job_spec(deployment: Deployment) -> Manifest:
    """A Job whose pod may be moved: its successor follows the same DaskJob. An audit's own exit code is final."""
    launcher = pods.ContainerTemplate(
        "launcher",
        ["dit", "launch", f"{LAUNCH}/launch.yaml", "--owner", "$(JOB_NAME)/$(JOB_UID)"],
        LAUNCHER_RESOURCES,
        volumes=[
            {"name": "launch", "configMap": {"name": deployment.name, "items": [{"key": "launch.yaml", "path": "launch.yaml"}]}}
        ],
        mounts=[{"name": "launch", "mountPath": LAUNCH, "readOnly": True}],
    )
    spec = pods.pod_spec(deployment.settings, launcher, dask=False)
    for name, label in (("JOB_NAME", "job-name"), ("JOB_UID", "controller-uid")):
        field = {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}
        spec["containers"][0]["env"].append({"name": name, "valueFrom": field})
    spec |= {"restartPolicy": "Never", "serviceAccountName": deployment.name, "automountServiceAccountToken": True}
    moved = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes = {"containerName": "launcher", "operator": "In", "values": [1, 2]}
    final = {"action": "FailJob", "onExitCodes": codes, "onPodConditions": []}  # 1.28 wants the key even where it is empty
    return {
        "activeDeadlineSeconds": deployment.settings.deadline + READY_SECONDS,
        "backoffLimit": 3,
        "podFailurePolicy": {"rules": [moved, final]},
        "template": {"metadata": {"labels": _launcher_labels(deployment)}, "spec": spec},
    }


def _once(deployment: Deployment) -> Manifest:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _meta(deployment), "spec": _job_spec(deployment)}


def _scheduled(deployment: Deployment) -> Manifest:
    """Never two at a time; a start that was missed for an hour is left out."""
    keep, zone = deployment.settings.keep, deployment.options.time_zone
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": _meta(deployment),
        "spec": {
            "schedule": deployment.options.schedule,
            **({"timeZone": zone} if zone else {}),
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": keep,
            "failedJobsHistoryLimit": keep,
            "jobTemplate": {"spec": _job_spec(deployment)},
        },
    }


def _header(deployment: Deployment) -> str:
    """Say what must be there already."""
    settings = deployment.settings
    names = deployment.variables.runner
    lines = [f"# Audit {deployment.config.name}, made by `dit deploy`. Needed beforehand: the Dask operator"]
    lines += [f"# - Secret {settings.secret} with the keys {', '.join(names)}"] if names else []
    lines += [f"# - Secret {name}" for name in settings.env_from]
    lines += [f"# - Secret {settings.tls_secret} with ca.crt, tls.crt and tls.key"] if settings.tls_secret else []
    lines += (
        [] if settings.tls_secret else ["# Without cluster.kubernetes.tls_secret only the NetworkPolicy guards the scheduler"]
    )
    return "\n".join(lines) + "\n"


def _yaml(value: Manifest) -> str:
    """Plain YAML without aliases, keys in the order given, texts of several lines as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    dumped: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, width=120, allow_unicode=True)
    return dumped
