"""Measures by name: numbers about a table or its releases beside the inference test."""

from __future__ import annotations

from typing import cast

from dit_dask.config.registry import Registry
from dit_dask.measures.base import Measure, MeasureKind

MEASURES: Registry[Measure] = Registry(
    "dit_dask.measures",
    {
        "discrimination": "dit_dask.measures.discrimination.measure:KIND",
        "composition": "dit_dask.measures.composition.measure:KIND",
        "downcoding": "dit_dask.measures.downcoding.measure:KIND",
        "accuracy": "dit_dask.measures.synthetic.accuracy_measure:KIND",
        "reidentification": "dit_dask.measures.reidentification.measure:KIND",
        "utility": "dit_dask.measures.utility.measure:KIND",
        "membership": "dit_dask.measures.membership.measure:KIND",
        "closeness": "dit_dask.measures.synthetic.closeness_measure:KIND",
        "singling-out": "dit_dask.measures.attacks.measure:SINGLING_OUT",
        "linkability": "dit_dask.measures.attacks.measure:LINKABILITY",
        "attribute-inference": "dit_dask.measures.attacks.measure:INFERENCE",
    },
)


def kind_of(name: str) -> MeasureKind:
    """The kind that a name stands for."""
    return cast("MeasureKind", MEASURES[name])
