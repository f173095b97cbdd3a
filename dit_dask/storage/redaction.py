"""Documents and URLs without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

MASK = "***"


CREDENTIAL = re.compile(r"(?i)key|secret|token|pass|credential|sas|connection_string")
REFERENCE = re.compile(r"\$\{\w+\}")
FREE_FORM = ("storage_options", "env")  # what people call such mappings inside parameters of their own


def mask(value: Any) -> Any:
    """Hide every value of a field that may hold secrets; names and ${NAME} references stay."""
    if isinstance(value, Mapping):
        return {name: mask(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask(item) for item in value]
    return value if is_reference(value) else MASK


def mask_credentials(value: Any, key: str = "") -> Any:
    """Hide what looks like a credential anywhere in a document: in URLs, and in options of parameters."""
    if key in FREE_FORM:
        return mask(value)
    if isinstance(value, Mapping):
        return {name: mask_credentials(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_credentials(item) for item in value]
    return public_url(value) if isinstance(value, str) and "://" in value else value


def is_reference(value: object) -> bool:
    """Tell whether a value is a ${NAME} reference and nothing else."""
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def is_credential_name(name: str) -> bool:
    """Tell whether an option of this name usually holds a credential."""
    return CREDENTIAL.search(name) is not None


def public_url(url: str) -> str:
    """Show a URL without user, password and query, where tokens live."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, parts.path, MASK if parts.query else "", ""))
