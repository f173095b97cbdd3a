"""The encodings by name: one for continuous and one for categorical attributes; `tf` alone is TF for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from dit_dask.config.components import Component, ComponentConfig
from dit_dask.config.constraints import Choice, Decide, Field, Integer, Record
from dit_dask.errors import InputError

CONTINUOUS = ("scaling", "bounds", "binary", "quantiles-before", "quantiles-after", "tf")
CATEGORICAL = ("hot", "binary", "hot-after", "tf")
BEFORE, AFTER = CONTINUOUS[3:5]
MOST_QUANTILES = 1000
QUANTILES = {
    "quantiles": Field(Integer(2, MOST_QUANTILES), 5, sweep=True, description="how many there are"),
    "cut": Field(
        Choice(("frequency", "width")),
        "frequency",
        sweep=True,
        description="frequency: as many rows in each, as nearly as ties allow; width: equally wide",
    ),
}
KINDS = {
    "continuous": Field(Choice(CONTINUOUS), "tf", sweep=True, description="for numbers, dates and ordinal attributes"),
    "categorical": Field(Choice(CATEGORICAL), "tf", sweep=True, description="for attributes with a hierarchy"),
}


def name_of(continuous: str, categorical: str) -> str:
    """Name a pair of encodings."""
    return "tf" if continuous == categorical == "tf" else f"{continuous}-{categorical}"


NAMES = {name_of(*pair): pair for pair in product(CONTINUOUS, CATEGORICAL)}


def record_of(name: str) -> Record:
    """The parameters of a pair of encodings."""
    return Record(QUANTILES if NAMES[name][0] in (BEFORE, AFTER) else {})


@dataclass(frozen=True)
class EncoderComponent(Component):
    """An encoder: its name, a mapping of `name` and parameters, or a mapping of `continuous` and `categorical`."""

    def record(self, value: Any, where: str) -> Record:
        """A mapping without a name is a pair of encodings."""
        return Record({**KINDS, **QUANTILES}) if _is_pair(value) else super().record(value, where)

    def check(self, value: Any, where: str) -> ComponentConfig:
        """Find the name of a pair."""
        if not _is_pair(value):
            return super().check(value, where)
        checked = self.record(value, where).check(value, where)
        continuous = checked["continuous"]
        given = {key: value[key] for key in QUANTILES if key in value}
        if given and continuous not in (BEFORE, AFTER):
            raise InputError(f"{where}.{min(given)} is for continuous: {BEFORE} or {AFTER}; got {continuous}")
        return super().check({"name": name_of(continuous, checked["categorical"]), **given}, where)

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        pair = Record({**KINDS, **QUANTILES}).schema() | {"minProperties": 1}
        return {"anyOf": [*super().schema()["anyOf"], pair]}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """A pair is rewritten by its own keys."""
        if _is_pair(document):
            return self.record(document, where).rewrite(document, decide, where)
        return super().rewrite(document, decide, where)


def _is_pair(value: Any) -> bool:
    return isinstance(value, Mapping) and "name" not in value and bool(value)
