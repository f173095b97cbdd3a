"""Mondrian with k-anonymity, three forms of l-diversity and t-closeness, alone and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask.config.constraints import Choice, Field, Flag, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError
from dit_dask.sanitizers import mondrian_tree
from dit_dask.sanitizers.claims import Claim
from dit_dask.sanitizers.predicates import FIELDS, TUNABLE, Predicates, build_predicates
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import numpy as np

    from dit_dask.values.arrays import Ints


@dataclass(frozen=True)
class Mondrian:
    """Splits at medians and down hierarchies while every part keeps the claim."""

    predicates: Predicates

    @property
    def claim(self) -> Claim:
        """What every class must satisfy."""
        return self.predicates.claim

    def release(self, table: Table, _rng: np.random.Generator) -> Release:
        """Partition the distinct records and publish each class's ranges and counts."""
        return mondrian_tree.build_release(mondrian_tree.grow(table, self.predicates))

    def leave_one_out(self, table: Table, records: Ints) -> Iterator[Release]:
        """Yield the release without each of the distinct records, or its person, without partitioning the rest again."""
        if self.predicates.t is None:
            yield from mondrian_tree.leave_one_out(mondrian_tree.grow(table, self.predicates), records)
        elif table.subject is None:
            yield from mondrian_tree.leave_one_out_by_secret(table, self.predicates, records)
        else:  # every person changes the distribution that classes are compared to in a way of its own
            for record in records:
                yield mondrian_tree.build_release(mondrian_tree.partition(table.without(int(record)), self.predicates))


def _build(parameters: Mapping[str, Any], context: Context) -> Mondrian:
    where, is_strict = f"{context.where}.sanitizer", parameters["variant"] == "strict"
    built = build_predicates(parameters, context)
    is_l_alone = built == Predicates(l=built.l)  # whose splits are checked on both sides in either variant
    predicates = replace(built, strict=is_strict or is_l_alone, tighten=parameters["tighten"] is not False)
    if not is_strict and context.persons < context.rows:
        raise InputError(f"{where}.variant: only strict counts persons; schema.subject says that some have several rows")
    if not predicates.strict and predicates.counts_secrets:
        raise InputError(f"{where}.variant: basic is for k alone")
    if parameters["tighten"] is False:
        _check_untightened(where, predicates, context)
    return Mondrian(predicates)


def _check_untightened(where: str, predicates: Predicates, context: Context) -> None:
    if predicates != Predicates(l=predicates.l, tighten=False):
        raise InputError(f"{where}.tighten: false is for l alone; other properties always tighten numeric bounds")
    if context.persons < context.rows:
        raise InputError(f"{where}.tighten must be true where schema.subject says that some persons have several rows")


KIND = Kind(
    Record(
        {
            **FIELDS,
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
    tunable=TUNABLE,
)
