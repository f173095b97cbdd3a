"""Mondrian k-anonymity and l-diversity."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dit_dask.errors import InputError
from dit_dask.hierarchy import Hierarchy
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
    turns: "NDArray[np.int32]"
    node_widths: "NDArray[np.float64]"


@dataclass(frozen=True)
class Mondrian:
    """Splits at medians and down hierarchies while every part keeps the claim."""

    claim: Claim
    rule: kernel.Rule

    def release(self, table: Table, _rng: "np.random.Generator") -> Release:
        """Partition the distinct records and publish each class's ranges and counts."""
        rows = flat_rows(table)
        domain, secrets = flat_domain(table.schema), len(table.schema.sensitive.levels)
        order, nodes = kernel.partition(rows, self.rule, *domain, secrets)
        classes = np.flatnonzero(nodes[:, kernel.ATTRIBUTE] < 0)
        classes = classes[np.argsort(nodes[classes, kernel.START])]
        counts = kernel.count_secrets(rows, order, nodes[classes, kernel.START : kernel.STOP + 1], secrets)
        ranges = nodes[classes, kernel.STATE + 2 * len(domain.spans) :]
        tree = _tree(nodes, nodes[classes, kernel.START])
        return Release(table.schema, ranges[:, ::2].copy(), ranges[:, 1::2].copy(), counts, tree)


def flat_rows(table: Table) -> "NDArray[np.int32]":
    """Lay the distinct records out for the kernels: codes, secret, weight."""
    rows = np.empty((table.distinct, table.codes.shape[1] + 2), np.int32)
    rows[:, :-2], rows[:, -2], rows[:, -1] = table.codes, table.secret, table.weights
    return rows


def _tree(nodes: "NDArray[np.int32]", class_starts: "NDArray[np.int32]") -> Tree:
    first = np.searchsorted(class_starts, nodes[:, kernel.START]).astype(np.int32)
    last = np.searchsorted(class_starts, nodes[:, kernel.STOP]).astype(np.int32)
    header = nodes[:, : kernel.STATE].T.copy()
    return Tree(
        header[kernel.ATTRIBUTE], header[kernel.FIRST], header[kernel.COUNT], header[kernel.LEAST], header[kernel.MOST],
        first, last - first,
    )


@lru_cache(maxsize=8)
def flat_domain(schema: Schema) -> Domain:
    """Lay the attributes out for the kernels, once for each schema."""
    numbers: list[NDArray[np.float64]] = [np.zeros(0)]
    trees: list[NDArray[np.int32]] = [np.zeros((1, 5), np.int32)]  # a placeholder where no attribute is categorical
    turns: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    widths: list[NDArray[np.float64]] = [np.zeros(1)]
    attributes = np.zeros((len(schema.quasi_identifiers), 4), np.int32)
    spans = np.zeros(len(attributes))
    for place, attribute in enumerate(schema.quasi_identifiers):
        attributes[place] = -1, 0, len(attribute.levels), -1
        if attribute.values is not None:
            attributes[place, 0] = sum(map(len, numbers))
            spans[place] = attribute.values[-1] - attribute.values[0]
            numbers.append(attribute.values)
        elif attribute.hierarchy is not None:
            hierarchy, base = attribute.hierarchy, sum(map(len, trees))
            attributes[place, 1], attributes[place, 3] = base, sum(map(len, turns))
            depth = _depths(hierarchy)
            columns = (hierarchy.low, hierarchy.high, hierarchy.first_child + base, hierarchy.child_count, depth)
            trees.append(np.column_stack(columns).astype(np.int32))
            turns.append(_turns(hierarchy, depth))
            leaves = hierarchy.high - hierarchy.low + 1
            widths.append(np.where(hierarchy.child_count > 0, leaves / len(hierarchy.leaves), 0.0))
    flat = (np.concatenate(numbers), attributes, spans, np.concatenate(trees), np.concatenate(turns), np.concatenate(widths))
    return Domain(*flat)


def _depths(hierarchy: Hierarchy) -> "NDArray[np.int32]":
    """Return how far below the root each node is; parents come before their children."""
    depth = np.zeros(len(hierarchy.parent), np.int32)
    for node, parent in enumerate(hierarchy.parent.tolist()):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
    return depth


def _turns(hierarchy: Hierarchy, depth: "NDArray[np.int32]") -> "NDArray[np.int32]":
    """Return, for each depth and code one after the other, which child of its ancestor there leads to the code."""
    turns = np.zeros((depth.max() + 1, len(hierarchy.leaves)), np.int32)
    for node in range(1, len(depth)):
        parent = hierarchy.parent[node]
        turns[depth[parent], hierarchy.low[node] : hierarchy.high[node] + 1] = node - hierarchy.first_child[parent]
    return turns.ravel()


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
