"""Sweeps: a list where one value is expected stands for one document per value."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from dit_dask.config.components import Component
from dit_dask.config.constraints import Record
from dit_dask.errors import InputError

Path = tuple[str, ...]
MOST_POINTS = 1000  # tests, or measures, of one config


def expand(document: Mapping[str, Any], record: Record, where: str) -> Iterator[dict[str, Any]]:
    """Yield one document for each combination: keys as written, the last fastest."""
    axes = list(_axes(document, record, where, ()))
    points = math.prod(len(axis) for _, axis in axes)
    if points > MOST_POINTS:
        raise InputError(f"{where}: its lists stand for {points:,} tests; at most {MOST_POINTS:,} can be in one config")
    for values in itertools.product(*(axis for _, axis in axes)):
        point: dict[str, Any] = json.loads(json.dumps(document, default=str))
        for (path, _), value in zip(axes, values, strict=True):
            parent = point
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = value
        yield point


def _axes(document: Mapping[str, Any], record: Record, where: str, path: Path) -> Iterator[tuple[Path, list[Any]]]:
    for key, value in document.items():
        entry = record.fields.get(key)
        if entry is None:
            continue
        if isinstance(value, list) and entry.sweep:
            if not value:
                raise InputError(f"{where}.{key} must be a value or a list of values to sweep; got an empty list")
            yield (*path, key), value
        elif isinstance(value, Mapping) and isinstance(entry.constraint, Component):
            yield from _axes(value, entry.constraint.record(value, f"{where}.{key}"), f"{where}.{key}", (*path, key))
