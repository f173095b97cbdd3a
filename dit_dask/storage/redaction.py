"""Documents and URLs without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

MASK = "***"


def redacted(value: Any, key: str = "") -> Any:
    """Copy a config document without secrets: storage options, and credentials inside URLs."""
    if key in ("storage_options", "env"):
        return _masked(value)
    if isinstance(value, Mapping):
        return {name: redacted(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return public_url(value) if isinstance(value, str) and "://" in value else value


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    is_reference = isinstance(value, str) and re.fullmatch(r"\$\{\w+\}", value)
    return value if is_reference else MASK


def public_url(url: str) -> str:
    """Show a URL without user, password and query, where tokens live."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, parts.path, MASK if parts.query else "", ""))
