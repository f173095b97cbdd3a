"""Sensitive attributes: labels in order, numbers in bins, values that a file derives from a column, joint values."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.config.schema import SensitiveConfig
from dit_dask.errors import InputError
from dit_dask.inputs.encode import MISSING, Column, encode_numeric, label_cells, ordered_levels, refuse_label
from dit_dask.inputs.hierarchies import Labels, make_hierarchy
from dit_dask.inputs.source import read_text
from dit_dask.storage.redaction import public_url
from dit_dask.values.bins import equal_frequency
from dit_dask.values.hierarchy import ROOT, with_leaf
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.schema import MIN_DISCLOSED_COUNT, Attribute, Secret

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

BETWEEN = " | "  # the values of a joint attribute's members, where it is written as one text


def encode_sensitive(column: Column, described: SensitiveConfig, config: Config) -> tuple[Secret, Codes]:
    """Fix the order of the sensitive values: as given, else sorted (numbers by their size); missing ones are last."""
    secret, codes = (_encode_labels if described.bins is None else _encode_bins)(column, described, config)
    if not column.has_missing:
        if codes.min() == codes.max():
            raise InputError(f"the sensitive column {described.name!r} is constant: there is nothing to infer")
        return secret, codes
    refuse_label(column.name, secret.levels)
    hierarchy = None if secret.hierarchy is None else with_leaf(secret.hierarchy, MISSING)
    # missing cells have no place in an order
    return Secret(secret.name, (*secret.levels, MISSING), hierarchy), codes


def join_members(described: SensitiveConfig, members: Mapping[str, tuple[Secret, Codes]]) -> tuple[Secret, Codes]:
    """Return a sensitive attribute: one of those that were encoded, or the joint values of several that some row has."""
    if not described.joint:
        return members[described.name]
    chosen = [members[member.name] for member in described.joint]
    key = np.zeros(len(chosen[0][1]), np.int64)
    for secret, codes in chosen:
        _, key = np.unique(key * len(secret.levels) + codes, return_inverse=True)
    _, first = np.unique(key, return_index=True)
    parts = np.column_stack([codes[first] for _, codes in chosen])
    levels = [BETWEEN.join(secret.levels[code] for (secret, _), code in zip(chosen, row, strict=True)) for row in parts]
    if len(set(levels)) < len(levels):
        raise InputError(f"{described.where}: two joint values read the same, because values hold {BETWEEN!r}")
    secrets = tuple(secret for secret, _ in chosen)
    return Secret(described.name, tuple(levels), members=secrets, parts=parts), key.astype(np.int32)


def _encode_labels(column: Column, described: SensitiveConfig, config: Config) -> tuple[Secret, Codes]:
    labels = label_cells(column)
    if described.map is not None:
        labels = _map_labels(labels, described.map, config, f"{described.where}.map")
    if described.order is not None:
        levels = ordered_levels(described.order, labels, f"{described.where}.order")
    elif all(re.fullmatch(DECIMAL, label) for label in labels.labels):
        levels = sorted(labels.labels, key=lambda label: (float(label), label))
    else:
        levels = sorted(labels.labels)
    hierarchy = None
    if described.hierarchy is not None:
        whole = replace(labels, labels=list(dict.fromkeys([*labels.labels, *levels])))
        hierarchy = make_hierarchy(described.hierarchy, whole, config, f"{described.where}.hierarchy", inner=True)
    code = {level: position for position, level in enumerate(levels)}
    secret = Secret(described.name, tuple(levels), hierarchy, described.order is not None)
    return secret, np.array([code[label] for label in labels.labels], np.int32)[labels.factors]


def _map_labels(labels: Labels, path: str, config: Config, where: str) -> Labels:
    """Replace labels by what a file of lines value;derived says; * stands for all others."""
    derived: dict[str, str] = {}
    reader = csv.reader(read_text(path, config, where).splitlines(), delimiter=";")
    for row in reader:
        if row and (len(row) != 2 or not all(row)):
            raise InputError(f"{where}: {public_url(path)}, line {reader.line_num}: expected value;derived value")
        if row and derived.setdefault(row[0], row[1]) != row[1]:
            raise InputError(f"{where}: {public_url(path)}, line {reader.line_num}: the value has two derived values")
    unmapped = [] if ROOT in derived else [label for label in labels.labels if label not in derived]
    if unmapped:
        raise labels.refuse(f"{where}: {public_url(path)} has no line for", unmapped)
    mapped = [derived.get(label, derived.get(ROOT, "")) for label in labels.labels]
    names = list(dict.fromkeys(mapped))
    place = {name: position for position, name in enumerate(names)}
    return replace(labels, labels=names, factors=np.array([place[name] for name in mapped])[labels.factors])


def _encode_bins(column: Column, described: SensitiveConfig, _config: Config) -> tuple[Secret, Codes]:
    """Put numbers into intervals that are closed on the right, the first on both sides."""
    where = f"{described.where}.bins"
    try:
        attribute, codes = encode_numeric(column)
    except InputError as error:
        raise InputError(f"{where}: bins are of numbers; {error}", hidden=error.hidden) from error
    if attribute.unit is not None:
        raise InputError(f"{where}: bins are of numbers; column {column.name!r} has dates")
    weights = np.bincount(codes, column.counts, len(attribute.levels)).astype(np.int64)
    if isinstance(described.bins, Sequence):
        bin_of, names = _by_edges(attribute, weights, described.bins, where)
    else:
        bin_of = equal_frequency(weights, described.bins or 1)
        names = _name_bins(attribute.levels, weights, bin_of)
    middles = _middles(attribute, bin_of, described.bins if isinstance(described.bins, Sequence) else None)
    return Secret(described.name, tuple(names), has_order=True, middles=middles), bin_of[codes]


def _middles(attribute: Attribute, bin_of: Codes, edges: Sequence[float] | None) -> Floats:
    """Return (bins,) the middle of each bin: of its edges, or of the smallest and the largest value in it."""
    numbers = np.array(attribute.levels, np.float64)
    if edges is None:
        bins = np.arange(bin_of[-1] + 1)
        first, last = np.searchsorted(bin_of, bins), np.searchsorted(bin_of, bins, side="right") - 1
        return np.asarray((numbers[first] + numbers[last]) / 2)
    ends = np.array(edges, float)  # where the outer ones are infinite, the table ends the bin
    ends[0] = ends[0] if np.isfinite(ends[0]) else min(numbers[0], ends[1])
    ends[-1] = ends[-1] if np.isfinite(ends[-1]) else max(numbers[-1], ends[-2])
    return np.asarray((ends[:-1] + ends[1:]) / 2)


def _by_edges(attribute: Attribute, weights: Ints, edges: Sequence[float], where: str) -> tuple[Codes, list[str]]:
    """Return (levels,) bins and their names; the edges are the config's, so they may be shown."""
    levels = np.array(attribute.levels, object)
    outside = int(weights[(levels < edges[0]) | (levels > edges[-1])].sum())
    if outside:
        raise InputError(
            f"{where}: the edges leave out {outside:,} of the {int(weights.sum()):,} rows of column {attribute.name!r}"
        )
    bin_of = np.maximum(np.searchsorted(np.array(edges), levels.astype(float)) - 1, 0).astype(np.int32)
    shown = [f"{edge:.15g}" for edge in edges]
    return bin_of, [f"{'[' if place == 0 else '('}{low}, {high}]" for place, (low, high) in enumerate(pairwise(shown))]


def _name_bins(levels: Sequence[Any], weights: Ints, bin_of: Codes) -> list[str]:
    """Name bins by round numbers between their values: no name shows a value that few rows share."""
    lasts = np.flatnonzero(np.diff(bin_of)).tolist()
    cuts = [_round_cut(levels[last], levels[last + 1], weights[last] >= MIN_DISCLOSED_COUNT) for last in lasts]
    if not cuts:
        return ["all"]
    inner = [f"({low}, {high}]" for low, high in pairwise(cuts)]
    return [f"<= {cuts[0]}", *inner, f"> {cuts[-1]}"]


def _round_cut(low: Any, high: Any, may_show_low: bool) -> str:
    """Return the number with the fewest digits from low to below high; low itself only if it may be shown."""
    below, above = Fraction(low), Fraction(high)
    exponent = 0
    while Fraction(10) ** exponent <= above - below:
        exponent += 1
    while True:
        step = Fraction(10) ** exponent
        first = -(-below // step) * step
        first += step if first == below and not may_show_low else 0
        if first < above:
            return str(first) if first.denominator == 1 else f"{float(first):.17g}"
        exponent -= 1
