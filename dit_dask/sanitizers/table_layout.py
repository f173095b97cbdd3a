"""The tables that a config asks for: columns, bands of numbers and groups of values, as cells of atoms."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError, describe_value, unknown
from dit_dask.values.published_tables import OUTSIDE, Grouping, TableLayout
from dit_dask.values.schema import Attribute, Schema

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

MOST_CELLS = 2**21  # atoms times sensitive values


def read_layout(tables: Sequence[Any], schema: Schema, where: str, *, by_secret: bool = True) -> TableLayout:
    """Read the tables; a value that no band or group of a table has is not counted there."""
    if not isinstance(tables, list) or not tables:
        raise InputError(f"{where} must be a list of tables, each a list of columns; got {describe_value(tables)}")
    bands = [_read_table(one, schema, f"{where}[{place}]") for place, one in enumerate(tables)]
    if not by_secret and any(is_by for _, is_by in bands):
        raise InputError(f"{where}: the sensitive column {schema.sensitive.name!r} is summed, so no table is by it")
    if by_secret and not any(is_by for _, is_by in bands):
        raise InputError(
            f"{where}: no table has the sensitive column {schema.sensitive.name!r}, so none says anything about it"
        )
    atom_of = [_common_bands(attribute, [of.get(attribute.name) for of, _ in bands]) for attribute in schema.quasi_identifiers]
    sizes = [int(one.max()) + 1 for one in atom_of]
    if prod(sizes) * len(schema.sensitive.levels) > MOST_CELLS:
        raise InputError(
            f"{where}: the tables tell {prod(sizes):,} groups apart, with {len(schema.sensitive.levels)} sensitive values; "
            f"at most {MOST_CELLS:,} in all: use fewer columns or wider bands"
        )
    strides = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    codes = np.indices(sizes).reshape(len(sizes), -1)
    counted = [np.bincount(one) for one in atom_of]
    weights = np.prod([count[code] for count, code in zip(counted, codes, strict=True)], axis=0).astype(np.float64)
    groupings = tuple(_grouping(of, is_by, schema, atom_of, codes) for of, is_by in bands)
    steps = tuple(one.astype(np.int64) * stride for one, stride in zip(atom_of, strides, strict=True))
    return TableLayout(steps, weights, groupings)


def _read_table(columns: Any, schema: Schema, where: str) -> tuple[dict[str, Ints], bool]:
    """Return the band of each code of the table's columns, and whether it is by sensitive value."""
    if not isinstance(columns, list) or not columns:
        raise InputError(f"{where} must be a list of columns; got {describe_value(columns)}")
    attributes = {attribute.name: attribute for attribute in schema.quasi_identifiers}
    of: dict[str, Ints] = {}
    by_secret = False
    for column in columns:
        name, bands = next(iter(column.items())) if isinstance(column, Mapping) and len(column) == 1 else (column, None)
        if name == schema.sensitive.name and bands is None and not by_secret:
            by_secret = True
            continue
        if not isinstance(name, str) or name not in attributes:
            raise unknown(f"{where}: column", str(name), [*attributes, schema.sensitive.name])
        if name in of:
            raise InputError(f"{where} has column {name!r} twice")
        attribute = attributes[name]
        of[name] = np.arange(len(attribute.levels)) if bands is None else _bands(attribute, bands, f"{where}.{name}")
    return of, by_secret


def _bands(attribute: Attribute, bands: Any, where: str) -> Ints:
    """Return (levels,): the band of each value: between edges, closed on the right, or of a group of values."""
    if isinstance(bands, Mapping):
        return _groups(attribute, bands, where)
    is_ascending = isinstance(bands, list) and all(
        isinstance(edge, int | float) and not isinstance(edge, bool) for edge in bands
    )
    if not is_ascending or len(bands) < 2 or any(low >= high for low, high in pairwise(bands)):
        raise InputError(f"{where} must be at least 2 edges in ascending order, or a mapping of groups of values")
    if attribute.kind != "numeric" or attribute.values is None:
        raise InputError(f"{where}: only numeric columns have edges; column {attribute.name!r} is {attribute.kind}")
    levels: Sequence[Any] = attribute.levels
    if any(isinstance(level, str) for level in levels):  # the column was generalised before, as alternatives of a test are
        raise InputError(f"{where}: edges are of numbers, and the values of column {attribute.name!r} are bands already")
    of = np.full(len(levels), OUTSIDE)
    for band, (low, high) in enumerate(pairwise(bands)):
        of[(bisect_left if band == 0 else bisect_right)(levels, low) : bisect_right(levels, high)] = band
    return of


def _groups(attribute: Attribute, groups: Mapping[Any, Any], where: str) -> Ints:
    codes = {str(level): code for code, level in enumerate(attribute.levels)}
    of = np.full(len(codes), OUTSIDE)
    for band, (name, values) in enumerate(groups.items()):
        for value in values if isinstance(values, list) else [values]:
            code = codes.get(str(value))
            if code is None:
                raise InputError(f"{where}.{name}: column {attribute.name!r} has no value {str(value)!r}")
            if of[code] != OUTSIDE:
                raise InputError(f"{where}.{name}: the value {str(value)!r} is in two groups")
            of[code] = band
    return of


def _common_bands(attribute: Attribute, bands: Sequence[Ints | None]) -> Ints:
    """Return (levels,): equal numbers are values that no table tells apart."""
    used = [one for one in bands if one is not None]
    if not used:
        return np.zeros(len(attribute.levels), np.int64)
    _, found = np.unique(np.stack(used, axis=1), axis=0, return_inverse=True)
    return found.ravel()


def _grouping(of: Mapping[str, Ints], by_secret: bool, schema: Schema, atom_of: Sequence[Ints], codes: Ints) -> Grouping:
    cell, cells = np.zeros(codes.shape[1], np.int64), 1
    is_outside = np.zeros(codes.shape[1], bool)
    for place, attribute in enumerate(schema.quasi_identifiers):
        if attribute.name not in of:
            continue
        band = of[attribute.name][np.unique(atom_of[place], return_index=True)[1]][codes[place]]
        size = int(of[attribute.name].max(initial=0)) + 1
        cell, cells, is_outside = cell * size + np.maximum(band, 0), cells * size, is_outside | (band == OUTSIDE)
    return Grouping(np.where(is_outside, OUTSIDE, cell), cells, by_secret)
