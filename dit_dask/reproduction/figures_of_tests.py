"""The figures of one differential inference test as the papers print them: largest, mean, shares, predictions, time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.engines import ENGINES
from dit_dask.reproduction.datasets import Selection, Source
from dit_dask.reproduction.published import LIMIT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

CURVE_POINTS = 200
LIMITS = (0.001, LIMIT, 0.01, 0.1)
AS_PUBLISHED: Mapping[str, Mapping[str, Any]] = {"k": {"variant": "basic"}, "l": {"tighten": False}}


def sanitizer_of(parameter: str, value: float, **changed: Any) -> Any:
    """The sanitizer that the papers mean by a value of k, l or epsilon; 1 is the table as it is."""
    if parameter == "epsilon":
        return {"name": "laplace", "epsilon": value, **changed}
    if value == 1:
        return "raw"
    return {"name": "mondrian", parameter: int(value), **AS_PUBLISHED[parameter], **changed}


def measure_test(
    source: Source, chosen: Selection, sanitizer: Any, keys: Mapping[str, Any] | None = None, *, curve: bool = False
) -> dict[str, Any]:
    """Test every record and return the figures by rows and by distinct records, on the scale of half the sum."""
    keys = {"distance": "tv", **(keys or {})}
    is_counted = isinstance(sanitizer, Mapping) and sanitizer["name"] == "laplace"
    adversary = {} if is_counted else {"adversary": "bernoulli-nb"}
    (test,) = source.tests(chosen, [{"sanitizer": sanitizer, **adversary, **keys}])
    table = test.rows.table
    records = np.arange(table.distinct)
    engine = ENGINES[test.engine]
    engine.influence(table, records[:1], test.procedure)  # compiles, and grows the tree that all tests of it share
    started = time.process_time()
    found = engine.influence(table, records, test.procedure)
    seconds = time.process_time() - started
    changed = found.predicted != found.predicted_without
    figures = _describe(found.distance, table.weights) | {
        "records": int(table.rows),
        "distinct": int(table.distinct),
        "changed": float(np.average(changed, weights=table.weights)),
        "changed_distinct": float(changed.mean()),
        "seconds": seconds,
        "engine": test.engine,
    }
    return figures | ({"curve": _curve(found.distance)} if curve else {})


def _describe(distance: Floats, weights: Ints) -> dict[str, Any]:
    mean = float(np.average(distance, weights=weights))
    over = {f"{limit:.5g}": limit for limit in LIMITS}
    return {
        "largest": float(distance.max()),
        "mean": mean,
        "std": float(np.sqrt(np.average((distance - mean) ** 2, weights=weights))),
        "mean_distinct": float(distance.mean()),
        "over": {name: float(np.average(distance > limit, weights=weights)) for name, limit in over.items()},
        "over_distinct": {name: float((distance > limit).mean()) for name, limit in over.items()},
    }


def _curve(distance: Floats) -> list[list[float]]:
    """The empirical distribution over distinct records, as the papers draw it: some distances, and the shares up to them."""
    ordered = np.sort(distance)
    kept = np.unique(np.linspace(0, len(ordered) - 1, CURVE_POINTS).round().astype(int))
    return [ordered[kept].tolist(), ((kept + 1) / len(ordered)).tolist()]
