"""Names and digests: the id of a test or a measure, and what makes two runs the same."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dit_dask.adversaries import default_panel
from dit_dask.config.constraints import result_document
from dit_dask.config.data import DATA
from dit_dask.config.document import Config
from dit_dask.config.schema import SCHEMA
from dit_dask.sanitizers import SANITIZERS
from dit_dask.storage.redaction import public_url
from dit_dask.values.table import Rows

LONGEST_ID, LONGEST_PART = 80, 40
DEFAULT_LABELS = {
    "encoder": "tf",
    "adversary": "",
    "prior": "",
    "distance": "emd",
    "engine": "auto",
    "records": "all",
    "method": "exact",
    "samples": "samples25000",
    "coupling": "independent",
    "repeats": "",
}


def test_ids(tests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the tests of a config; where several share a label, as those of a sweep do, each is also named by what it is."""
    shared = Counter((one.get("label"), one.get("sensitive")) for one in tests)
    return [test_id(one, is_shared=shared[one.get("label"), one.get("sensitive")] > 1) for one in tests]


def test_id(parameters: Mapping[str, Any], *, is_shared: bool = False, names_adversary: bool = False) -> str:  # noqa: PT028
    """Name a test by its sanitizer and by whatever differs from the defaults; its adversaries too, if they tell it apart.

    A label takes the place of all that, unless other tests share it.
    """
    end = _secret_end(parameters)
    if parameters.get("label") is not None and not is_shared and not names_adversary:
        return f"{parameters['label']}{end}"
    parts = [*([parameters["label"]] if parameters.get("label") is not None else []), _label(parameters["sanitizer"])]
    panel = default_panel(disjoint=SANITIZERS[parameters["sanitizer"]["name"]].disjoint)
    for key, default in DEFAULT_LABELS.items():
        value = parameters.get(key)
        label = _value_label(key, value) if key != "adversary" else _adversary_label(value, panel, always=names_adversary)
        parts += [label] if value is not None and label != default else []
    identity = f"{'.'.join(parts)}{end}"
    return identity if len(identity) <= LONGEST_ID else hashed_id(identity, parameters)


def _secret_end(parameters: Mapping[str, Any]) -> str:
    """The end of an id where the schema lists sensitive attributes: a dot and the name of the one under test."""
    name = parameters.get("sensitive")
    if name is None:
        return ""
    slug = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")
    is_short = 0 < len(slug) < LONGEST_PART
    return f".{slug}" if is_short else f".{f'{slug[: LONGEST_PART - 10]}-{short_hash(name)}'.lstrip('-')}"


def without_secret(identity: str, parameters: Mapping[str, Any]) -> str:
    """An id without the name of the sensitive attribute: the same for all attributes of a list."""
    return identity.removesuffix(_secret_end(parameters))


def _value_label(key: str, value: Any) -> str:
    if key == "prior":
        value = {"name": key, "file": value}
    return f"{key}{value}" if isinstance(value, int) else _label(value)


def _adversary_label(value: Any, panel: tuple[str, ...], *, always: bool) -> str:
    """The default panel and its first member are named only if asked for; other sets are joined names."""
    several = [one for one in (value if isinstance(value, list) else [value]) if one is not None]
    names = tuple(one["name"] for one in several)
    if names == panel:
        return "panel" if always else ""
    if not several or (names == panel[:1] and not always):
        return ""
    labels = "-".join(_label(one) for one in several)
    return labels if len(labels) <= LONGEST_PART else f"{labels[: LONGEST_PART - 9]}-{short_hash(value)}"


def hashed_id(identity: str, parameters: Mapping[str, Any]) -> str:
    """Shorten an id, or tell it from an equal one, by a hash of all parameters; the sensitive attribute stays its end."""
    end = _secret_end(parameters)
    return f"{identity.removesuffix(end)[: LONGEST_ID - 9 - len(end)]}-{short_hash(parameters)}{end}"


def measure_id(
    parameters: Mapping[str, Any], sanitizer: Mapping[str, Any] | None, secret: str | None, *, original: bool
) -> str:
    """Name a measure by its parameters, by what publishes the release it is taken of, and by one of several secrets."""
    release = _label(sanitizer) if sanitizer is not None else "original"
    name = f"{_label(parameters)}.{release}" if sanitizer is not None or original else _label(parameters)
    return f"{name}{_secret_end({'sensitive': secret})}"


def _label(value: Any) -> str:
    """Render a parameter with the characters a folder name may have; what would be lost goes into a hash."""
    if isinstance(value, Mapping):
        shown = [value["name"].rsplit(".", 1)[-1]] if "name" in value else []
        for key, item in value.items():
            is_default = item in ({}, [], "strict", "csv", "frequency") or (key == "tighten" and item is True)
            if key != "name" and not is_default:
                shown.append(_part(key, item))
        text = "-".join(shown)
    else:
        text = value if isinstance(value, str) else f"rows-{short_hash(value)}"
    slug = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    if len(slug) > LONGEST_PART or slug != text:
        return f"{slug[: LONGEST_PART - 9]}-{short_hash(value)}"
    return slug


def _part(key: str, item: Any) -> str:
    if isinstance(item, str):
        item = public_url(item)
        module, _, name = item.rpartition(":")  # an import path is known by its end
        return f"{module.rsplit('.', 1)[-1]}.{name}" if module else item
    if isinstance(item, float):
        return f"{key}{item:g}"
    if isinstance(item, list) and all(isinstance(one, int | float) for one in item):
        return f"{key}{'-'.join(f'{one:g}' for one in item)}"
    return f"{key}{item}" if isinstance(item, int) else f"{key}-{short_hash(item)}"


def short_hash(value: Any) -> str:
    """Eight hexadecimal digits of a document."""
    return _digest(value)[:8]


def _digest(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()


def secret_key(rows: Rows) -> bytes:
    """Return the key of the digests that stand for secrets: it follows from the rows, which no file of a run holds."""
    return hashlib.sha256(b"key of the secrets of a run\0" + rows.fingerprint).digest()


def run_digest(
    config: Config, rows: Rows, tests: Sequence[Mapping[str, Any]], files: Mapping[str, str], measures: str | None = None
) -> str:
    """Identify a run by its data and by everything in the config that can change a result; measures count if there are any."""
    document = {
        "name": config.name,
        "data": result_document(DATA, asdict(config.data)),
        "schema": result_document(SCHEMA, config.checked_schema.document()),
        "tests": tests,
        "seed": config.seed,
        "input": rows.digest(),
        "files": files,
    }
    if measures is not None:
        document["measures"] = measures
    return _digest(document)[:12]
