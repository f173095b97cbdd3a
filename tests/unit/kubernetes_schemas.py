"""Kubernetes objects held against their schemas, with unknown fields refused."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

VERSIONS = ("1.28", "1.34")  # from the oldest that is still around to a recent one
CHART = Path(str(files("dask_kubernetes"))) / "operator" / "deployment" / "helm" / "dask-kubernetes-operator"


def check(manifest: dict[str, Any]) -> None:
    """Raise where a manifest is not what a server expects."""
    if manifest["apiVersion"].startswith("kubernetes.dask.org/"):
        custom(manifest["kind"].lower()).validate(manifest)
        return
    for version in VERSIONS:
        kubernetes_validate.validate(manifest, version, strict=True)


@cache
def custom(name: str) -> jsonschema.Draft202012Validator:
    """The operator's own definition of a kind."""
    text = (CHART / "crds" / f"{name}.yaml").read_text("utf-8")
    definition = yaml.load(text, Loader=yaml.CSafeLoader)  # megabytes
    (version,) = definition["spec"]["versions"]
    schema: dict[str, Any] = closed(version["schema"]["openAPIV3Schema"])
    schema["properties"] |= {"metadata": {"type": "object", "required": ["name"]}, "apiVersion": {}, "kind": {}}
    return jsonschema.Draft202012Validator(schema)


def closed(schema: Any) -> Any:
    """Refuse fields that are not described, as a server prunes them."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not open_ended:
        made["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
        made.pop("pattern", None)
    if isinstance(made.get("format"), str):
        made.pop("format")
    return made
