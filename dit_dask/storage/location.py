"""Where something is: a URL and the options that open it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Location:
    """A place to read from or write to; options may hold unresolved ${NAME} references."""

    url: str = field(repr=False)
    storage_options: Mapping[str, Any] = field(repr=False)  # Dask logs the arguments of a failed task
