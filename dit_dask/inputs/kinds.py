"""The kinds of quasi-identifiers, and how each is coded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.config.document import Config
from dit_dask.config.schema import AttributeConfig
from dit_dask.errors import InputError
from dit_dask.inputs.dates import parse_dates, to_text
from dit_dask.inputs.encode import (
    MISSING,
    Column,
    check_single_type,
    encode_numeric,
    label_cells,
    ordered_levels,
    refuse_label,
)
from dit_dask.inputs.hierarchies import Labels, make_hierarchy
from dit_dask.values.hierarchy import Hierarchy, with_leaf
from dit_dask.values.schema import Attribute

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes


def _on_tree(column: Column, kind: str, labels: Labels, hierarchy: Hierarchy) -> tuple[Attribute, Codes]:
    """Code labels by the leaves of a hierarchy, in depth-first order."""
    code = {label: position for position, label in enumerate(hierarchy.leaves)}
    attribute = Attribute(column.name, kind, hierarchy.leaves, None, hierarchy)
    return attribute, np.array([code[label] for label in labels.labels], np.int32)[labels.factors]


def _encode_categorical(column: Column, described: AttributeConfig, config: Config) -> tuple[Attribute, Codes]:
    labels = label_cells(column)
    where = f"schema.quasi_identifiers.{column.name}.hierarchy"
    return _on_tree(column, "categorical", labels, make_hierarchy(described.hierarchy, labels, config, where))


def _encode_boolean(column: Column, described: AttributeConfig, config: Config) -> tuple[Attribute, Codes]:
    """Read any two values, such as yes and no, as categories."""
    attribute, codes = _encode_categorical(column, described, config)
    if len(attribute.levels) > 2:
        raise InputError(f"column {column.name!r} must be boolean, with two values; got {len(attribute.levels):,}")
    return attribute, codes


def _encode_ordinal(column: Column, described: AttributeConfig, _config: Config) -> tuple[Attribute, Codes]:
    """Code labels by their place in the order; generalisation joins neighbours, as it does with numbers."""
    labels = label_cells(column)
    levels = ordered_levels(described.order or (), labels, f"schema.quasi_identifiers.{column.name}.order")
    code = {level: position for position, level in enumerate(levels)}
    attribute = Attribute(column.name, "ordinal", tuple(levels), np.arange(len(levels), dtype=np.float64))
    return attribute, np.array([code[label] for label in labels.labels], np.int32)[labels.factors]


def _encode_numeric(column: Column, _described: AttributeConfig, _config: Config) -> tuple[Attribute, Codes]:
    return encode_numeric(column)


def _encode_date(column: Column, described: AttributeConfig, config: Config) -> tuple[Attribute, Codes]:
    """Code dates by their rank, or by the leaves of a hierarchy whose leaves are ISO dates."""
    import pandas as pd

    check_single_type(column.name, column.cells)
    moments = parse_dates(column.name, list(column.cells), described, column.counts)
    if described.hierarchy is None:
        return encode_numeric(replace(column, cells=pd.Series(moments)))
    texts = to_text(moments)
    names = list(dict.fromkeys(texts))  # two texts may be the same date
    place = {name: number for number, name in enumerate(names)}
    labels = Labels(column.name, names, np.array([place[text] for text in texts]), column.counts, column.first_row)
    where = f"schema.quasi_identifiers.{column.name}.hierarchy"
    return _on_tree(column, "categorical", labels, make_hierarchy(described.hierarchy, labels, config, where))


KINDS: dict[str, Callable[[Column, AttributeConfig, Config], tuple[Attribute, Codes]]] = {
    "numeric": _encode_numeric,
    "categorical": _encode_categorical,
    "ordinal": _encode_ordinal,
    "date": _encode_date,
    "boolean": _encode_boolean,
}


def has_scale(described: AttributeConfig) -> bool:
    """Tell whether the values of an attribute are points on a scale, where a missing cell has no place."""
    return described.kind in ("numeric", "ordinal") or (described.kind == "date" and described.hierarchy is None)


def encode_attribute(column: Column, described: AttributeConfig, config: Config) -> tuple[Attribute, Codes]:
    """Code the cells of a quasi-identifier by its kind; missing cells, if they are kept, are the last leaf."""
    attribute, codes = KINDS[described.kind](column, described, config)
    if not column.has_missing:
        return attribute, codes
    refuse_label(column.name, attribute.levels)
    hierarchy = None if attribute.hierarchy is None else with_leaf(attribute.hierarchy, MISSING)
    return replace(attribute, levels=(*attribute.levels, MISSING), hierarchy=hierarchy), codes
