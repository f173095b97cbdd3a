"""The measure `reidentification`: prosecutor, journalist and marketer risk of the original and of every release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Field, Integer, Record
from dit_dask.config.registry import Context
from dit_dask.errors import InputError
from dit_dask.measures.applicability import NO_PERSONS, is_about_persons
from dit_dask.measures.base import OTHER_TABLE, Entries, MeasureInput, MeasureKind, MeasureResult, Section, Source
from dit_dask.measures.reidentification.population import count_covered
from dit_dask.measures.reidentification.risks import RiskFigures, class_sizes, expected_inverse, person_risks
from dit_dask.measures.reidentification.uniqueness import SizeHistogram, estimate_uniques

if TYPE_CHECKING:
    from dit_dask.measures.reidentification.risks import ClassSizes
    from dit_dask.values.arrays import Floats
    from dit_dask.values.table import Table

ABOUT = (
    "The risk that a published row is linked to the right person by somebody who knows the quasi-identifiers. Prosecutor: one "
    "who knows that the person is in the table (1 / persons of the class). Journalist: one who does not (1 / persons of the "
    "class in the population). Marketer: one who links everybody (the mean). Persons who are unique among the published rows, "
    "and in the population as estimated. Risks are not about persons if the release has synthetic records or noisy counts: "
    "nobody's row is there to be found."
)


@dataclass(frozen=True)
class ReidentificationMeasure:
    """Risks of every person; those of a population where its size or a table of it is given."""

    population_size: int | None
    has_population: bool
    quasi_identifiers: tuple[str, ...]

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute the risks on one release."""
        release, table = inputs.release, inputs.rows.table
        if release is None:
            raise TypeError("the measure is taken of releases")
        sizes = class_sizes(release, table)
        covered = sizes.holder >= 0
        prosecutor = np.where(covered, 1 / sizes.size[sizes.holder], 0.0)
        figures = RiskFigures.of(*person_risks(prosecutor, table))
        more: dict[str, Any] = {
            "prosecutor": figures.largest,
            "marketer": figures.mean,
            **figures.over,
            "smallest_class": int(sizes.size.min()),
            "classes": len(sizes.size),
            "sample_uniques": int((sizes.size == 1).sum()),
            "persons": table.persons,
            "is_exact": sizes.is_exact,
        }
        more["attainable"] = dict.fromkeys(("value", "prosecutor", "marketer", *figures.over, "smallest_class"), 1)
        more |= {} if is_about_persons(inputs) else {"note": NO_PERSONS}
        columns = {"prosecutor": prosecutor}
        more |= self._in_population(inputs, sizes, table, columns)
        return MeasureResult(figures.largest, [], inputs.rows.used, more, columns, inputs.rows.index)

    def _in_population(self, inputs: MeasureInput, sizes: ClassSizes, table: Table, columns: dict[str, Any]) -> dict[str, Any]:
        """What the size of a population, or a table of it, adds."""
        if self.has_population:
            assert inputs.release is not None  # noqa: S101 - checked by the caller  # nosec B101
            covered, persons = count_covered(inputs.release, inputs.tables["population"])
            inverse = 1 / np.maximum(covered, sizes.size)  # whoever is published is in the population
            more = {"population": persons, "k_map": int(covered.min()), "population_source": "table"}
            unknown = int((covered < sizes.size).sum())
            more |= {"classes_beyond_population": unknown}
        elif self.population_size is not None:
            persons = self.population_size
            inverse = expected_inverse(sizes.size, table.persons / persons)
            more = {"population": persons, "population_source": "size"}
        else:
            return {}
        risk = np.where(sizes.holder >= 0, inverse[sizes.holder], 0.0)
        figures = RiskFigures.of(*person_risks(risk, table))
        columns["journalist"] = risk
        more |= {"journalist": figures.largest, "journalist_mean": figures.mean}
        more |= {f"journalist_{name}": share for name, share in figures.over.items()}
        return more | self._uniqueness(sizes.size, persons)

    @staticmethod
    def _uniqueness(size: Any, persons: int) -> dict[str, Any]:
        found = estimate_uniques(SizeHistogram.of(size, max(persons, int(size.sum()))))
        estimates: Mapping[str, Floats | float | None] = {
            "zayatz": found.zayatz,
            "negative_binomial": found.negative_binomial,
            "pitman": found.pitman,
        }
        share = None if found.estimate is None else found.estimate / persons
        return {"population_uniques": share, "uniqueness_model": found.chosen, "uniqueness_estimates": estimates}


def _build(parameters: Mapping[str, Any], context: Context) -> ReidentificationMeasure:
    size, table = parameters["population_size"], parameters["population"]
    if size is not None and table is not None:
        raise InputError(f"{context.where}: population and population_size exclude each other; got both")
    if size is not None and size < context.persons:
        raise InputError(
            f"{context.where}.population_size must be at least the {context.persons} persons of the table; got {size}"
        )
    names = tuple(one.name for one in context.schema.quasi_identifiers)
    return ReidentificationMeasure(size, table is not None, names)


def _tables(parameters: Mapping[str, Any]) -> dict[str, Source]:
    other = parameters["population"]
    return {} if other is None else {"population": Source.of(other)}


def _present(entries: Entries) -> list[Section]:
    header = (
        "re-identification",
        "prosecutor",
        "marketer",
        "journalist",
        "over 9%",
        "uniques",
        "population uniques",
        "k-map",
        "about persons",
    )
    rows = []
    for entry in entries:
        more = entry.more
        figures = [more.get(name) for name in ("prosecutor", "marketer", "journalist", "over_9_percent")]
        uniques = (more["sample_uniques"], more.get("population_uniques"), more.get("k_map"))
        rows.append([entry.id, *figures, *uniques, "no" if "note" in more else "yes"])
    return [Section("Re-identification", ABOUT, header, rows)]


KIND = MeasureKind(
    Record(
        {
            "population": Field(OTHER_TABLE, None, description="a table of the population with the quasi-identifiers"),
            "population_size": Field(Integer(1), None, description="persons of the population that the table was drawn from"),
        }
    ),
    _build,
    columns=lambda _parameters: (),
    tables=_tables,
    of_releases=lambda _parameters: True,
    present=_present,
)
