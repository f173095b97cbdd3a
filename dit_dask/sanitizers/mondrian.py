"""Mondrian k-anonymity and l-diversity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dit_dask.errors import InputError
from dit_dask.kernels import mondrian as kernel
from dit_dask.registry import Context, Kind
from dit_dask.release import Release, Tree
from dit_dask.sanitizers.claims import Claim, KAnonymity, LDiversity
from dit_dask.schema import Schema
from dit_dask.spec import Choice, Field, Integer, Record
from dit_dask.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Domain(NamedTuple):
    """The attributes as the flat arrays that kernels.mondrian describes."""

    numbers: "NDArray[np.float64]"
    attributes: "NDArray[np.int32]"
    spans: "NDArray[np.float64]"
    tree: "NDArray[np.int32]"
    node_widths: "NDArray[np.float64]"


@dataclass(frozen=True)
class Mondrian:
    """Splits at medians and down hierarchies while every part keeps the claim."""

    claim: Claim
    rule: kernel.Rule

    def release(self, table: Table, _rng: "np.random.Generator") -> Release:
        """Partition the distinct records and publish each class's ranges and counts."""
        domain = flat_domain(table.schema)
        secrets = len(table.schema.sensitive.levels)
        most = max(2, int(domain.tree[:, 3].max()))
        order, nodes, states = kernel.partition(table.codes, table.secret, table.weights, self.rule, *domain, secrets, most)
        classes = np.flatnonzero(nodes[:, 0] < 0)
        classes = classes[np.argsort(nodes[classes, 3])]
        low, high, counts = kernel.publish(
            table.secret, table.weights, order, nodes[classes, 3:5], states[classes], domain.attributes, domain.tree, secrets
        )
        return Release(table.schema, low, high, counts, _tree(nodes, nodes[classes, 3]))


def _tree(nodes: "NDArray[np.int32]", class_starts: "NDArray[np.int32]") -> Tree:
    first = np.searchsorted(class_starts, nodes[:, 3]).astype(np.int32)
    last = np.searchsorted(class_starts, nodes[:, 4]).astype(np.int32)
    return Tree(nodes[:, 0], nodes[:, 1], nodes[:, 2], nodes[:, 5], nodes[:, 6], first, last - first)


@lru_cache(maxsize=8)
def flat_domain(schema: Schema) -> Domain:
    """Lay the attributes out for the kernels, once for each schema."""
    numbers: list[NDArray[np.float64]] = [np.zeros(0)]
    trees: list[NDArray[np.int32]] = [np.zeros((1, 4), np.int32)]  # a placeholder where no attribute is categorical
    widths: list[NDArray[np.float64]] = [np.zeros(1)]
    attributes = np.zeros((len(schema.quasi_identifiers), 3), np.int32)
    spans = np.zeros(len(attributes))
    for place, attribute in enumerate(schema.quasi_identifiers):
        attributes[place] = -1, 0, len(attribute.levels)
        if attribute.values is not None:
            attributes[place, 0] = sum(map(len, numbers))
            spans[place] = attribute.values[-1] - attribute.values[0]
            numbers.append(attribute.values)
        elif attribute.hierarchy is not None:
            hierarchy, base = attribute.hierarchy, sum(map(len, trees))
            attributes[place, 1] = base
            columns = (hierarchy.low, hierarchy.high, hierarchy.first_child + base, hierarchy.child_count)
            trees.append(np.column_stack(columns).astype(np.int32))
            leaves = hierarchy.high - hierarchy.low + 1
            widths.append(np.where(hierarchy.child_count > 0, leaves / len(hierarchy.leaves), 0.0))
    return Domain(np.concatenate(numbers), attributes, spans, np.concatenate(trees), np.concatenate(widths))


def _build(parameters: Mapping[str, Any], context: Context) -> Mondrian:
    k, diversity = parameters["k"], parameters["l"]
    where = f"{context.where}.sanitizer"
    if (k is None) == (diversity is None):
        raise InputError(f"{where}: mondrian needs exactly one of k and l; got {'neither' if k is None else 'both'}")
    key, need = ("k", k) if k is not None else ("l", diversity)
    if need > context.rows:
        raise InputError(f"{where}.{key} must be at most the table's {context.rows} rows; got {need}")
    if k is not None:
        return Mondrian(KAnonymity(k), (k, False, parameters["variant"] == "strict"))
    return Mondrian(LDiversity(diversity), (diversity, True, True))


KIND = Kind(
    Record(
        {
            "k": Field(Integer(2), None, sweep=True, about="records in every class"),
            "l": Field(Integer(2), None, sweep=True, about="no sensitive value above a share of 1/l in any class"),
            "variant": Field(
                Choice(("strict", "basic")),
                "strict",
                sweep=True,
                about="for k only: strict keeps k on both sides of a numeric split, basic is as published",
            ),
        }
    ),
    _build,
)
