"""The measure `composition`: what a release reveals beside another one, of a table with some of the same persons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.conditional_frequency import counts_about
from dit_dask.config.constraints import Choice, Field, OneOf, Record, Text
from dit_dask.config.registry import Context
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.errors import InputError
from dit_dask.measures.base import (
    AuditSource,
    Entries,
    MeasureInput,
    MeasureKind,
    MeasureResult,
    ReleaseOrigin,
    Section,
)
from dit_dask.measures.composition.beliefs import ADVERSARIES, Side, attainable_delta, common_levels, measure_removals
from dit_dask.measures.composition.links import QUASI_IDENTIFIERS, SUBJECT, Intersections, Links, find_links, intersect
from dit_dask.sanitizers import is_randomised
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

PAIRS_OF_PIECE = 1_000
FIGURES = (
    "delta",
    "delta_first",
    "delta_second",
    "delta_intersection",
    "delta_evidence",
    "mean",
    "smallest_intersection",
    "smallest_intersection_rows",
    "mean_intersection",
    "k_first",
    "k_second",
    "below_both",
    "least_values",
    "homogeneous",
    "changed_values",
)
ABOUT = (
    "What this release reveals together with another one, about persons who are in both tables. Intersection: the persons of "
    "both tables who are in the same two classes; below both k: the share of persons whose intersection is smaller than the "
    "smallest class of either release; one value: the share with one sensitive value that both classes have. Delta: the "
    "largest distance when a person is left out of both tables, beside that of each release alone, for the same persons and "
    "adversaries."
)
NOBODY = "no person is in both tables"
FEW = f"fewer than {MIN_DISCLOSED_COUNT} persons are in both tables: records: true writes what would be figures of persons"


@dataclass(frozen=True)
class Composition:
    """Compares a release with one of another audit; persons are matched by subject, by a key, or by quasi-identifiers."""

    match: str
    key: str | None

    def pieces(self, inputs: MeasureInput) -> Sequence[tuple[int, int]]:
        """Divide the different pairs of records that persons have in both tables."""
        origins = _origins(inputs)
        if why_no_delta(origins) is not None:
            return [(0, 0)]
        pairs = len(_distinct_pairs(origins, self._links(origins))[0][0])
        return [(start, min(start + PAIRS_OF_PIECE, pairs)) for start in range(0, pairs, PAIRS_OF_PIECE)] or [(0, 0)]

    def find_piece(self, inputs: MeasureInput, piece: tuple[int, int]) -> Floats:
        """Return (pairs, 4): the distances without each person of a piece."""
        origins = _origins(inputs)
        if piece[0] == piece[1]:
            return np.empty((0, 4))
        records, _ = _distinct_pairs(origins, self._links(origins))
        return measure_removals(_sides(inputs, origins), [one[slice(*piece)] for one in records])

    def join(self, inputs: MeasureInput, results: Sequence[Floats]) -> MeasureResult:
        """Count the intersections, and summarise the distances."""
        origins = _origins(inputs)
        links = self._links(origins)
        persons = [origin.rows.table.persons for origin in origins]
        head: dict[str, Any] = {"in_both": links.persons, "in_first": persons[0], "in_second": persons[1]}
        head |= {"ambiguous_rows": links.ambiguous, "basis": "tables and sanitizers"}
        if not len(links.first):
            return MeasureResult(None, [], 0, head | dict.fromkeys(FIGURES) | {"reason": NOBODY})
        sides = _sides(inputs, origins)
        pairs, of_link = _distinct_pairs(origins, links)
        found = intersect(*origins, [side.release for side in sides], links)
        values = _count_values(sides, pairs)[of_link]
        more = (
            head
            | {"is_exact": found.is_exact, "attainable": {"smallest_intersection": 1}}
            | _describe_intersections(found, values, links)
        )
        changed = _secrets(origins[0], links.first) != _secrets(origins[1], links.second)
        more |= {"changed_values": float(np.mean(changed))}
        columns: dict[str, Any] = {
            "intersection": _of_rows(found.persons.astype(float), links, inputs.rows.used, np.fmin),
            "values": _of_rows(values.astype(float), links, inputs.rows.used, np.fmin),
        }
        reason = why_no_delta(origins)
        if reason is not None:
            more |= dict.fromkeys(name for name in FIGURES if name not in more)
            found_alone = more | {"basis": "releases alone", "reason": reason}
            return _withhold(MeasureResult(None, [], links.persons, found_alone, columns), persons[0])
        distances = np.concatenate(results)[of_link]
        more |= _describe_distances(distances, links)
        more["attainable"] |= {"delta": attainable_delta(sides, pairs[0])}
        columns["distance"] = _of_rows(distances[:, :2].max(axis=1), links, inputs.rows.used, np.fmax)
        return _withhold(MeasureResult(more["delta"], [], links.persons, more, columns), persons[0])

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute everything in one piece after the other."""
        return self.join(inputs, [self.find_piece(inputs, piece) for piece in self.pieces(inputs)])

    def _links(self, origins: Sequence[ReleaseOrigin]) -> Links:
        return find_links(origins[0], origins[1], self.match, self.key)


def _withhold(result: MeasureResult, persons: int) -> MeasureResult:
    """Leave out the figures of a few persons of a large table; those of a small table are personal data as a whole."""
    if not result.records < MIN_DISCLOSED_COUNT <= persons:
        return result
    more = {name: None if name in FIGURES else value for name, value in result.more.items()}
    return replace(result, value=None, more=more | {"reason": FEW})


def _origins(inputs: MeasureInput) -> tuple[ReleaseOrigin, ReleaseOrigin]:
    if inputs.origin is None:
        raise TypeError("the measure is taken of releases")
    return inputs.origin, inputs.audits["with"]


def why_no_delta(origins: Sequence[ReleaseOrigin]) -> str | None:
    """Why nobody can be left out of both tables, or None."""
    for place, origin in zip(("this audit", "the other audit"), origins, strict=True):
        procedure = origin.procedure
        if not isinstance(procedure, ReleaseProcedure):
            return f"{place} publishes no records"
        if procedure.repeats > 1 or is_randomised(procedure.sanitizer):
            return f"the releases of {place} are drawn at random: two of them differ without anybody being left out"
        if procedure.external is not None and procedure.external.match is not None:
            return f"{place} has a release alone, which does not say what is published without a person"
    return None


def _sides(inputs: MeasureInput, origins: Sequence[ReleaseOrigin]) -> list[Side]:
    """The tables with what is published of them; the first release is there already."""
    secrets = [origin.rows.table.schema.sensitive for origin in origins]
    sides = []
    for origin, levels in zip(origins, common_levels(*secrets), strict=True):
        procedure, table = origin.procedure, origin.rows.table
        if not isinstance(procedure, ReleaseProcedure):
            raise TypeError("a test whose sanitizer publishes a release has such a procedure")
        is_first = origin is inputs.origin and inputs.release is not None
        release = inputs.release if is_first and inputs.release is not None else procedure.publish(table)
        sides.append(Side(table, procedure, release, levels))
    return sides


def _distinct_pairs(origins: Sequence[ReleaseOrigin], links: Links) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the different pairs of records of links, and (links,) which of them each has: equal ones give equal distances."""
    first = origins[0].rows.index[links.first].astype(np.int64)
    second = origins[1].rows.index[links.second].astype(np.int64)
    base = origins[1].rows.table.distinct
    pairs, of_link = np.unique(first * base + second, return_inverse=True)
    return (pairs // base, pairs % base), of_link.ravel()


def _count_values(sides: Sequence[Side], pairs: Sequence[Ints]) -> Ints:
    """Return (pairs,): how many sensitive values both classes of a pair have."""
    has = []
    for side, records in zip(sides, pairs, strict=True):
        unique, place = np.unique(records, return_inverse=True)
        counts = np.array([counts_about(side.release, side.table.codes[one]).sum(axis=0) for one in unique])
        has.append((np.where(side.levels >= 0, counts[:, side.levels], 0) > 0)[place.ravel()])
    common: Ints = np.count_nonzero(has[0] & has[1], axis=1)
    return common


def _secrets(origin: ReleaseOrigin, rows: Ints) -> Any:
    table = origin.rows.table
    return np.array(table.schema.sensitive.levels, object)[table.secret[origin.rows.index[rows]]]


def _by_person(figure: Any, links: Links, reduce: np.ufunc) -> Any:
    """Reduce a figure of links to one of persons."""
    _, person = np.unique(links.person, return_inverse=True)
    persons = np.full(int(person.max()) + 1, np.nan)
    reduce.at(persons, person.ravel(), figure)
    return persons


def _of_rows(figure: Any, links: Links, rows: int, reduce: np.ufunc) -> Floats:
    """Return (rows,): a figure of the used rows of the first table; NaN where the person is not in the second."""
    of_row = np.full(rows, np.nan)
    reduce.at(of_row, links.first, figure)
    return of_row


def _describe_intersections(found: Intersections, values: Ints, links: Links) -> dict[str, Any]:
    """Persons whose rows a release does not have are not in any intersection."""
    held = found.persons > 0
    if not held.any():
        return {}
    sizes = _by_person(np.where(held, found.persons, np.nan), links, np.fmin)
    rows = _by_person(np.where(held, found.rows, np.nan), links, np.fmin)
    least = _by_person(np.where(held, values, np.nan), links, np.fmin)
    published = sizes[~np.isnan(sizes)]
    return {
        "smallest_intersection": int(published.min()),
        "smallest_intersection_rows": int(np.nanmin(rows)),
        "mean_intersection": float(published.mean()),
        "k_first": found.smallest[0],
        "k_second": found.smallest[1],
        "below_both": float((published < min(found.smallest)).mean()),
        "least_values": int(np.nanmin(least)),
        "homogeneous": float((least[~np.isnan(least)] == 1).mean()),
    }


def _describe_distances(distances: Floats, links: Links) -> dict[str, Any]:
    """The largest of all persons whose two tables could be sanitised without them."""
    failed = int(np.isnan(distances[:, 0]).sum())
    if failed:  # a maximum over some is no maximum over all
        return dict.fromkeys(("delta", "delta_first", "delta_second", "delta_intersection", "delta_evidence", "mean")) | {
            "failed_pairs": failed,
            "reason": f"the sanitizers failed without {failed} of the persons",
        }
    both = distances[:, :2].max(axis=1)
    largest = distances.max(axis=0)
    named = {f"delta_{name}": float(value) for name, value in zip(ADVERSARIES, largest, strict=False)}
    alone = {"delta_first": float(largest[2]), "delta_second": float(largest[3])}
    return {"delta": float(both.max()), **named, **alone, "mean": _mean(_by_person(both, links, np.fmax))}


def _mean(figures: Floats) -> float:
    """Return the mean, the same to the bit in any order."""
    return math.fsum(figures) / len(figures)


def _build(parameters: Mapping[str, Any], context: Context) -> Composition:
    match = parameters["match"]
    if isinstance(match, Mapping):
        return Composition("key", match["key"])
    if match == SUBJECT and context.schema.subject is None:
        raise InputError(
            f"{context.where}.match: the schema has no subject; say how persons are found in both tables: {{key: COLUMN}} "
            f"or {QUASI_IDENTIFIERS}"
        )
    return Composition(match, None)


def _key_columns(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    match = parameters["match"]
    return (match["key"],) if isinstance(match, Mapping) else ()


def _audits(parameters: Mapping[str, Any]) -> dict[str, AuditSource]:
    return {"with": AuditSource(parameters["with"], parameters["test"], _key_columns(parameters))}


COLUMNS = {
    "persons in both": "in_both",
    "smallest intersection": "smallest_intersection",
    "k": "k_first",
    "other k": "k_second",
    "below both k": "below_both",
    "one value": "homogeneous",
    "delta": "delta",
    "alone": "delta_first",
    "other alone": "delta_second",
}


def _present(entries: Entries) -> list[Section]:
    rows = [[entry.id, *(entry.more.get(name) for name in COLUMNS.values())] for entry in entries]
    reasons = sorted({f" {entry.id}: {entry.more['reason']}." for entry in entries if entry.more.get("reason")})
    return [Section("Composition", ABOUT + "".join(reasons), ("release", *COLUMNS), rows)]


KIND = MeasureKind(
    Record(
        {
            "with": Field(Text(), description="the other audit: a config file, or the folder of a finished run"),
            "test": Field(Text(), None, description="the test of the other audit whose release it is, by its id"),
            "match": Field(
                OneOf(
                    [(str, Choice((SUBJECT, QUASI_IDENTIFIERS))), (dict, Record({"key": Field(Text())}))],
                    "subject, quasi-identifiers, or a mapping {key: COLUMN}",
                ),
                SUBJECT,
                description="how persons are found in both tables; by their subjects if not given",
            ),
        }
    ),
    _build,
    columns=_key_columns,
    identifiers=_key_columns,
    audits=_audits,
    of_releases=lambda _parameters: True,
    sanitises=True,
    present=_present,
)
