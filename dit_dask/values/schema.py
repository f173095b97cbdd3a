"""What the columns of a table mean: quasi-identifiers, the sensitive attribute, and their domains."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dit_dask.values.hierarchy import Hierarchy

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats

MIN_DISCLOSED_COUNT = 10  # a value that fewer rows share is not shown: it could identify someone


@dataclass(frozen=True, eq=False)
class Attribute:
    """A quasi-identifier: code c stands for level c.

    Numeric levels are the sorted distinct values of the table and `values` their numbers; categorical
    levels are the leaves of `hierarchy` in depth-first order, so each generalised value is a range of codes.
    Dates are whole numbers of `unit` (ns or us) since 1970 in UTC; other attributes have no unit.
    """

    name: str
    kind: str
    levels: tuple[object, ...]
    values: Floats | None = None
    hierarchy: Hierarchy | None = None
    unit: str | None = None


@dataclass(frozen=True, eq=False)
class Secret:
    """The sensitive attribute: its whole domain, in the order of every belief vector.

    `has_order` tells whether the config gives that order, or bins; else values are merely sorted. `middles` are those of
    bins, on the scale of the numbers. A joint attribute has
    members, and parts[levels, members] says which values of theirs a value of it consists of.
    """

    name: str
    levels: tuple[str, ...]
    hierarchy: Hierarchy | None = None
    has_order: bool = False
    middles: Floats | None = None
    members: tuple[Secret, ...] = ()
    parts: Codes | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table has for it."""
        return tuple(member.name for member in self.members) or (self.name,)

    def codes_of(self, codes: Codes) -> list[tuple[Secret, Codes]]:
        """Its members with their own codes of each row; itself if it has none."""
        if self.parts is None:
            return [(self, codes)]
        return [(member, self.parts[codes, position]) for position, member in enumerate(self.members)]


@dataclass(frozen=True, eq=False)
class Schema:
    """The public knowledge about a table: fixed once, from all of it, and never recomputed."""

    quasi_identifiers: tuple[Attribute, ...]
    sensitive: Secret
    subject: str | None = None  # the column that says whose rows belong together; without it every row is a person

    def digest(self) -> str:
        """Fingerprint names, domains and hierarchies."""
        parts: list[object] = [self.sensitive.name, self.sensitive.levels, _shape(self.sensitive.hierarchy)]
        parts += [] if self.subject is None else [self.subject]
        for attribute in self.quasi_identifiers:
            parts += [attribute.name, attribute.kind, attribute.levels, _shape(attribute.hierarchy)]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def _shape(hierarchy: Hierarchy | None) -> object:
    return None if hierarchy is None else (hierarchy.names, hierarchy.parent.tolist())
