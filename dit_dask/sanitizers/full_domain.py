"""Full-domain generalisation: one level for all values of an attribute, and suppression of what is still too rare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dit_dask.config.constraints import Choice, Field, ListOf, MapOf, Number, Record, refuse
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError, unknown
from dit_dask.sanitizers import lattice_search
from dit_dask.sanitizers.claims import Claim
from dit_dask.sanitizers.lattice import MOST_NODES, Bands, count_nodes
from dit_dask.sanitizers.predicates import FIELDS, TUNABLE, Predicates, build_predicates, to_fraction
from dit_dask.values.release import Release
from dit_dask.values.schema import Attribute
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import numpy as np

    from dit_dask.values.arrays import Ints


@dataclass(frozen=True)
class FullDomain:
    """The node of the lattice with the least loss whose classes have the properties, after suppression of those that have not.

    Suppressed records are one class, every attribute of which is the whole domain; it must have the properties as well.
    `suppression` is the largest share of suppressed records.
    """

    predicates: Predicates
    suppression: Fraction = Fraction(0)
    loss: str = "certainty"
    bands: Bands = ()

    @property
    def claim(self) -> Claim:
        """What every class must satisfy, that of suppressed records too."""
        return self.predicates.claim

    @property
    def goal(self) -> lattice_search.Goal:
        """What the search needs to know."""
        return lattice_search.Goal(self.predicates, self.suppression, self.loss, self.bands)

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """Generalise every record to the levels of the best node."""
        return lattice_search.publish(table, self.goal)

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[Release]:
        """Yield the release without each record: all best nodes are found in one search."""
        return lattice_search.leave_one_out(table, self.goal, records)


def _build(parameters: Mapping[str, Any], context: Context) -> FullDomain:
    where = f"{context.where}.sanitizer"
    if context.persons < context.rows:
        raise InputError(f"{where}: full-domain counts rows; schema.subject says that some persons have several")
    predicates = build_predicates(parameters, context)
    suppression, widths = parameters["suppression"] or 0.0, parameters["bands"]
    if not 0 <= suppression < 1:
        raise refuse(f"{where}.suppression", "a share of at least 0 and below 1", suppression)
    names = {one.name: one for one in context.schema.quasi_identifiers}
    for name, given in widths.items():
        _check_bands(names, name, given, f"{where}.bands")
    bare = [name for name, one in names.items() if one.hierarchy is None and name not in widths]
    if bare:
        hint = f"{{{bare[0]}: [5, 10]}}"
        needed = f"full-domain needs a hierarchy of every attribute, or bands such as {hint}"
        raise InputError(f"{where}: {needed}; missing for {', '.join(bare)}")
    bands = tuple((name, tuple(given)) for name, given in sorted(widths.items()))
    heights, nodes = count_nodes(context.schema, bands)
    if nodes > MOST_NODES:
        shape = " × ".join(map(str, heights))
        raise InputError(f"{where}: the lattice has {nodes:,} nodes ({shape}); at most {MOST_NODES:,} can be searched")
    return FullDomain(predicates, to_fraction(suppression), parameters["loss"] or "certainty", bands)


def _check_bands(attributes: Mapping[str, Attribute], name: str, widths: list[float], where: str) -> None:
    if name not in attributes:
        raise unknown(where, name, attributes)
    if attributes[name].kind != "numeric":
        raise InputError(f"{where}.{name}: bands are for numeric attributes; this one is {attributes[name].kind}")
    exact = [to_fraction(width) for width in widths]
    if any(wide % narrow or wide <= narrow for narrow, wide in pairwise(exact)):
        raise InputError(f"{where}.{name}: every width must be a multiple of the one before")


KIND = Kind(
    Record(
        {
            **FIELDS,
            "suppression": Field(Number(), None, sweep=True, description="the largest share of records that may be suppressed"),
            "loss": Field(
                Choice(lattice_search.LOSSES),
                None,
                sweep=True,
                description="what is least: certainty, the default, or discernibility",
            ),
            "bands": Field(
                MapOf(ListOf(Number(0), 1)), {}, description="widths of intervals of numeric attributes, narrowest first"
            ),
        }
    ),
    _build,
    tunable=TUNABLE,
)
