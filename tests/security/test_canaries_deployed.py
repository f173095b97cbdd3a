"""What `dit deploy` sends: a literal secret is refused with its place and never shown, a reference reaches its pod."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask.deployment import manifests
from dit_dask.deployment.manifests import DeployOptions
from dit_dask.errors import InputError
from dit_dask.storage.redaction import public_url

SECRET = "zq00xk7"
SPEED = "tests[1].sanitizer.env.SPEED"
OPEN: dict[str, Any] = {
    "version": 1,
    "name": "nightly",
    "data": {
        "source": "s3://in/people.csv",
        "storage_options": {
            "key": "${DATA_KEY}",
            "endpoint_url": "http://minio:9000",
            "client_kwargs": {"region_name": "us-east-1", "headers": {"Authorization": "${DATA_HEADER}"}},
        },
    },
    "schema": {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"},
    "tests": [
        {
            "sanitizer": {
                "name": "precomputed",
                "full": "s3://p/full.csv",
                "without": "s3://p/{record}.csv",
                "storage_options": {"key": "${PRE_KEY}", "list": [{"secret": "${PRE_LIST}"}]},
            }
        },
        {
            "sanitizer": {
                "name": "command",
                "argv": [
                    "/opt/tool2/python3",
                    "-m",
                    "dit_dask.adapters",
                    "{input}",
                    "{output}",
                    "--width",
                    "10",
                    "--column",
                    "age2",
                ],
                "env": {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "SPEED": "fast"},
            }
        },
        {"sanitizer": {"name": "python", "target": "m:f", "params": {"k": 5, "columns": ["zip5code"], "strategy": "quantile"}}},
    ],
    "measures": [{"name": "accuracy", "synthetic": {"source": "s3://s/s.csv", "storage_options": {"key": "${SYN_KEY}"}}}],
    "output": {"url": "s3://out/", "storage_options": {"key": "${OUT_KEY}"}},
}
Place = tuple[Any, ...]
SANITIZERS = {index: ("tests", index, "sanitizer") for index in range(3)}
LITERALS: dict[str, tuple[Place, Any, str]] = {
    "an option": (("data", "storage_options", "key"), SECRET, "data.storage_options.key"),
    "a bearer header": (
        ("data", "storage_options", "client_kwargs"),
        {"headers": {"X-Anything": f"Bearer {SECRET}"}},
        "data.storage_options.client_kwargs.headers.X-Anything",
    ),
    "a header": (
        ("data", "storage_options", "client_kwargs"),
        {"headers": {"Authorization": SECRET}},
        "data.storage_options.client_kwargs.headers.Authorization",
    ),
    "an item of a list": (
        ("data", "storage_options", "args"),
        [{"tokens": ["${A}", SECRET]}],
        "data.storage_options.args[0].tokens[1]",
    ),
    "an option without a telling name": (("data", "storage_options", "x"), [[SECRET]], "data.storage_options.x[0][0]"),
    "a pin": (("data", "storage_options", "passcode"), 123456, "data.storage_options.passcode"),
    "options of a release": (
        (*SANITIZERS[0], "storage_options", "secret"),
        SECRET,
        "tests[0].sanitizer.storage_options.secret",
    ),
    "the environment": ((*SANITIZERS[1], "env", "API_TOKEN"), SECRET, "tests[1].sanitizer.env.API_TOKEN"),
    "a variable without a telling name": ((*SANITIZERS[1], "env", "X"), SECRET, "tests[1].sanitizer.env.X"),
    "an argument after a flag": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", "--password", "swordfish"],
        "tests[1].sanitizer.argv[4]",
    ),
    "an assigned argument": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", "--db-password=swordfish"],
        "tests[1].sanitizer.argv[3]",
    ),
    "an argument": ((*SANITIZERS[1], "argv"), ["tool", "{input}", "{output}", SECRET], "tests[1].sanitizer.argv[3]"),
    "a chained URL in an argument": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", f"simplecache::http://u:{SECRET}@h/x"],
        "tests[1].sanitizer.argv[3]",
    ),
    "a plain word without a telling name": ((*SANITIZERS[2], "params", "word"), "swordfish", "tests[2].sanitizer.params.word"),
    "a plain word among arguments": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", "swordfish"],
        "tests[1].sanitizer.argv[3]",
    ),
    "a plain word joined to a flag": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", "-pfish"],
        "tests[1].sanitizer.argv[3]",
    ),
    "a key that looks like a path": (
        (*SANITIZERS[1], "argv"),
        ["tool", "{input}", "{output}", "/bPxRfiCYzq00xk7EXAMPLEKEYxyz/wJalrXUtnFEMI"],
        "tests[1].sanitizer.argv[3]",
    ),
    "an option that is a plain word": (("data", "storage_options", "user"), "swordfish", "data.storage_options.user"),
    "a parameter": ((*SANITIZERS[2], "params", "password"), "swordfish", "tests[2].sanitizer.params.password"),
    "a nested parameter": (
        (*SANITIZERS[2], "params", "login"),
        [{"name": "me", "token": SECRET}],
        "tests[2].sanitizer.params.login[0].token",
    ),
    "a URL in a parameter": (
        (*SANITIZERS[2], "params", "db"),
        f"postgres://me:{SECRET}@db/x",
        "tests[2].sanitizer.params.db",
    ),
    "options of a measure": (
        ("measures", 0, "synthetic", "storage_options", "token"),
        SECRET,
        "measures[0].synthetic.storage_options.token",
    ),
    "options of the output": (("output", "storage_options", "key"), SECRET, "output.storage_options.key"),
    "a password in the source": (("data", "source"), f"https://me:{SECRET}@h/people.csv", "data.source"),
    "a signature in a pointer": (("data", "source"), {"latest": f"https://h/latest?sig={SECRET}"}, "data.source.latest"),
    "a chained source": (("data", "source"), f"simplecache::https://me:{SECRET}@h/people.csv", "data.source"),
    "a hierarchy": (
        ("schema", "quasi_identifiers", "town"),
        {"kind": "categorical", "hierarchy": f"https://h/t.csv?sig={SECRET}"},
        "schema.quasi_identifiers.town.hierarchy",
    ),
    "a release": ((*SANITIZERS[0], "full"), f"https://me:{SECRET}@h/full.csv", "tests[0].sanitizer.full"),
    "a mapping": ((*SANITIZERS[2], "mapping"), f"https://h/m.csv?sig={SECRET}", "tests[2].sanitizer.mapping"),
    "a cache": ((*SANITIZERS[2], "cache"), f"https://me:{SECRET}@h/cache", "tests[2].sanitizer.cache"),
    "the output": (("output", "url"), f"https://me:{SECRET}@h/out", "output.url"),
}


def changed(place: Place, value: Any) -> dict[str, Any]:
    """A copy of the config with another value at a place."""
    document = copy.deepcopy(OPEN)
    target: Any = document
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return document


def deploy(folder: Path, document: Any, *overrides: str, allowed: Sequence[str] = (SPEED,)) -> str:
    """Print the manifests of a config."""
    path = folder / "nightly.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document), "utf-8")
    options = DeployOptions("registry.example/dit:1", secret="bucket", overrides=overrides, allowed_literals=allowed)
    return manifests.manifests(str(path), options)


@pytest.mark.parametrize("case", LITERALS)
def test_a_literal_secret_never_reaches_a_config_map(case: str, tmp_path: Path) -> None:
    place, value, where = LITERALS[case]
    with pytest.raises(InputError) as refused:
        deploy(tmp_path, changed(place, value))
    message = str(refused.value)
    assert message.startswith(where)
    assert not any(secret in message for secret in (SECRET, "swordfish", "123456"))


@pytest.mark.parametrize(
    "overrides",
    [
        [f"data.storage_options.key={SECRET}"],
        [f"data.storage_options.key={SECRET}", "data.storage_options.key=${DATA_KEY}"],
        [f"tests[1].sanitizer.argv=[tool, '{{input}}', '{{output}}', --password, {SECRET}]"],
        [f"output=https://me:{SECRET}@h/out", "output=s3://out"],
    ],
)
def test_a_secret_in_an_override_never_reaches_the_arguments_of_a_pod(overrides: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        deploy(tmp_path, OPEN, *overrides)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "comment", ["# before: https://me:zq00xk7@h/x", "# export S3_SECRET=zq00xk7", "# Authorization: Bearer zq00xk7"]
)
def test_a_secret_in_a_comment_never_reaches_a_config_map(comment: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^line 1 of the config has a comment") as refused:
        deploy(tmp_path, f"{comment}\n{yaml.safe_dump(OPEN)}")
    assert SECRET not in str(refused.value)


def test_references_reach_the_pods_that_look_them_up_and_ordinary_parameters_are_sent(tmp_path: Path) -> None:
    found = list(yaml.safe_load_all(deploy(tmp_path, OPEN)))
    (launch,) = [yaml.safe_load(one["data"]["launch.yaml"]) for one in found if one["kind"] == "ConfigMap"]
    spec = launch["job"]["spec"]
    by_pod = {
        name: {entry["name"] for entry in pod["containers"][0]["env"] if "secretKeyRef" in entry.get("valueFrom", {})}
        for name, pod in {
            "runner": spec["job"]["spec"],
            "worker": spec["cluster"]["spec"]["worker"]["spec"],
            "scheduler": spec["cluster"]["spec"]["scheduler"]["spec"],
        }.items()
    }
    assert by_pod["worker"] == {"PRE_KEY", "PRE_LIST", "OUT_KEY"}
    assert by_pod["runner"] == {"PRE_KEY", "PRE_LIST", "OUT_KEY", "SYN_KEY", "DATA_KEY", "DATA_HEADER"}
    assert by_pod["scheduler"] == set()


def test_what_is_no_secret_is_sent_once_its_place_is_named(tmp_path: Path) -> None:
    document = changed((*SANITIZERS[2], "params", "word"), "harmless")
    word = "tests[2].sanitizer.params.word"
    with pytest.raises(InputError, match="and 1 more values") as refused:
        deploy(tmp_path, document, allowed=())
    assert str(refused.value).endswith(f"(if there is no secret: --allow-literal '{SPEED}' --allow-literal '{word}')")
    assert "harmless" in deploy(tmp_path, document, allowed=(SPEED, word))
    with pytest.raises(InputError, match=r"--allow-literal: there is nothing to allow at 'tests\[7\]'"):
        deploy(tmp_path, document, allowed=(SPEED, word, "tests[7]"))
    query = changed(("data", "source"), "https://host/people.csv?version=3")
    assert "version=3" in deploy(tmp_path, query, allowed=(SPEED, "data.source"))


@pytest.mark.parametrize(
    "params",
    [{"model": "ctgan"}, {"columns": ["zip code"], "kernel": "rbf"}, {"hierarchy": "trees/town.csv", "k": 5, "deep": True}],
)
def test_harmless_parameters_need_no_permission(params: dict[str, Any], tmp_path: Path) -> None:
    assert deploy(tmp_path, changed((*SANITIZERS[2], "params"), params))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("abfs://people@account.dfs.core.windows.net/x.csv", "abfs://people@account.dfs.core.windows.net/x.csv"),
        ("simplecache::abfss://people@account/x.csv", "simplecache::abfss://people@account/x.csv"),
        (f"abfs://me:{SECRET}@account/x.csv", "abfs://account/x.csv"),
        (f"https://{SECRET}@host/x.csv", "https://host/x.csv"),
        (f"xabfs://{SECRET}@host/x.csv", "xabfs://host/x.csv"),
    ],
)
def test_a_container_of_azure_stays_in_a_url_and_a_user_does_not(url: str, shown: str) -> None:
    assert public_url(url) == shown
