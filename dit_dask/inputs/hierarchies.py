"""Hierarchy files that a config names."""

from __future__ import annotations

from collections.abc import Sequence

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.source import read_text
from dit_dask.storage.redaction import public_url
from dit_dask.values.hierarchy import Hierarchy, missing_leaf, parse


def read_hierarchy(name: str, path: str, labels: Sequence[str], config: Config, where: str) -> Hierarchy:
    """Read a hierarchy that has a leaf for every label."""
    hierarchy = parse(read_text(path, config, where), public_url(path))
    missing = missing_leaf(hierarchy, labels)
    if missing is not None:
        raise InputError(f"{where}: {public_url(path)} has no leaf for the value {missing!r} of column {name!r}")
    return hierarchy
