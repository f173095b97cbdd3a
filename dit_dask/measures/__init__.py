"""Measures by name: numbers about a table or its releases beside the inference test."""

from typing import cast

from dit_dask.measures import accuracy_measure, closeness_measure, discrimination
from dit_dask.measures.kind import Measure, MeasureKind
from dit_dask.registry import Registry

MEASURES: Registry[Measure] = Registry(
    "dit_dask.measures",
    {"discrimination": discrimination.KIND, "accuracy": accuracy_measure.KIND, "closeness": closeness_measure.KIND},
)


def kind_of(name: str) -> MeasureKind:
    """The kind that a name stands for."""
    return cast("MeasureKind", MEASURES[name])
