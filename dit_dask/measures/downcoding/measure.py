"""The measure `downcoding`: how many cells of a release are proved finer than published, at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dit_dask.config.constraints import Choice, Field, Record
from dit_dask.config.registry import Context
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.measures.base import Entries, MeasureInput, MeasureKind, MeasureResult, Section
from dit_dask.measures.downcoding.proofs import CELLS, Proofs, prove
from dit_dask.measures.reidentification.risks import class_sizes

TIGHT = "tight-bounds"
FIGURES = ("proved_cells", "generalised_cells", "classes_proved", "mixed_attributes")
ABOUT = (
    "A sanitizer that generalises no more than it must reveals something by that alone. Proved: generalised cells that are "
    "finer than published in every table that this release could be made from, at least; whose they are within a class is not "
    "known. "
    "Mixed: attributes that are proved to have different values within some class."
)


@dataclass(frozen=True)
class Downcoding:
    """Counts what minimality proves; `assume` says what is known of a tool that is not ours."""

    assume: str | None

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Count the proved cells of one release."""
        if inputs.origin is None or inputs.release is None or not isinstance(inputs.origin.procedure, ReleaseProcedure):
            raise TypeError("the measure is taken of releases")
        release, table, sanitizer = inputs.release, inputs.origin.rows.table, inputs.origin.procedure.sanitizer
        proofs, reason = prove(sanitizer, release, table, is_tight=self.assume == TIGHT)
        if proofs is None:
            return MeasureResult(None, [], inputs.rows.used, dict.fromkeys(FIGURES) | {"reason": reason})
        size = release.counts.sum(axis=1)
        proved, cells = CELLS * proofs.proved, np.where(proofs.generalised, size[:, None], 0)
        more: dict[str, Any] = {
            "proved_cells": int(proved.sum()),
            "generalised_cells": int(cells.sum()),
            "classes_proved": float(proofs.proved.any(axis=1).mean()),
            "mixed_attributes": int(proofs.mixed.sum()),
            "basis": reason,
            "bound": "at least",
        }
        names = [attribute.name for attribute in release.schema.quasi_identifiers]
        by_value = [
            {"attribute": name, "proved": _share(int(proved[:, place].sum()), int(cells[:, place].sum()))}
            for place, name in enumerate(names)
        ]
        value = _share(more["proved_cells"], more["generalised_cells"])
        if value is None:
            more["reason"] = "no cell is generalised"
        # of one class at most two cells of each attribute: a limit above that could not be exceeded
        more["attainable"] = {"value": CELLS / int(size.sum()) if proofs.of_one_class else 1}
        columns = {"proved": _of_records(inputs, proofs)}
        return MeasureResult(value, by_value, inputs.rows.used, more, columns, inputs.origin.rows.index)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _of_records(inputs: MeasureInput, proofs: Proofs) -> Any:
    """Return (records,): in how many attributes of its class two cells are proved; 0 for a record that no class covers."""
    if inputs.origin is None or inputs.release is None:
        raise TypeError("the measure is taken of releases")
    keys, group = np.unique(inputs.release.published.keys(), axis=0, return_inverse=True)
    attributes = np.zeros(len(keys), np.int64)
    np.maximum.at(attributes, group.ravel(), proofs.proved.sum(axis=1))
    holder = class_sizes(inputs.release, inputs.origin.rows.table).holder
    return np.where(holder >= 0, attributes[holder], 0)


def _present(entries: Entries) -> list[Section]:
    header = ("release", "proved", "proved cells", "generalised cells", "classes with a proof", "mixed attributes")
    rows = [[entry.id, entry.value, *(entry.more.get(name) for name in FIGURES)] for entry in entries]
    reasons = sorted({f" {entry.id}: {entry.more['reason']}." for entry in entries if entry.more.get("reason")})
    parts = [[entry.id, one["attribute"], one["proved"]] for entry in entries for one in entry.by_value]
    return [
        Section("Downcoding", ABOUT + "".join(reasons), header, rows),
        Section("Downcoding by attribute", "", ("release", "attribute", "proved"), parts, detail=True),
    ]


def _build(parameters: Mapping[str, Any], _context: Context) -> Downcoding:
    return Downcoding(parameters["assume"])


KIND = MeasureKind(
    Record(
        {
            "assume": Field(
                Choice((TIGHT,)),
                None,
                description="for releases of other tools: tight-bounds says that intervals and nodes are the narrowest",
            )
        }
    ),
    _build,
    columns=lambda _parameters: (),
    of_releases=lambda _parameters: True,
    sanitises=True,
    present=_present,
)
