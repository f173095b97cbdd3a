"""An attacker's reading of values: a partition of the target, by a mapping or by a level of a hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Anything, Decide, Field, Integer, MapOf, Record, Text, refuse
from dit_dask.errors import InputError
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
    """Map each leaf to the node so many steps above it, or to the root where the way is shorter."""
    found = {}
    for node in np.flatnonzero(hierarchy.child_count == 0):
        place = int(node)
        for _ in range(level):
            place = place if hierarchy.parent[place] < 0 else int(hierarchy.parent[place])
        found[hierarchy.leaves[hierarchy.low[node]]] = hierarchy.names[place]
    return found


def reading(semantic: Mapping[Any, Any], read: Callable[[str], str]) -> Mapping[Any, Any]:
    """Return the mapping from values to groups; a level of a hierarchy becomes one."""
    if not is_level(semantic):
        return semantic
    hierarchy = semantic["hierarchy"]
    tree = hierarchy if isinstance(hierarchy, Hierarchy) else parse(read(hierarchy), str(hierarchy))
    return groups_at(tree, semantic.get("level", 1))


def regrouped(groups: Mapping[Any, Any], labels: Sequence[Any], where: str = "semantic") -> list[Any]:
    """Return the group of each label; every label but None, that of missing cells, must have one."""
    found = [None if label is None else groups.get(label, groups.get(str(label))) for label in labels]
    homeless = sum(group is None and label is not None for group, label in zip(found, labels, strict=True))
    if homeless:
        raise InputError(f"{where}: no group for {homeless} of the target's {len(labels) - (None in labels)} values")
    return found


def partition(groups: Mapping[Any, Any], labels: Sequence[Any], where: str = "semantic") -> Ints:
    """Return (labels,): the groups, numbered."""
    numbers: dict[Any, int] = {}
    found = [numbers.setdefault(group, len(numbers)) for group in regrouped(groups, labels, where)]
    return np.array(found, np.int64)
