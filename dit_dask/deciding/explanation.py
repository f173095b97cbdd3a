"""Why a person's record changes what is believed about them, found by brute force, and what would help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.classifier import training_threads
from dit_dask.adversaries.narrowest_class import are_narrowest
from dit_dask.audit.build import ReadText
from dit_dask.audit.statistics import plain
from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.deciding.changed_tests import Skipped, change_test
from dit_dask.deciding.splits import SplitChange, find_changed_split
from dit_dask.engines import ENGINES, Influence, ReleaseProcedure
from dit_dask.engines.brute_force import learn
from dit_dask.engines.influence import compare
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import place_records
from dit_dask.values.coarsening import one_level_coarser
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Codes, Floats, Ints

AGREEMENT = 1e-9  # a machine of another kind may round the last bits of a belief in another way
MOST_REMOVALS = 100_000  # of persons, for what leaving persons out does, where every removal is a release


@dataclass(frozen=True)
class ClassSize:
    """The class that a target falls in: its rows, the persons who have them if that is known, and its sensitive values.

    `covering` counts the classes that cover the target, of which this is the narrowest.
    """

    rows: int
    persons: int | None
    values: int
    covering: int = 1


@dataclass(frozen=True)
class BeliefShift:
    """What one adversary believes of the true value with and without the person; None where only a shift is known."""

    adversary: str
    distance: float
    gain: float
    belief: float | None
    belief_without: float | None


@dataclass(frozen=True)
class Explanation:
    """One of the worst persons of a test, by the row that has the largest distance.

    `coarser` has the distance that is left if one attribute is one level coarser, the smallest first; `delta_without` is the
    delta of the others if this person is left out of the table.
    """

    record: int
    row: int
    multiplicity: int
    rows: int
    distance: float
    adversary: str
    gain: float
    with_person: ClassSize
    without_person: ClassSize
    split: SplitChange | None
    beliefs: Sequence[BeliefShift]
    coarser: Mapping[str, float]
    delta: float
    delta_without: float | None
    values: Mapping[str, str] | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)  # attributes that were not made coarser, and why

    def document(self) -> dict[str, Any]:
        """As JSON."""
        shown = asdict(self) | {"coarser": {name: plain(one) for name, one in self.coarser.items()}}
        shown["helps_most"] = next(iter(self.coarser), None)
        numbers = {name: plain(getattr(self, name)) for name in ("distance", "gain", "delta", "delta_without")}
        shown["beliefs"] = [asdict(one) | {"distance": plain(one.distance)} for one in self.beliefs]
        return {name: value for name, value in (shown | numbers).items() if name != "values" or value is not None}

    def flat(self) -> dict[str, Any]:
        """As one row of a data frame."""
        worst = next(one for one in self.beliefs if one.adversary == self.adversary)
        sizes = {"": self.with_person, "_without": self.without_person}
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("record", "row", "multiplicity", "rows")}
        columns |= {"distance": self.distance, "adversary": self.adversary, "gain": self.gain}
        columns |= {"belief": worst.belief, "belief_without": worst.belief_without}
        for end, size in sizes.items():
            columns |= {f"class_{name}{end}": value for name, value in asdict(size).items()}
        columns["split_level"] = None if self.split is None else self.split.level
        columns["split_attribute"] = None if self.split is None else self.split.attribute
        columns["split_change"] = None if self.split is None else self.split.change
        helpful = next(iter(self.coarser.items()), (None, None))
        columns |= {"helps_most": helpful[0], "distance_if_coarser": helpful[1]}
        return (
            columns
            | {"delta": self.delta, "delta_without": self.delta_without}
            | {f"value.{name}": value for name, value in (self.values or {}).items()}
        )


@dataclass(frozen=True, eq=False)
class Case:
    """A test that was run, the config that it belongs to, and the distances that were stored of it.

    `cells` are the used rows as they were read, where values may be shown.
    """

    config: Config
    test: Test
    distances: pd.DataFrame
    read: ReadText
    cells: pd.DataFrame | None = None


def explain(case: Case, top: int) -> list[Explanation]:
    """Explain the persons with the largest distances, the largest first; of equals the first rows."""
    test = case.test
    if test.external is not None and test.external.match is not None:
        raise InputError(f"{test.id}: there are no leave-one-out releases, so nothing says what changes because of a person")
    if test.external is not None or test.repeats > 1 or test.engine == "simulation":
        raise InputError(
            f"{test.id}: only tests that are computed here and draw nothing at random can be explained; "
            f"got {test.config.sanitizer.name}, engine {test.engine}"
        )
    positions = worst_positions(case.distances, test.rows.person, top)
    records = test.rows.index[positions]
    first = dict(reversed(list(zip(records.tolist(), positions.tolist(), strict=True))))  # a row of each distinct record
    found = {record: _look(case, record) for record in first}
    stored = case.distances.set_index("record")["distance"]
    for position, record in zip(positions, records, strict=True):
        _compare_with_stored(test, int(position), float(stored[position]), found[int(record)].influence.distance[0])
    coarser, skipped = _distances_if_coarser(case, first)
    rest = _deltas_without(case, positions)
    delta = float(np.nanmax(stored.to_numpy()))
    explained = [
        _explanation(case, int(position), found[int(record)], coarser[int(record)], (delta, rest.get(int(position))))
        for position, record in zip(positions, records, strict=True)
    ]
    return [replace(one, skipped=skipped) for one in explained]


def worst_positions(distances: pd.DataFrame, person: Ints | None, top: int, rank: Ints | None = None) -> Ints:
    """Return the positions of the persons with the largest distances, each by the first row that has it.

    Of equals those with the smallest rank[n] come first, then the first rows.
    """
    frame = distances.dropna(subset=["distance"])
    position, distance = frame["record"].to_numpy(np.int64), frame["distance"].to_numpy(np.float64)
    along = np.lexsort((position, np.zeros(len(position)) if rank is None else rank[position], -distance))
    owners = position[along] if person is None else person[position[along]]
    _, first = np.unique(owners, return_index=True)
    return position[along][np.sort(first)[:top]]


def _compare_with_stored(test: Test, position: int, stored: float, found: float) -> None:
    if not math.isclose(stored, found, rel_tol=AGREEMENT, abs_tol=AGREEMENT):
        raise InputError(
            f"{test.id}: brute force gives record {position} the distance {found:.9g}, the run has {stored:.9g}: "
            "the data or the version of dit_dask has changed since; run the audit again"
        )


@dataclass(frozen=True, eq=False)
class _Look:
    """What brute force finds for one distinct record."""

    influence: Influence
    sides: Mapping[str, tuple[Floats, Floats]]
    sizes: tuple[ClassSize, ClassSize]
    split: SplitChange | None


def _look(case: Case, record: int) -> _Look:
    """Sanitise the table with and without the person, and let every adversary learn from both releases."""
    test, table = case.test, case.test.rows.table
    target, without = table.codes[record], table.without(record)
    procedure = test.procedure
    if not isinstance(procedure, ReleaseProcedure):
        influence = ENGINES[test.engine].influence(table, np.array([record]), procedure)
        return _Look(influence, {}, (_tuple_size(table, target), _tuple_size(without, target)), None)
    removal = table.removals(np.array([record]))[0][0]
    with training_threads(list(procedure.adversaries.values())):
        releases = procedure.publish(table), procedure.sanitizer.release(without, procedure.rng(removal))
        learned = [learn([release], [procedure], target[None])[0] for release in releases]
    sides = {
        name: (procedure.weigh(learned[0][name], target[None]), procedure.weigh(learned[1][name], target[None]))
        for name in procedure.adversaries
    }
    influence = compare(sides, table.secret[[record]], procedure.distance)
    sizes = _class_size(releases[0], table, target), _class_size(releases[1], without, target)
    own = table.codes[[record]] if table.subject is None else table.codes[table.subject == table.subject[record]]
    names = [attribute.name for attribute in table.schema.quasi_identifiers]
    split = find_changed_split(releases[0].tree, releases[1].tree, own, names)
    return _Look(influence, sides, sizes, split)


def _class_size(release: Release, table: Table, target: Codes) -> ClassSize:
    """Count the class that the target falls in: where several cover it the narrowest, as that adversary takes it."""
    covering = np.flatnonzero(release.covers(target).all(axis=1)) if release.tree is None else np.empty(0, np.int64)
    if release.tree is not None:
        reached = release.tree.descend(target)
        chosen = np.arange(reached.start, reached.stop)
    elif len(covering):
        chosen = covering[are_narrowest(release.published.widths(covering))]
    else:
        chosen = np.arange(len(release.counts))
    counts = release.counts[chosen].sum(axis=0)
    rows, values = int(counts.sum()), int(np.count_nonzero(counts))
    return ClassSize(rows, _class_persons(release, table, chosen, rows), values, max(1, len(covering)))


def _class_persons(release: Release, table: Table, chosen: Ints, rows: int) -> int | None:
    """Count the persons who have the rows of some classes."""
    if table.subject is None:
        return rows
    place = place_records(release, table.codes)
    return None if place is None else len(np.unique(table.subject[np.isin(place, chosen)]))


def _tuple_size(table: Table, target: Codes) -> ClassSize:
    """Count the rows that have the target's values."""
    equal = (table.codes == target).all(axis=1)
    rows = int(table.weights[equal].sum())
    return ClassSize(rows, rows, len(np.unique(table.secret[equal])))


def _distances_if_coarser(case: Case, first: Mapping[int, int]) -> tuple[dict[int, dict[str, float]], dict[str, str]]:
    """For each record, of which a row is known, the distance that is left if one attribute is one level coarser.

    Also the attributes that the test does not allow to change, and why.
    """
    test = case.test
    found: dict[int, dict[str, float]] = {record: {} for record in first}
    skipped: dict[str, str] = {}
    for alternative in one_level_coarser(test.rows.table):
        rebuilt = change_test(case.config, test, alternative, case.read)
        if isinstance(rebuilt, Skipped):
            skipped[alternative.attribute] = rebuilt.reason
            continue
        changed = rebuilt.rows.index[list(first.values())]
        influence = ENGINES[rebuilt.engine].influence(rebuilt.rows.table, np.unique(changed), rebuilt.procedure)
        by_record = dict(zip(np.unique(changed).tolist(), influence.distance.tolist(), strict=True))
        for record, new in zip(first, changed.tolist(), strict=True):
            found[record][alternative.attribute] = by_record[new]
    return {record: dict(sorted(left.items(), key=lambda item: item[1])) for record, left in found.items()}, skipped


def _deltas_without(case: Case, positions: Ints) -> dict[int, float]:
    """For each person, the largest distance among the others once that person is left out of the table.

    None of them where every removal is a release of its own and there would be too many.
    """
    test = case.test
    is_fast = test.engine in ("exact", "closed-form")
    if not is_fast and len(positions) * len(np.unique(test.rows.index[test.audited])) > MOST_REMOVALS:
        return {}
    found = {}
    for position in positions.tolist():
        kept = ~test.rows.rows_of_persons(np.array([position]))
        rest = test.rows.only(kept)
        audited = np.flatnonzero(np.isin(np.flatnonzero(kept), test.audited))
        if len(audited):
            influence = ENGINES[test.engine].influence(rest.table, np.unique(rest.index[audited]), test.procedure)
            found[position] = float(np.nanmax(influence.distance))
    return found


def _explanation(
    case: Case, position: int, look: _Look, coarser: Mapping[str, float], deltas: tuple[float, float | None]
) -> Explanation:
    rows, record = case.test.rows, int(case.test.rows.index[position])
    secret = int(rows.table.secret[record])
    shifts = []
    for name, shifted in look.influence.shifts.items():
        sides = look.sides.get(name)
        beliefs = (None, None) if sides is None else (float(sides[0][0, secret]), float(sides[1][0, secret]))
        shifts.append(BeliefShift(name, float(shifted.distance[0]), float(shifted.gain[0]), *beliefs))
    worst = max(shifts, key=lambda one: one.distance)
    return Explanation(
        position,
        int(rows.source_row[position]),
        int(rows.multiplicity[record]),
        int(rows.rows_of_persons(np.array([position])).sum()),
        float(look.influence.distance[0]),
        worst.adversary,
        worst.gain,
        *look.sizes,
        look.split,
        shifts,
        coarser,
        *deltas,
        values=None if case.cells is None else {str(name): str(cell) for name, cell in case.cells.iloc[position].items()},
    )
