"""Mondrian k-anonymity and l-diversity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dit_dask.config.constraints import Choice, Field, Flag, Integer, Record
from dit_dask.config.registry import Context, Kind, Tunable
from dit_dask.errors import InputError
from dit_dask.kernels.mondrian import Rule
from dit_dask.sanitizers import mondrian_tree
from dit_dask.sanitizers.claims import Claim, KAnonymity, LDiversity
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import numpy as np

    from dit_dask.values.arrays import Ints


@dataclass(frozen=True)
class Mondrian:
    """Splits at medians and down hierarchies while every part keeps the claim."""

    claim: Claim
    rule: Rule

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """Partition the distinct records and publish each class's ranges and counts."""
        return mondrian_tree.build_release(mondrian_tree.grow(table, self.rule))

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[Release]:
        """Yield the release without each of the distinct records, or its person, without partitioning the rest again."""
        return mondrian_tree.leave_one_out(mondrian_tree.grow(table, self.rule), records)


def _build(parameters: Mapping[str, Any], context: Context) -> Mondrian:
    k, diversity = parameters["k"], parameters["l"]
    where = f"{context.where}.sanitizer"
    if (k is None) == (diversity is None):
        raise InputError(f"{where}: mondrian needs exactly one of k and l; got {'neither' if k is None else 'both'}")
    key, need = ("k", k) if k is not None else ("l", diversity)
    if need > context.persons:
        counted = "rows" if context.persons == context.rows else "persons"
        raise InputError(f"{where}.{key} must be at most the table's {context.persons} {counted}; got {need}")
    if context.persons < context.rows and parameters["variant"] != "strict":
        raise InputError(f"{where}.variant: only strict counts persons; schema.subject says that some have several rows")
    if parameters["tighten"] is False:
        _check_untightened(where, k, context)
    if k is not None:
        return Mondrian(KAnonymity(k), (k, False, parameters["variant"] == "strict"))
    return Mondrian(LDiversity(diversity), (diversity, True, parameters["tighten"] is not False))


def _check_untightened(where: str, k: int | None, context: Context) -> None:
    if k is not None:
        raise InputError(f"{where}.tighten: false is for l; k-anonymity always tightens numeric bounds")
    if context.persons < context.rows:
        raise InputError(f"{where}.tighten must be true where schema.subject says that some persons have several rows")


KIND = Kind(
    Record(
        {
            "k": Field(Integer(2), None, sweep=True, description="records, or persons, in every class"),
            "l": Field(Integer(2), None, sweep=True, description="no sensitive value above a share of 1/l in any class"),
            "variant": Field(
                Choice(("strict", "basic")),
                "strict",
                sweep=True,
                description="for k only: strict keeps k on both sides of a numeric split, basic is as published",
            ),
            "tighten": Field(
                Flag(),
                None,  # the same as true, and left out of ids and digests
                sweep=True,
                description="for l only: false publishes the bounds of the splits, as the papers did, not those of the records",
            ),
        }
    ),
    _build,
    disjoint=True,
    tunable={
        "k": Tunable((2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 150, 200, 300), "persons"),
        "l": Tunable(tuple(range(2, 11)), "secrets"),
    },
)
