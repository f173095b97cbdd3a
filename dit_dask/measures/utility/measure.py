"""The measure `utility`: what each release of a run keeps of the table, with figures of each attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dit_dask.config.constraints import Record
from dit_dask.config.registry import Context
from dit_dask.errors import InputError
from dit_dask.measures.base import Entries, MeasureInput, MeasureKind, MeasureResult, Section
from dit_dask.measures.utility.figures import attribute_penalties, measure_utility, suppressed_rows
from dit_dask.measures.utility.original import QUERIES

COLUMNS = {
    "discernibility": ("discernibility", None),
    "average class": ("average_class", None),
    "query error q0.5": ("query_error", "0.5"),
    "query error q0.95": ("query_error", "0.95"),
    "1-way TVD": ("tvd", "1"),
    "2-way TVD": ("tvd", "2"),
}


@dataclass(frozen=True)
class ReleaseUtility:
    """Compares a release with its table."""

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute all figures; those of attributes are means over all rows."""
        table, release = inputs.rows.table, inputs.release
        if release is None:
            raise InputError("utility is a measure of releases: the run has none")
        names = [attribute.name for attribute in table.schema.quasi_identifiers]
        penalties = zip(names, attribute_penalties(table, release), strict=True)
        utility = measure_utility(table, release, seed=inputs.seed)
        by_value = [{"attribute": name, "certainty_penalty": penalty} for name, penalty in penalties]
        more = {name: value for name, value in utility.document().items() if name != "average_class_over_k"}
        more |= {"queries": QUERIES, "suppressed_rows": suppressed_rows(table, release)}
        return MeasureResult(utility.certainty_penalty, by_value, table.rows, more)


def present(entries: Entries) -> list[Section]:
    """One row for each release, and one for each of its attributes."""
    shown = [entry for entry in entries if "tvd" in entry.more]
    header = ("release", "certainty penalty", *COLUMNS)
    rows = [[entry.id, entry.value, *(_cell(entry.more, *path) for path in COLUMNS.values())] for entry in shown]
    parts = [[entry.id, each["attribute"], each["certainty_penalty"]] for entry in shown for each in entry.by_value]
    text = "What is left of the table for those who analyse what is published; 0 is the original."
    return [
        Section("Utility", text, header, rows),
        Section("Utility by attribute", "", ("release", "attribute", "certainty penalty"), parts, detail=True),
    ]


def _cell(more: Mapping[str, Any], name: str, key: str | None) -> Any:
    return more[name] if key is None else more[name][key]


def _build(_parameters: Mapping[str, Any], _context: Context) -> ReleaseUtility:
    return ReleaseUtility()


KIND = MeasureKind(Record({}), _build, columns=lambda _parameters: (), of_releases=lambda _parameters: True, present=present)
