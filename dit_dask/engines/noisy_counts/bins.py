"""Numeric attributes in intervals: noisy counts need tuples that more than one row shares."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, unknown
from dit_dask.values.bins import equal_frequency
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table, recode

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints


def binned(table: Table, bins: Mapping[str, Any], where: str) -> tuple[Table, Ints]:
    """Recode numeric attributes; also return which record of the new table each old one became.

    A whole number asks for so many bins of equal frequency, fitted to this table; a list gives the edges of intervals in
    the attribute's own units, closed on the right, the first one on both sides.
    """
    attributes = list(table.schema.quasi_identifiers)
    places = {attribute.name: place for place, attribute in enumerate(attributes)}
    codes = table.codes.copy()
    for name, asked in bins.items():
        if name not in places:
            raise unknown(f"{where}: column", name, places)
        place, here = places[name], f"{where}.{name}"
        attribute = attributes[place]
        if attribute.values is None:
            raise InputError(f"{here}: only numeric attributes have bins; column {name!r} is {attribute.kind}")
        weights = np.bincount(table.codes[:, place], weights=table.weights, minlength=len(attribute.levels)).astype(np.int64)
        lists = isinstance(asked, Sequence) and not isinstance(asked, str)
        if lists and attribute.kind == "ordinal":
            raise InputError(f"{here}: edges are of numbers; column {name!r} is ordinal (give a number of bins)")
        bin_of = _by_edges(attribute, weights, asked, here) if lists else _equal_frequency(weights, asked, here)
        codes[:, place] = bin_of[table.codes[:, place]]
        attributes[place] = _intervals(attribute, bin_of)
    schema = replace(table.schema, quasi_identifiers=tuple(attributes))
    return recode(table, schema, codes)


def _equal_frequency(weights: Ints, asked: Any, where: str) -> Codes:
    """Check the number of bins."""
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        raise InputError(f"{where} must be an integer >= 1 (bins of equal frequency) or a list of edges; got {asked!r}")
    return equal_frequency(weights, asked)


def _by_edges(attribute: Attribute, weights: Ints, asked: Sequence[Any], where: str) -> Codes:
    """Compare edges with the levels themselves: `values` are offsets where levels are dates or large integers."""
    edges = [_edge(edge, where) for edge in asked]
    if len(edges) < 2 or any(low >= high for low, high in itertools.pairwise(edges)):
        raise InputError(f"{where} must be at least 2 edges in ascending order; got {_shown(asked)}")
    levels: Sequence[Any] = attribute.levels
    below, upto = bisect_left(levels, edges[0]), [bisect_right(levels, edge) for edge in edges]
    outside = int(weights[:below].sum() + weights[upto[-1] :].sum())
    if outside:
        raise InputError(
            f"{where}: the edges {_shown(asked)} leave out {outside:,} of the {int(weights.sum()):,} rows "
            f"of column {attribute.name!r}"
        )
    return np.searchsorted(np.array(upto[1:]), np.arange(len(levels)), side="right").astype(np.int32)


def _edge(edge: Any, where: str) -> Any:
    """Return an edge as a number; dates become the nanoseconds that a date column is stored in."""
    if isinstance(edge, int | float) and not isinstance(edge, bool) and not math.isnan(edge):
        return edge
    try:
        moment = datetime.fromisoformat(str(edge))
    except ValueError:
        raise InputError(f"{where}: an edge must be a number or an ISO date; got {edge!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000


def _shown(edges: Sequence[Any]) -> str:
    return "[" + ", ".join(str(edge) for edge in edges) + "]"


def _intervals(attribute: Attribute, bin_of: Codes) -> Attribute:
    """The bins as ordered levels; their numbers are their ranks."""
    size = int(bin_of.max()) + 1
    levels = tuple(f"bin {number + 1} of {size}" for number in range(size))
    return Attribute(attribute.name, attribute.kind, levels, np.arange(size, dtype=np.float64))
