"""Manifests of deployed audits: valid, narrow, free of secrets; and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from dit_dask.cluster.kubernetes import objects as pods
from dit_dask.config import cluster as cluster_spec
from dit_dask.deployment import manifests as deploy
from dit_dask.deployment.manifests import DeployOptions
from dit_dask.errors import InputError
from tests.conftest import CONFIG, ROOT
from tests.unit import kubernetes_schemas

IMAGE = "registry.example.org/dit:0.1.0"
S3_AUDIT = ROOT / "configs" / "s3-audit.yaml"
RICH = """
cluster:
  kind: kubernetes
  workers: 4
  tls: {ca: here/ca.crt, cert: here/me.crt, key: here/me.key}
  kubernetes:
    image: registry.example.org/dit:0.1.0
    namespace: audits
    adaptive: {minimum: 2, maximum: 8}
    resources: {worker: {cpu: "2", memory: 4Gi}}
    tolerations: [{key: audits, operator: Exists, effect: NoSchedule}, {key: spot, operator: Equal, value: "yes"}]
    node_selector: {disk: fast}
    env_from: [cloud-credentials]
    service_account: audit-identity
    image_pull_secrets: [registry]
    tls_secret: audit-tls
"""


@pytest.fixture
def rich(people: Path) -> Path:
    """A config with every option, a hierarchy in a folder and a matrix."""
    folder = people.parent
    (folder / "trees").mkdir()
    (folder / "town.csv").rename(folder / "trees" / "town.csv")
    (folder / "ground.csv").write_text("a matrix")
    text = CONFIG.replace("cluster: {workers: 1}\n", "").replace("source: people.csv", "source: 's3://in/people.csv'")
    text = text.replace("hierarchy: town.csv", "hierarchy: trees/town.csv")
    text = text.replace("sanitizer: raw", "sanitizer: raw\n    distance: {name: wasserstein, ground: [ground.csv, ordered]}")
    path = folder / "People.K.yaml"
    path.write_text(text.replace("name: people\n", "") + "output: 's3://out/'\n" + RICH, "utf-8")
    return path


def documents(path: Path, **options: Any) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(deploy.manifests(str(path), DeployOptions(**options))))


def only(kind: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = [one for one in found if one["kind"] == kind]
    return one


def launched(found: list[dict[str, Any]]) -> dict[str, Any]:
    return yaml.safe_load(only("ConfigMap", found)["data"]["launch.yaml"])


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """All pod specs anywhere in a document."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for item in value.values():
            yield from pod_specs(item)
    elif isinstance(value, list):
        for item in value:
            yield from pod_specs(item)


@pytest.mark.parametrize("schedule", [None, "0 3 * * *"])
@pytest.mark.parametrize("which", ["s3-audit", "rich"])
def test_every_object_is_valid_and_nothing_is_unknown(which: str, schedule: str | None, rich: Path) -> None:
    path = rich if which == "rich" else S3_AUDIT
    zone = "Europe/Paris" if schedule else None
    found = documents(path, image=IMAGE, secret="bucket", schedule=schedule, time_zone=zone)
    launch = launched(found)
    for manifest in [*found, launch["job"], *([launch["autoscaler"]] if which == "rich" else [])]:
        kubernetes_schemas.check(manifest)
    kinds = [one["kind"] for one in found]
    policies = ["NetworkPolicy", "NetworkPolicy"]
    assert kinds == ["ServiceAccount", "Role", "RoleBinding", *policies, "ConfigMap", "CronJob" if schedule else "Job"]


def test_the_schemas_refuse_what_they_do_not_know() -> None:
    job = launched(documents(S3_AUDIT, image=IMAGE, secret="bucket"))["job"]
    job["spec"]["job"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    with pytest.raises(jsonschema.ValidationError, match="imagePullPolice"):
        kubernetes_schemas.check(job)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}, "automount": False}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_schemas.check(account)


def test_a_dask_cluster_from_outside_is_valid_too(rich: Path) -> None:
    settings = deploy.prepare(str(rich), DeployOptions(secret="bucket")).settings
    for changed in ({}, {"adaptive": None, "tls_secret": None, "env_from": []}):
        shape = pods.ClusterTemplate("dit-1", "audits", "dit-1", 3, replace(settings, **changed))
        kubernetes_schemas.check(pods.dask_cluster(shape, ["S3_KEY"], 600))
        kubernetes_schemas.check(pods.network_policy("dit-1", "audits", "dit-1", settings))


def test_a_schedule_runs_one_audit_at_a_time_and_forgets_old_ones() -> None:
    spec = only("CronJob", documents(S3_AUDIT, image=IMAGE, secret="bucket", schedule="0 3 * * *", time_zone="Europe/Paris"))[
        "spec"
    ]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("0 3 * * *", "Europe/Paris", "Forbid")
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 3)
    assert spec["startingDeadlineSeconds"] == 3600
    assert (
        spec["jobTemplate"]["spec"]["activeDeadlineSeconds"]
        > launched(documents(S3_AUDIT, image=IMAGE, secret="s"))["deadline"]
    )


def test_every_pod_is_locked_down(rich: Path) -> None:
    found = documents(rich, schedule="@daily")
    specs = [*pod_specs(found), *pod_specs(launched(found))]
    assert len(specs) == 4
    for spec in specs:
        assert spec["securityContext"] == {
            "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert container["image"] == IMAGE
        assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
        assert {"name": "scratch", "mountPath": "/scratch"} in container["volumeMounts"]
        assert spec["tolerations"][0] == {"key": "audits", "operator": "Exists", "effect": "NoSchedule"}
        assert spec["nodeSelector"] == {"disk": "fast"}
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        is_launcher = container["name"] == "launcher"
        assert spec["automountServiceAccountToken"] is is_launcher
        assert spec["serviceAccountName"] == ("people-k" if is_launcher else "audit-identity")


def test_the_role_is_as_narrow_as_the_launcher_is(rich: Path) -> None:
    plain = only("Role", documents(S3_AUDIT, image=IMAGE, secret="bucket"))["rules"]
    allowed = {
        (group, resource): rule["verbs"] for rule in plain for group in rule["apiGroups"] for resource in rule["resources"]
    }
    assert allowed == {("kubernetes.dask.org", "daskjobs"): ["create", "get", "list", "delete"], ("", "pods"): ["list"]}
    more = only("Role", documents(rich))["rules"][2:]
    assert more == [{"apiGroups": ["kubernetes.dask.org"], "resources": ["daskautoscalers"], "verbs": ["create"]}]


def test_the_scheduler_is_reached_by_its_own_pods_and_the_operators_http_only() -> None:
    found = documents(S3_AUDIT, image=IMAGE, secret="bucket", name="nightly")
    policy = next(one for one in found if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == "nightly")["spec"]
    labels = launched(found)["job"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["ingress"][0] == {"from": [{"podSelector": {"matchLabels": labels}}]}
    operator = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dask-operator"}}}
    assert policy["ingress"][1:] == [{"from": [operator], "ports": [{"protocol": "TCP", "port": 8787}]}]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    launcher = next(one for one in found if one["metadata"]["name"] == "nightly-launcher")["spec"]
    assert launcher["ingress"] == []
    template = only("Job", found)["spec"]["template"]["metadata"]["labels"]
    assert launcher["podSelector"]["matchLabels"] == template
    assert not labels.items() <= template.items()  # the launcher may not reach the scheduler


def test_secrets_are_references_and_only_where_they_are_needed() -> None:
    found = documents(S3_AUDIT, image=IMAGE, secret="bucket")
    job = launched(found)["job"]["spec"]
    wanted = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "bucket", "key": name}}}
        for name in ("S3_ENDPOINT", "S3_KEY", "S3_SECRET")
    ]

    def secret(spec: dict[str, Any]) -> list[Any]:
        return [one for one in spec["containers"][0]["env"] if "secretKeyRef" in one.get("valueFrom", {})]

    assert secret(job["job"]["spec"]) == secret(job["cluster"]["spec"]["worker"]["spec"]) == wanted
    assert secret(job["cluster"]["spec"]["scheduler"]["spec"]) == []
    assert secret(only("Job", found)["spec"]["template"]["spec"]) == []


def test_tls_reaches_every_dask_process(rich: Path) -> None:
    job = launched(documents(rich))["job"]["spec"]
    scheduler, worker, runner = (
        job["cluster"]["spec"]["scheduler"]["spec"],
        job["cluster"]["spec"]["worker"]["spec"],
        job["job"]["spec"],
    )
    for spec in (scheduler, worker, runner):
        environment = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
        assert environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        assert environment["DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"] == "/etc/dit/tls/tls.key"
        assert {"name": "tls", "secret": {"secretName": "audit-tls", "defaultMode": 0o440}} in spec["volumes"]
        assert {"secretRef": {"name": "cloud-credentials"}} in spec["containers"][0]["envFrom"]
    address = "tls://JOB-NAME-scheduler.audits.svc:8786"
    assert address in {one.get("value") for one in worker["containers"][0]["env"]}
    assert f"cluster={{kind: address, address: {address}, workers: 8, timeout: 300}}" in runner["containers"][0]["args"]
    assert scheduler["containers"][0]["args"][4:6] == ["--protocol", "tls"]


def test_the_runner_reads_the_config_as_it_was_written_with_its_files_beside_it(rich: Path, tmp_path: Path) -> None:
    found = documents(rich, overrides=("seed=4", "data.missing=['$(HOME)']"))
    data = only("ConfigMap", found)["data"]
    assert data["config.yaml"] == rich.read_text("utf-8")
    runner = launched(found)["job"]["spec"]["job"]["spec"]
    (volume,) = [one for one in runner["volumes"] if one["name"] == "audit"]
    folder = tmp_path / "mounted"
    for item in volume["configMap"]["items"]:
        (folder / item["path"]).parent.mkdir(parents=True, exist_ok=True)
        (folder / item["path"]).write_text(data[item["key"]], "utf-8")
    assert sorted(str(one.relative_to(folder)) for one in folder.rglob("*.*")) == [
        "People.K.yaml",
        "ground.csv",
        "trees/town.csv",
    ]
    assert (folder / "trees" / "town.csv").read_text() == (rich.parent / "trees" / "town.csv").read_text()
    arguments = runner["containers"][0]["args"]
    assert arguments[:3] == ["dit", "run", "/etc/dit/audit/People.K.yaml"]
    assert arguments[3:7] == ["--set", "seed=4", "--set", "data.missing=['$$(HOME)']"]


def test_mappings_and_groupings_travel_too(config_file: Path) -> None:
    document = yaml.safe_load(config_file.read_text())
    document["tests"] = [{"sanitizer": {"name": "python", "target": "mine:f", "mapping": "words.csv"}}]
    grouped = {"hierarchy": "illness.csv", "level": 1}
    document["measures"] = [{"name": "discrimination", "target": "illness", "keys": ["town"], "semantic": grouped}]
    document["output"] = "s3://audits/nightly"
    document["data"] = {"source": "s3://in/people.csv"}
    config_file.write_text(yaml.safe_dump(document))
    for name in ("words.csv", "illness.csv"):
        (config_file.parent / name).write_text(f"{name};x;*\n")
    data = only("ConfigMap", documents(config_file, image=IMAGE))["data"]
    assert {"words.csv;x;*\n", "illness.csv;x;*\n"} <= set(data.values())


def test_storage_on_other_ports_can_be_reached(people: Path, tmp_path: Path) -> None:
    text = S3_AUDIT.read_text().replace('"${S3_ENDPOINT}"', '"http://minio.storage.svc:9000"')
    (tmp_path / "minio.yaml").write_text(text)
    policy = documents(tmp_path / "minio.yaml", image=IMAGE, secret="bucket")[3]["spec"]
    assert policy["egress"][2] == {"ports": [{"protocol": "TCP", "port": port} for port in (443, 9000)]}


def test_deploying_needs_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("S3_KEY", "S3_SECRET", "S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    printed = deploy.manifests(str(S3_AUDIT), DeployOptions(IMAGE, secret="bucket"))
    assert "# - Secret bucket with the keys S3_ENDPOINT, S3_KEY, S3_SECRET" in printed


def test_names_stay_short_enough_for_what_the_operator_adds() -> None:
    longest = "a" * deploy.MOST_NAME
    assert len(f"{longest}-1116030000-ab12-scheduler") == 63
    assert documents(S3_AUDIT, image=IMAGE, secret="bucket", name=longest)[0]["metadata"]["name"] == longest


REFUSED = {
    "no image": ({"image": None}, "--image is missing"),
    "image without tag": ({"image": "dit"}, "--image must be an image with a tag other than latest, or a digest"),
    "bad schedule": ({"schedule": "0 3 * *"}, "--schedule must be five fields"),
    "zone alone": ({"time_zone": "Europe/Paris"}, "--time-zone goes with --schedule"),
    "bad zone": ({"schedule": "@daily", "time_zone": "Mars"}, "--time-zone must be"),
    "bad namespace": ({"namespace": "My_Space"}, "--namespace must be a Kubernetes name"),
    "bad name": ({"name": "Night"}, "--name must be a Kubernetes name"),
    "long name": ({"name": "n" * 38}, "--name must have at most 37 characters"),
    "no secret": ({"secret": None}, "--secret is missing: which Secret holds ${S3_ENDPOINT}, ${S3_KEY}, ${S3_SECRET}?"),
    "bad secret": ({"secret": "a b"}, "--secret must be the name of a Kubernetes object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_wishes_are_one_line(case: str) -> None:
    options, said = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        deploy.manifests(str(S3_AUDIT), DeployOptions(**{"image": IMAGE, "secret": "bucket"} | options))
    assert "\n" not in str(caught.value)


BAD = {
    "local data": ("source: s3://incoming/people/*.parquet", "source: people.csv", "data.source: pods cannot reach"),
    "local output": ("url: s3://audits/", "url: runs/", "output: pods cannot reach"),
    "memory output": ("url: s3://audits/", "url: memory://runs", "output: memory:// ends with the pod"),
    "password in a url": ("s3://incoming/people", "s3://me:word@incoming/people", "data.source: a URL with a password"),
    "literal secret": ('key: "${S3_KEY}"', "key: AKIA123", "data.storage_options.key must be a reference such as ${NAME}"),
    "nested secret": (
        'endpoint_url: "${S3_ENDPOINT}"',
        "client_kwargs: {aws_session_token: abc}",
        "data.storage_options.client_kwargs.aws_session_token must be a reference",
    ),
    "file elsewhere": ("dit://hierarchies/adult-education.csv", "../education.csv", "takes along only files of its own folder"),
    "absolute file": (
        "dit://hierarchies/adult-education.csv",
        "/etc/education.csv",
        "takes along only files of its own folder",
    ),
    "missing file": ("dit://hierarchies/adult-education.csv", "nowhere.csv", "cannot read nowhere.csv: not found"),
    "wrong test": ("k: 5", "k: 1", "tests[0].sanitizer.k must be an integer >= 2"),
    "wrong gate": ("delta <= 1.0", "delta", "gates[0] must be NAME OP NUMBER"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_would_fail_in_the_cluster_is_refused_here(case: str, tmp_path: Path) -> None:
    old, new, said = BAD[case]
    text = S3_AUDIT.read_text()
    assert old in text
    (tmp_path / "audit.yaml").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        deploy.manifests(str(tmp_path / "audit.yaml"), DeployOptions(IMAGE, secret="bucket"))
    assert "\n" not in str(caught.value)
    assert "AKIA123" not in str(caught.value)


def test_an_option_cannot_hide_a_secret_that_the_file_shows(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(S3_AUDIT.read_text().replace('secret: "${S3_SECRET}"', "secret: hidden", 1))
    options = DeployOptions(IMAGE, secret="bucket", overrides=("data.storage_options.secret=${S3_SECRET}",))
    with pytest.raises(InputError, match=r"data\.storage_options\.secret must be a reference"):
        deploy.manifests(str(tmp_path / "audit.yaml"), options)


def test_hierarchies_too_large_for_kubernetes_are_refused(rich: Path) -> None:
    (rich.parent / "ground.csv").write_text("x" * 1_100_000)
    with pytest.raises(InputError, match=r"at most 1,000,000 fit: use URLs for them"):
        deploy.manifests(str(rich), DeployOptions())


def test_memory_of_the_config_is_what_workers_are_told(rich: Path) -> None:
    worker = launched(documents(rich))["job"]["spec"]["cluster"]["spec"]["worker"]
    arguments = worker["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--memory-limit") + 1] == str(cluster_spec.memory_bytes("4Gi"))
    assert worker["replicas"] == 2


SOMEWHERE = """
version: 1
name: nightly
data: {source: {latest: "s3://in/people-*.csv"}}
schema: {quasi_identifiers: {age: {kind: numeric}}, sensitive: illness}
tests:
  - sanitizer: {name: precomputed, full: "s3://p/full.csv", without: "s3://p/{record}.csv", storage_options: %s}
  - sanitizer: {name: command, argv: [tool, "{input}", "{output}"], env: %s}
measures:
  - {name: accuracy, synthetic: {source: "s3://s/synthetic.csv", storage_options: %s}}
output: s3://out/
"""


def somewhere(folder: Path, *, sanitizer: str = "{}", env: str = "{}", measure: str = "{}") -> Path:
    path = folder / "nightly.yaml"
    path.write_text(SOMEWHERE % (sanitizer, env, measure), "utf-8")
    return path


def test_the_newest_file_of_a_bucket_can_be_audited_on_a_schedule(tmp_path: Path) -> None:
    found = documents(somewhere(tmp_path), image=IMAGE, schedule="0 3 * * *")
    assert only("CronJob", found)["spec"]["schedule"] == "0 3 * * *"
    assert "latest" in only("ConfigMap", found)["data"]["config.yaml"]


def test_variables_of_tests_reach_workers_and_those_of_measures_the_runner(tmp_path: Path) -> None:
    path = somewhere(tmp_path, sanitizer="{key: '${PRE_KEY}'}", measure="{key: '${SYN_KEY}'}")
    with pytest.raises(InputError, match=re.escape("which Secret holds ${PRE_KEY}, ${SYN_KEY}?")):
        documents(path, image=IMAGE)
    job = launched(documents(path, image=IMAGE, secret="bucket"))["job"]
    by_container = {
        container["name"]: {entry["name"] for entry in container["env"] if "valueFrom" in entry}
        for spec in pod_specs(job)
        for container in spec["containers"]
    }
    assert by_container["worker"] == {"PRE_KEY"}
    assert by_container["runner"] == {"PRE_KEY", "SYN_KEY"}


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ({"sanitizer": "{secret: hunter2}"}, "tests[0].sanitizer.storage_options.secret"),
        ({"sanitizer": "{client_kwargs: {auth: [{token: hunter2}]}}"}, "tests[0].sanitizer.storage_options.client_kwargs"),
        ({"env": "{API_TOKEN: hunter2}"}, "tests[1].sanitizer.env.API_TOKEN"),
        ({"measure": "{password: hunter2}"}, "measures[0].synthetic.storage_options.password"),
    ],
)
def test_a_literal_secret_is_refused_wherever_it_is(place: dict[str, str], where: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(where)) as refused:
        documents(somewhere(tmp_path, **place), image=IMAGE, secret="bucket")
    assert "hunter2" not in str(refused.value)
