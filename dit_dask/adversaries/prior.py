"""Prior knowledge: what an adversary thinks of the sensitive value before it sees a release, of everyone or of some persons."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.config.registry import Context
from dit_dask.errors import InputError, unknown
from dit_dask.storage.redaction import public_url
from dit_dask.values.numbers import DECIMAL
from dit_dask.values.schema import Attribute, Secret

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

PROBABILITY = "probability"  # ends the header of a file
ROUNDING = 1e-6  # by which probabilities of a file may miss 1


@dataclass(frozen=True, eq=False)
class Prior:
    """Probabilities[groups, n] of the sensitive values, and the group of each combination of codes of some quasi-identifiers.

    Without quasi-identifiers there is one group, of everyone. About a person in no group nothing is known before.
    """

    places: tuple[int, ...]
    group_of: Mapping[tuple[int, ...], int]
    probabilities: Floats

    def weigh(self, beliefs: Floats, codes: Codes) -> Floats:
        """Multiply beliefs[m, …, n] about targets with codes[m, d] by the prior of each, and make them sum to 1 again."""
        weights, known = self.weights(codes)
        product = beliefs[known] * weights[known].reshape(-1, *(1,) * (beliefs.ndim - 2), beliefs.shape[-1])
        weighed = beliefs.copy()
        weighed[known] = product / product.sum(axis=-1, keepdims=True)
        return weighed

    def weights(self, codes: Codes) -> tuple[Floats, Codes]:
        """Return (m, n) the prior of each target, ones where there is none, and the targets that have one."""
        keys = codes[:, list(self.places)].tolist()
        group = np.array([self.group_of.get(tuple(key), -1) for key in keys], np.int32)
        everyone = np.concatenate([self.probabilities, np.ones((1, self.probabilities.shape[1]))])
        return everyone[group], np.flatnonzero(group >= 0).astype(np.int32)


def read_prior(path: str, context: Context) -> Prior:
    """Read lines value;probability, or below a header column;…;value;probability those of each group."""
    lines = _Lines.of(path, context)
    attributes = context.schema.quasi_identifiers
    names = [attribute.name for attribute in attributes]
    for column in lines.columns:
        if column not in names:
            raise unknown(f"{lines.where}: {lines.shown}: column", column, names)
    places = tuple(names.index(column) for column in lines.columns)
    codes = [_codes_of(attributes[place], lines) for place in places]
    groups = _read_groups(lines, context.schema.sensitive)
    group_of: dict[tuple[int, ...], int] = {}
    for number, cells in enumerate(groups):
        found = tuple(of.get(_key(cell, of), -1) for of, cell in zip(codes, cells, strict=True))
        if found in group_of:
            raise InputError(f"{lines.where}: {lines.shown} writes one group in two ways, such as 1 and 1.0", hidden=cells)
        if -1 not in found:  # another table may know of persons whom this one does not have
            group_of[found] = number
    if not group_of:
        raise InputError(f"{lines.where}: {lines.shown} has no group of {', '.join(lines.columns)} that is in the table")
    return Prior(places, group_of, np.array(list(groups.values())))


def _read_groups(lines: _Lines, secret: Secret) -> dict[tuple[str, ...], list[float]]:
    """Return the probabilities of all sensitive values, in their order, by the cells that name a group."""
    codes = {level: code for code, level in enumerate(secret.levels)}
    groups: dict[tuple[str, ...], dict[int, float]] = {}
    for number, (*group, value, probability) in lines.rows:
        known = groups.setdefault(tuple(group), {})
        if value not in codes:
            raise lines.refuse(number, f"not one of the {len(codes)} values of {secret.name!r}", value)
        if codes[value] in known:
            raise lines.refuse(number, "the value is listed twice", value)
        known[codes[value]] = _read_probability(probability, number, lines)
    for number, known in enumerate(groups.values(), 1):
        here = f"{lines.where}: {lines.shown}" + (f", group {number} of {len(groups)}" if lines.columns else "")
        missing = [level for level, code in codes.items() if code not in known]
        if missing:
            raise InputError(f"{here}: misses {len(missing)} of the {len(codes)} values of {secret.name!r}", hidden=missing)
        total = sum(known.values())
        if abs(total - 1) > ROUNDING:
            raise InputError(f"{here}: probabilities must sum to 1; got {total:.6g}")
    return {group: [known[code] for code in codes.values()] for group, known in groups.items()}


@dataclass(frozen=True)
class _Lines:
    """The rows of a file with their numbers, and the columns that its header names before the value."""

    where: str
    shown: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[int, list[str]]]

    @classmethod
    def of(cls, path: str, context: Context) -> _Lines:
        where, shown = f"{context.where}.prior", public_url(path)
        reader = csv.reader(context.read(path, where).splitlines(), delimiter=";")
        try:
            rows = [(reader.line_num, row) for row in reader if row]
        except csv.Error as error:
            raise InputError(f"{where}: {shown}, line {reader.line_num}: not a line of value;{PROBABILITY}") from error
        header = rows.pop(0)[1] if rows and rows[0][1][-1].strip() == PROBABILITY else ["value", PROBABILITY]
        if not rows:
            raise InputError(f"{where}: {shown} is empty; expected lines value;{PROBABILITY}")
        if len(header) < 2 or len(set(header)) < len(header):
            raise InputError(f"{where}: {shown}: its header must be different columns, the value and {PROBABILITY}")
        for number, row in rows:
            if len(row) != len(header):
                raise InputError(
                    f"{where}: {shown}, line {number}: expected {len(header)} cells {';'.join(header)}; got {len(row)}"
                )
        return cls(where, shown, tuple(header[:-2]), rows)

    def refuse(self, number: int, reason: str, value: str) -> InputError:
        """Name the line, and keep its value for --show-values."""
        return InputError(f"{self.where}: {self.shown}, line {number}: {reason}", hidden=[value])


def _codes_of(attribute: Attribute, lines: _Lines) -> dict[str | float, int]:
    if attribute.unit is not None:
        raise InputError(f"{lines.where}: {lines.shown}: column {attribute.name!r} must not be dates; bin or map them first")
    is_number = attribute.kind == "numeric"
    return {float(str(level)) if is_number else str(level): code for code, level in enumerate(attribute.levels)}


def _key(cell: str, codes: Mapping[str | float, int]) -> str | float:
    """Numbers are compared as such."""
    is_number = isinstance(next(iter(codes)), float)
    return float(cell) if is_number and re.fullmatch(DECIMAL, cell) else cell


def _read_probability(cell: str, number: int, lines: _Lines) -> float:
    probability = float(cell) if re.fullmatch(DECIMAL, cell) else 0.0
    if not 0 < probability <= 1:
        raise lines.refuse(number, f"the {PROBABILITY} must be a number above 0 and at most 1", cell)
    return probability
