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


@dataclass(frozen=True)
class OutputLocation(Location):
    """Where runs go; what is personal data goes to `private`, if that is given."""

    private: Location | None = field(default=None, repr=False)
