"""Tables with one attribute coarser: one level up its hierarchy, in bands, or gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.bins import equal_frequency
from dit_dask.values.hierarchy import Hierarchy, build
from dit_dask.values.release import Ranges, Release
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Rows, Table, count_persons, recode

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Ints

COARSER, DROPPED, BANDS = "coarser", "dropped", "bands"
BAND_COUNTS = (10, 5)


@dataclass(frozen=True)
class Alternative:
    """What is done to one attribute before the table is sanitised; `bands` of equal frequency, where there are any."""

    attribute: str
    change: str
    bands: int | None = None

    @property
    def label(self) -> str:
        """The change in words."""
        words = {COARSER: "one level coarser", DROPPED: "dropped", BANDS: f"in {self.bands} bands"}
        return f"{self.attribute} {words[self.change]}"

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {"attribute": self.attribute, "change": self.change} | ({} if self.bands is None else {"bands": self.bands})


def alternatives(table: Table) -> list[Alternative]:
    """List every change that leaves something to publish and is not the same as another: attributes in schema order."""
    found, can_drop = [], len(table.schema.quasi_identifiers) > 1
    for attribute in table.schema.quasi_identifiers:
        left = len(coarser_levels(attribute)[0].levels)
        if left > 1:
            found.append(Alternative(attribute.name, COARSER))
        if attribute.values is not None:
            found += [Alternative(attribute.name, BANDS, count) for count in BAND_COUNTS if count < left]
        if can_drop and len(attribute.levels) > 1:
            found.append(Alternative(attribute.name, DROPPED))
    return found


def change_rows(rows: Rows, alternative: Alternative) -> Rows:
    """Return the same rows with an attribute changed; those of one sensitive attribute only, and without cells."""
    table, index = change_table(rows.table, alternative)
    place = index[np.asarray(rows.index)]
    return replace(rows, table=table, index=place, multiplicity=count_persons(table)[place], frame=None, further=())


def change_table(table: Table, alternative: Alternative) -> tuple[Table, Ints]:
    """Change one attribute; also return which record of the new table each old one became."""
    attributes = list(table.schema.quasi_identifiers)
    place = [attribute.name for attribute in attributes].index(alternative.attribute)
    if alternative.change == DROPPED:
        kept = [position for position in range(len(attributes)) if position != place]
        schema = replace(table.schema, quasi_identifiers=tuple(attributes[position] for position in kept))
        return recode(table, schema, table.codes[:, kept])
    changed, code_of = _recoded_attribute(table, place, alternative)
    attributes[place], codes = changed, table.codes.copy()
    codes[:, place] = code_of[table.codes[:, place]]
    return recode(table, replace(table.schema, quasi_identifiers=tuple(attributes)), codes)


def _recoded_attribute(table: Table, place: int, alternative: Alternative) -> tuple[Attribute, Codes]:
    """Return the attribute as it is after a change that keeps it, and (levels,) the new code of each old one."""
    attribute = table.schema.quasi_identifiers[place]
    if alternative.bands is None:
        return coarser_levels(attribute)
    weights = np.bincount(table.codes[:, place], weights=table.weights, minlength=len(attribute.levels)).astype(np.int64)
    code_of = equal_frequency(weights, alternative.bands)
    return _join_neighbours(attribute, code_of), code_of


def widen(release: Release, table: Table, alternative: Alternative) -> Release | None:
    """A release of the changed table in terms of the table before: what it publishes of the attribute is all that was joined.

    None where it does not publish ranges of codes.
    """
    if not isinstance(release.published, Ranges):
        return None
    names = [attribute.name for attribute in table.schema.quasi_identifiers]
    place, low, high = names.index(alternative.attribute), release.published.low, release.published.high
    if alternative.change == DROPPED:
        last = len(table.schema.quasi_identifiers[place].levels) - 1
        wide = np.insert(low, place, 0, axis=1), np.insert(high, place, last, axis=1)
    else:
        attribute, code_of = _recoded_attribute(table, place, alternative)
        joined = [np.flatnonzero(code_of == code) for code in range(len(attribute.levels))]
        ends = np.array([(codes[0], codes[-1]) for codes in joined], np.int32)
        wide = low.copy(), high.copy()
        wide[0][:, place], wide[1][:, place] = ends[low[:, place], 0], ends[high[:, place], 1]
    return Release(table.schema, Ranges(*wide), release.counts)


def one_level_coarser(table: Table) -> list[Alternative]:
    """For each attribute that can be coarser, the change by one level; dropping it where it has no level between."""
    first: dict[str, Alternative] = {}
    for found in alternatives(table):
        if found.change in (COARSER, DROPPED):
            first.setdefault(found.attribute, found)
    return list(first.values())


def coarser_levels(attribute: Attribute) -> tuple[Attribute, Codes]:
    """Return the attribute one level coarser, and (levels,) the new code of each old one.

    A leaf of a hierarchy becomes the node above it, unless that is the root and other leaves are deeper. On a scale, which has
    no levels, each two neighbouring values become one.
    """
    if attribute.hierarchy is None or attribute.values is not None:
        code_of = (np.arange(len(attribute.levels)) // 2).astype(np.int32)
        return _join_neighbours(attribute, code_of), code_of
    paths = attribute.hierarchy.paths()
    deepest = max(map(len, paths))
    shorter = [path[1:] if len(path) > 2 or deepest <= 2 else path for path in paths]
    tree = build(list(dict.fromkeys(shorter))) if deepest > 2 else _single(shorter[0][-1])
    codes = {path: code for code, path in enumerate(tree.paths())}
    code_of = np.array([codes[path] if path in codes else codes[path[0], *path] for path in shorter], np.int32)
    return Attribute(attribute.name, attribute.kind, tree.leaves, None, tree), code_of


def _single(name: str) -> Hierarchy:
    """A hierarchy whose root is its only value."""
    one, none = np.zeros(1, np.int32), np.full(1, -1, np.int32)
    return Hierarchy((name,), (name,), none, one, one, one, one)


def _join_neighbours(attribute: Attribute, code_of: Codes) -> Attribute:
    """The bands of neighbouring levels as levels; the number of a band is the middle of its ends."""
    if attribute.values is None:
        raise TypeError("a categorical attribute has no scale")
    size = int(code_of.max()) + 1
    first = np.searchsorted(code_of, np.arange(size))
    last = np.searchsorted(code_of, np.arange(size), "right") - 1
    levels = _labels(attribute.levels, first.tolist(), last.tolist())
    middles = attribute.values[first] / 2 + attribute.values[last] / 2
    return Attribute(attribute.name, attribute.kind, levels, middles, unit=attribute.unit)


def _labels(levels: Sequence[object], first: Sequence[int], last: Sequence[int]) -> tuple[str, ...]:
    ends = zip(first, last, strict=True)
    return tuple(f"{levels[low]}" if low == high else f"[{levels[low]}, {levels[high]}]" for low, high in ends)
