"""YAML documents: safe loading, no key twice, bounded size, and single keys overridden from the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dit_dask.errors import InputError, quote

MOST_BYTES = 2**24  # of a config file
TABLE = r"\.((csv|tsv)(\.gz|\.zst)?|parquet|xlsx)$"
MOST_VALUES = 100_000
MOST_REASON = 300  # characters of a parser's words


def read_document(path: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Load a config file and apply `dotted.key=value` overrides."""
    if re.search(TABLE, path):
        raise InputError(f"config {path}: this is a table; draft a config for it with: dit init {path}")
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"config {path}: larger than {MOST_BYTES:,} bytes")
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"config {path}: {reason}") from error
    document = parse_yaml(text, f"config {path}")
    if not isinstance(document, dict):
        raise InputError(f"config {path}: expected a mapping with version, data, schema and tests at the top")
    for override in overrides:
        apply_override(document, override)
    return document


def parse_yaml(text: str, where: str) -> Any:
    """Parse one YAML document safely."""
    try:
        loader = _strict_loader()(text)
        node = loader.get_single_node()
        _count_values(node, {}, where)  # before aliases and merges are written out
        return None if node is None else loader.construct_document(node)
    except InputError:
        raise
    except Exception as error:  # PyYAML lets errors of any type out, such as that of a date with 13 months
        raise InputError(
            f"{where}: not valid YAML: {_yaml_reason(error)[:MOST_REASON]}"
        ) from None  # a trace would quote the line


def _yaml_reason(error: Exception) -> str:
    """Say what is wrong and where, without the line itself, which may hold a secret."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    text = re.sub(r"\s+", " ", str(problem or getattr(error, "reason", None) or error)).strip()
    return text if mark is None else f"{text} in line {mark.line + 1}, column {mark.column + 1}"


def _strict_loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe loading that refuses a key written twice."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Refuse duplicate keys."""
            seen: set[Any] = set()
            for key_node, _ in node.value:
                if key_node.tag == "tag:yaml.org,2002:merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                if isinstance(key, str) and key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is written twice", key_node.start_mark
                    )
                if isinstance(key, str):
                    seen.add(key)
            return super().construct_mapping(node, deep)

    # YAML 1.1 reads 1e-3 as text; people mean the number
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))
    return Loader


def _count_values(node: Any, known: dict[int, int], where: str) -> int:
    """Count the values that aliases and merges stand for, so that a small file cannot grow without bound, or contain itself."""
    if node is None or isinstance(node.value, str):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_VALUES + 1  # a value that is met again while it is being counted contains itself
        items = [item for entry in node.value for item in (entry if isinstance(entry, tuple) else (entry,))]
        known[id(node)] = 1 + sum(_count_values(item, known, where) for item in items)
    if known[id(node)] > MOST_VALUES:
        raise InputError(f"{where}: more than {MOST_VALUES:,} values, aliases and merges written out")
    return known[id(node)]


def apply_override(document: dict[str, Any], override: str) -> None:
    """Set one key: names are separated by dots, list positions are numbers."""
    path, equals, text = override.partition("=")
    if not equals or not path:
        named = re.split(r"[\s=:]", override, maxsplit=1)[0]  # what follows may be a secret
        raise InputError(f"--set must be dotted.key=value; got {quote(named)} without a value")
    value = parse_yaml(text, f"--set {path[:MOST_REASON]}")
    keys = re.sub(r"\[(\d+)\]", r".\1", path).split(".")
    target: Any = document
    for depth, key in enumerate(keys):
        last = depth == len(keys) - 1
        if isinstance(target, list):
            if not key.isdecimal() or int(key) >= len(target):
                raise InputError(f"--set {path}: {key!r} is not a position in a list of {len(target)}")
            if last:
                target[int(key)] = value
            target = target[int(key)]
        elif isinstance(target, dict):
            if last:
                target[key] = value
            target = target.setdefault(key, {})
        else:
            raise InputError(f"--set {path}: {'.'.join(keys[:depth])} is a single value, it has no {key!r}")
