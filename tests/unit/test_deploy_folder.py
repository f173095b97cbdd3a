"""What deploy/ holds is current, linted, and free of logic."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask.cli import main
from dit_dask.cluster.kubernetes import objects as pods
from tests.conftest import ROOT
from tests.unit import kubernetes_schemas

DEPLOY = ROOT / "deploy"
COMMANDS = re.findall(
    r"^    dit (deploy .*) > (deploy/kubernetes/\S+)$", (DEPLOY / "README.md").read_text("utf-8"), re.MULTILINE
)


def test_every_example_has_its_command() -> None:
    assert {Path(target).name for _, target in COMMANDS} == {path.name for path in (DEPLOY / "kubernetes").iterdir()}


@pytest.mark.parametrize(("command", "target"), COMMANDS)
def test_the_examples_are_what_dit_deploy_prints(
    command: str, target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == Path(target).read_text("utf-8"), f"run again: dit {command} > {target}"


def tool(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    path = Path(sys.executable).with_name(name)
    return subprocess.run([str(path), *map(str, words)], capture_output=True, text=True, check=False)


def test_the_dockerfile_is_clean() -> None:
    linted = tool("hadolint", "--failure-threshold", "info", DEPLOY / "Dockerfile")
    assert linted.returncode == 0, linted.stdout


def test_the_image_has_no_root_and_pins_everything() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert f"USER {pods.USER}:{pods.USER}" in text
    assert re.search(r"^ARG BASE=python:\d+\.\d+\.\d+-slim-\w+$", text, re.MULTILINE)
    assert text.count("FROM ${BASE}") == 2
    assert "--constraint constraints.txt" in text
    assert 'CMD ["dit", "--version"]' in text
    assert not re.search(r"^(ENTRYPOINT|ADD)", text, re.MULTILINE)  # pods name their whole command


def test_the_operators_chart_takes_our_values() -> None:
    rendered = tool(
        "helm", "template", "dask-operator", kubernetes_schemas.CHART, "--namespace", "dask-operator",
        "--values", DEPLOY / "operator-values.yaml",
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr
    found: list[dict[str, Any]] = [one for one in yaml.safe_load_all(rendered.stdout) if one]
    for manifest in found:
        kubernetes_schemas.check(manifest)
    (operator,) = [one for one in found if one["kind"] == "Deployment"]
    spec = operator["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    values = yaml.safe_load((DEPLOY / "operator-values.yaml").read_text("utf-8"))
    assert container["image"].endswith(":2026.3.0")
    assert container["securityContext"] == values["securityContext"]
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert container["resources"] == values["resources"]
    assert {one["name"] for one in spec["volumes"]} == {one["name"] for one in container["volumeMounts"]}


def test_our_values_are_values_of_the_chart() -> None:
    known = yaml.safe_load((kubernetes_schemas.CHART / "values.yaml").read_text("utf-8"))
    assert set(yaml.safe_load((DEPLOY / "operator-values.yaml").read_text("utf-8"))) <= set(known)


def test_the_compose_cluster_speaks_only_tls_and_listens_only_here() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    services = yaml.safe_load(text)["services"]
    assert "tcp://" not in text
    assert set(services) == {"scheduler", "worker"}
    for service in services.values():
        assert service["environment"]["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert services["scheduler"]["ports"]
    assert services["worker"]["command"][2] == "tls://scheduler:8786"


def test_deploy_holds_no_code() -> None:
    kinds = {path.suffix for path in DEPLOY.rglob("*") if path.is_file()}
    assert kinds <= {".yaml", ".md", "", ".dockerignore"}
