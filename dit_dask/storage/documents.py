"""JSON documents in a folder: readable, without NaN, and tolerant of damage when read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from dit_dask.storage.folder import Folder

UNSAFE = re.compile(
    "[\\x7f-\\x9f\\xad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ud800-\\udfff\\ufeff\\ufff9-\\ufffb]"
)
"""Control, bidirectional and invisible characters that JSON itself lets pass; they stand in texts only."""


def write_json(folder: Folder, name: str, value: Any) -> None:
    """Write JSON that a person can read and that can hold no NaN."""
    folder.write(name, render_json(value))


def render_json(value: Any) -> bytes:
    """Render JSON as a file holds it."""
    return (dump_json(value) + "\n").encode()


def dump_json(value: Any) -> str:
    """Render JSON in which a number that is infinite or none at all is a word, and no character directs a terminal."""
    text = json.dumps(_without_nonfinite(value), indent=2, allow_nan=False, ensure_ascii=False)
    return UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def parse_mapping(content: bytes | None) -> dict[str, Any]:
    """Parse a JSON object; whatever is not one counts as empty."""
    try:
        document = json.loads(content or b"")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _without_nonfinite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nonfinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nonfinite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
