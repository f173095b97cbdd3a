"""Groups of the target's values that an attacker distinguishes: a mapping, or a level of a hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Anything, Decide, Field, Integer, MapOf, Record, Text, refuse
from dit_dask.errors import InputError
from dit_dask.storage.redaction import public_url
from dit_dask.values.hierarchy import Hierarchy, parse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

LEVEL = Record(
    {
        "hierarchy": Field(Text(), description="file of lines leaf;parent;…;*", file=True),
        "level": Field(Integer(0), 1, description="steps up from the leaves"),
    }
)


class Semantic:
    """The constraint on `semantic`: a mapping from values to groups, or {hierarchy: FILE, level: N}."""

    def check(self, value: Any, where: str) -> Any:
        """A mapping with the key `hierarchy` names a file; any other is the partition itself."""
        if not isinstance(value, Mapping):
            raise refuse(where, "a mapping from values to groups, or {hierarchy: FILE, level: N}", value)
        return LEVEL.check(value, where) if is_level(value) else MapOf(Anything(), 1).check(value, where)

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"anyOf": [LEVEL.schema(), {"type": "object", "minProperties": 1}]}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Only the level of a hierarchy has fields."""
        return LEVEL.rewrite(document, decide, where) if isinstance(document, Mapping) and is_level(document) else document


def is_level(semantic: Mapping[Any, Any]) -> bool:
    """Tell a level of a hierarchy from a mapping of values."""
    return "hierarchy" in semantic and set(semantic) <= {"hierarchy", "level"}


def groups_at(hierarchy: Hierarchy, level: int) -> dict[str, str]:
    """Map each leaf to its ancestor `level` steps up, or to the root where that is nearer."""
    groups = {}
    for node in np.flatnonzero(hierarchy.child_count == 0):
        ancestor = int(node)
        for _ in range(level):
            ancestor = ancestor if hierarchy.parent[ancestor] < 0 else int(hierarchy.parent[ancestor])
        groups[hierarchy.leaves[hierarchy.low[node]]] = hierarchy.names[ancestor]
    return groups


def resolve_groups(semantic: Mapping[Any, Any], read: Callable[[str], str]) -> Mapping[Any, Any]:
    """Return the mapping from values to groups; a level of a hierarchy becomes one."""
    if not is_level(semantic):
        return semantic
    hierarchy = semantic["hierarchy"]
    tree = hierarchy if isinstance(hierarchy, Hierarchy) else parse(read(hierarchy), public_url(str(hierarchy)))
    return groups_at(tree, semantic.get("level", 1))


def assign_groups(groups: Mapping[Any, Any], labels: Sequence[Any], where: str = "semantic") -> list[Any]:
    """Return the group of each label; every label but None, that of missing cells, must have one."""
    assigned = [None if label is None else groups.get(label, groups.get(str(label))) for label in labels]
    unassigned = sum(group is None and label is not None for group, label in zip(assigned, labels, strict=True))
    if unassigned:
        raise InputError(f"{where}: no group for {unassigned} of the target's {len(labels) - (None in labels)} values")
    return assigned


def number_groups(groups: Mapping[Any, Any], labels: Sequence[Any], where: str = "semantic") -> Ints:
    """Return (labels,): the groups, numbered."""
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(group, len(numbers)) for group in assign_groups(groups, labels, where)]
    return np.array(codes, np.int64)
