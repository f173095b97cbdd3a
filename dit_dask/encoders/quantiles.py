"""Quantiles of continuous attributes: which one each level is in, and tables in which they are categories."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.bins import equal_frequency
from dit_dask.values.hierarchy import flat
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table, recode

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints


def offsets(attribute: Attribute) -> Floats:
    """Return (levels,): how far each level of a continuous attribute is from the smallest; half of it if that is infinite."""
    if attribute.values is None:
        raise TypeError("a categorical attribute has no scale")
    with np.errstate(over="ignore"):
        distance: Floats = attribute.values - attribute.values[0]
    if not np.isfinite(distance[-1]):
        distance = attribute.values / 2 - attribute.values[0] / 2
    return distance


def quantile_of(table: Table, place: int, count: int, cut: str) -> Codes:
    """Return (levels,): the quantile of each level of a continuous attribute, fitted to the rows of this table."""
    attribute = table.schema.quasi_identifiers[place]
    if cut == "frequency":
        weights = np.bincount(table.codes[:, place], weights=table.weights, minlength=len(attribute.levels))
        return equal_frequency(weights.astype(np.int64), count)
    distance = offsets(attribute)
    width = distance[-1]
    if not width:
        return np.zeros(len(distance), np.int32)
    exponent = np.frexp(width)[1]  # so that no product overflows; both are still exact
    position = np.ldexp(distance, -exponent) * count / np.ldexp(width, -exponent)
    quantile: Codes = np.minimum(np.floor(position), count - 1).astype(np.int32)
    return quantile


def with_quantiles(table: Table, count: int, cut: str) -> tuple[Table, Ints]:
    """Make every continuous attribute one of quantiles, without order; also return which record each old one became."""
    attributes, codes = list(table.schema.quasi_identifiers), table.codes.copy()
    for place, attribute in enumerate(attributes):
        if attribute.values is None:
            continue
        quantile = quantile_of(table, place, count, cut)
        size = int(quantile.max()) + 1
        tree = flat([f"quantile {number + 1} of {size}" for number in range(size)])
        attributes[place] = Attribute(attribute.name, "categorical", tree.leaves, None, tree)
        codes[:, place] = quantile[table.codes[:, place]]
    schema = replace(table.schema, quasi_identifiers=tuple(attributes))
    return recode(table, schema, codes)
