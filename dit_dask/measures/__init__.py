"""Measures by name: numbers about a table or its releases beside the inference test."""

from __future__ import annotations

from typing import cast

from dit_dask.config.registry import Registry
from dit_dask.measures.base import Measure, MeasureKind
from dit_dask.measures.discrimination import measure as discrimination
from dit_dask.measures.synthetic import accuracy_measure, closeness_measure

MEASURES: Registry[Measure] = Registry(
    "dit_dask.measures",
    {"discrimination": discrimination.KIND, "accuracy": accuracy_measure.KIND, "closeness": closeness_measure.KIND},
)


def kind_of(name: str) -> MeasureKind:
    """The kind that a name stands for."""
    return cast("MeasureKind", MEASURES[name])
