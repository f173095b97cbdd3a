"""What is known of a test while a run works: the values of its records, and which parts wait for some."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from dit_dask.audit.parts import Part, PartFile, distance_column, part_name, read_part
from dit_dask.audit.persons import PersonDistances
from dit_dask.audit.plan import TestPlan, first_rows
from dit_dask.audit.statistics import Distribution, Statistics, describe
from dit_dask.audit.test import Test
from dit_dask.audit.waiting import WaitingParts
from dit_dask.engines import ENGINES, Influence
from dit_dask.engines.exceedance import lower_ends
from dit_dask.engines.gain import GainTally, Shift, tally_persons
from dit_dask.engines.influence import Estimates
from dit_dask.storage.folder import Folder
from dit_dask.values.arrays import Bools, Floats, Ints, count_values

READERS = 16
BATCH_PARTS, BATCH_ROWS = 32, 10_000


class TestState:
    """What is known of one test: the values of its records, and which parts still wait for some."""

    def __init__(self, test: Test, plan: TestPlan) -> None:
        self.test = test
        self.plan = plan
        self.written: dict[int, PartFile] = {}
        self.seconds = 0.0
        self.notes: set[str] = set()
        self.failures: dict[int, str] = {}
        rows = test.rows
        self.first = first_rows(test)
        self._record = test.record
        starts = np.flatnonzero(self.first)
        self._owner = np.searchsorted(plan.boundaries, starts, "right") - 1
        self._owned = self._record[starts].astype(np.int64)
        self._person_of = rows.table.subject  # of each distinct record, where persons have several rows
        self._rank = rows.table.ranks() if self._person_of is not None else self._owned[:0]
        if self._person_of is not None:  # all records of a person belong to the part where its first row is
            owner = np.full(rows.table.persons, plan.parts)
            for part in reversed(range(plan.parts)):
                owner[self._person_of[self._record[self.rows_of(part)]]] = part
            self._owner = owner[self._person_of[self._owned]]
            order = np.lexsort((self._person_of[self._owned], self._owner))
            self._owned, self._owner = self._owned[order], self._owner[order]
        self._rows = count_values(self._record, rows.table.distinct)
        self._waiting = WaitingParts(self._needed_by, plan.parts)
        size = rows.table.distinct
        self._known = np.zeros(size, bool)
        self._distance = np.zeros(size)
        self._predicted = np.zeros((2, size), np.int32)
        self._estimates = {name: np.zeros(size) for name in ENGINES[test.engine].estimates}
        names = test.procedure.names
        self._shifts = {name: Shift(np.zeros(size), np.zeros(size), np.zeros(size, np.uint8)) for name in names}
        self._further = (*self._estimates, *(map(distance_column, names) if len(names) > 1 else ()))

    @property
    def done(self) -> int:
        """How many distinct records are known."""
        return int(self._known.sum())

    def rows_of(self, part: int) -> slice:
        """The audited rows of a part."""
        return slice(int(self.plan.boundaries[part]), int(self.plan.boundaries[part + 1]))

    def batches(self, parts: Sequence[int]) -> list[list[int]]:
        """Put small parts together: a task costs the scheduler some milliseconds whatever it does."""
        together: list[list[int]] = []
        rows = BATCH_ROWS
        for part in parts:
            size = int(self.plan.boundaries[part + 1] - self.plan.boundaries[part])
            if rows + size > BATCH_ROWS or len(together[-1]) == BATCH_PARTS:
                together.append([])
                rows = 0
            together[-1].append(part)
            rows += size
        return together

    def record(self, records: Ints, influence: Influence) -> list[int]:
        """Take in the values of records; return the parts that wait for nothing more."""
        self.notes.update(influence.notes)
        new = np.flatnonzero(~self._known[records])  # another test of the group may have asked again for what is known here
        self.failures.update({record: text for record, text in influence.failures.items() if not self._known[record]})
        self._distance[records[new]] = influence.distance[new]
        self._predicted[0, records[new]] = influence.predicted[new]
        self._predicted[1, records[new]] = influence.predicted_without[new]
        for name, values in self._estimates.items():
            values[records[new]] = influence.estimates[name][new]
        for name, known in self._shifts.items():
            self._record_shift(known, influence, name, records, new)
        self._known[records[new]] = True
        return self._waiting.advance(self._known)

    def _needed_by(self, part: int) -> Ints:
        """The records that a part waits for: those of its rows, and those whose gains it tallies."""
        record = self._record[self.rows_of(part)]
        return record if self._person_of is None else np.concatenate([record, self._owned_by(part)])

    def _owned_by(self, part: int) -> Ints:
        """The records that are tallied in a part."""
        return self._owned[slice(*np.searchsorted(self._owner, (part, part + 1)))]

    def _record_shift(self, known: Shift, influence: Influence, name: str, records: Ints, new: Ints) -> None:
        """Take in what one adversary gives; a part file has its distances only, and the tally of the rest."""
        column = distance_column(name)
        if name in influence.shifts:
            shifted = influence.shifts[name]
            known.distance[records[new]] = shifted.distance[new]
            known.gain[records[new]], known.marks[records[new]] = shifted.gain[new], shifted.marks[new]
            self._shifts[name] = replace(known, knows_confidence=shifted.knows_confidence)
        elif column in influence.estimates:
            known.distance[records[new]] = influence.estimates[column][new]

    @property
    def records(self) -> Ints:
        """The distinct records under audit."""
        return self._owned

    def estimates(self, records: Ints) -> dict[str, Floats]:
        """The estimates of records, by name."""
        return {name: values[records] for name, values in self._estimates.items()}

    def all_estimates(self) -> Estimates:
        """The estimates of all distinct records under audit, and of all audited rows."""
        by_record, by_row = self.estimates(self.records), self.estimates(self._record)
        return Estimates(self.records, by_record, by_row, self._distance[self._record], self.person)

    @property
    def person(self) -> Ints | None:
        """The person of each audited row, where some have several."""
        return None if self._person_of is None else self._person_of[self._record]

    def restore(self, folder: Folder, present: set[str]) -> None:
        """Take over the parts that an earlier session finished."""
        names = {part: part_name(self.test.id, part) for part in range(self.plan.parts)}
        kept = [part for part, name in names.items() if name.rsplit("/", 1)[-1] in present]
        with ThreadPoolExecutor(READERS) as pool:  # storage answers slowly, but many at once
            read = pool.map(
                lambda part: read_part(folder, names[part], self.test.audited[self.rows_of(part)], self._further), kept
            )
            found = {part: entry for part, entry in zip(kept, read, strict=True) if entry is not None}
        for part, (file, content) in found.items():
            if not np.isnan(content.influence.distance).any():  # skipped records get another chance
                self.written[part] = file
        owner = np.full(len(self._known), -1)
        owner[self._owned] = self._owner
        for part, (_, content) in found.items():
            self._take_over(part, content.influence, np.isin(owner, list(self.written)))

    def _take_over(self, part: int, influence: Influence, is_tallied: Bools) -> None:
        """Learn what a part says of the records that appear first in a written part: only their gains are tallied."""
        records = self._record[self.rows_of(part)]
        chosen = is_tallied[records] & ~np.isnan(influence.distance)
        self.record(records[chosen], influence.take(chosen))

    def chunks(self, sharing: Sequence[TestState] = ()) -> list[Ints]:
        """Cut the records unknown to this test, or to those that share its releases.

        As the engine likes; those at risk first where that is known; else by the part in which they first appear.
        """
        unknown = np.logical_or.reduce([~state._known[self._owned] for state in (self, *sharing)])
        records, owner = self._owned[unknown], self._owner[unknown]  # owner ascends with the rows
        if not len(records):
            return []
        if self.test.estimated_influence is not None:
            return self._chunks_by_risk(records, self.test.estimated_influence[records])
        engine = ENGINES[self.test.engine]
        if engine.chunks is not None:
            return engine.chunks(self.test.rows.table, records, self.test.procedure, self.plan.tasks)
        return np.split(records, np.flatnonzero(np.diff(owner)) + 1)

    def _chunks_by_risk(self, records: Ints, risk: Floats) -> list[Ints]:
        """Cut the records, those at risk first; a person's stay together, for they need the same releases."""
        if self._person_of is None:
            along = records[np.argsort(-risk, kind="stable")]
            return np.array_split(along, min(self.plan.tasks, len(along)))
        persons, place = np.unique(self._person_of[records], return_inverse=True)
        worst = np.full(len(persons), -np.inf)
        np.maximum.at(worst, place, risk)
        groups = np.array_split(np.argsort(-worst, kind="stable"), min(self.plan.tasks, len(persons)))
        task = np.empty(len(persons), np.int64)
        for number, group in enumerate(groups):
            task[group] = number
        return [records[task[place] == number] for number in range(len(groups))]

    @property
    def skipped(self) -> Ints:
        """The positions of the audited rows that could not be tested."""
        return self.test.audited[np.isin(self._record, list(self.failures))]

    def lower_bounds(self) -> Statistics:
        """The statistics if everything unknown were zero: what the final ones cannot fall below, but for the deviation.

        A release alone has none: its distances are not those that gates are about.
        """
        if self.test.external is not None and self.test.external.match is not None:
            return Statistics({})
        known = self._known[self._record]
        distance = np.where(known, np.nan_to_num(self._least()[self._record], posinf=np.inf), 0.0)
        before, after = self._predicted[:, self._record]
        changed = known & (before != after) & (not self._draws_at_random)
        if self.person is not None:
            return describe(PersonDistances.of(self.person, distance, changed, self.first, {}).distribution())
        return describe(Distribution.of(distance, self.first, int(changed.sum())))

    @property
    def _draws_at_random(self) -> bool:
        return "excess" in self._estimates

    def _least(self) -> Floats:
        """What is certain of each record's distance: all of it, or what is above the noise of repeats."""
        if not self._draws_at_random:
            return self._distance
        return lower_ends(self._estimates, self.test.repeats, len(self._owned))

    def parts(self) -> list[PartFile]:
        """The parts that are written, in order."""
        return [self.written[part] for part in sorted(self.written)]

    def ready(self) -> list[int]:
        """The parts that could be written and are not."""
        return [part for part in self._waiting.complete() if part not in self.written]

    def part(self, part: int) -> Part:
        """The content of a part."""
        rows = self.rows_of(part)
        audited = self.test.audited[rows]
        record, owned = self._record[rows], self._owned_by(part)
        further = self.estimates(record)
        if len(self._shifts) > 1:
            further |= {distance_column(name): shifted.distance[record] for name, shifted in self._shifts.items()}
        sides = self._predicted[0, record], self._predicted[1, record]
        influence = Influence(self._distance[record], *sides, estimates=further)
        gains = {name: self._tally(shifted.take(owned), owned) for name, shifted in self._shifts.items()}
        return Part(
            part_name(self.test.id, part),
            audited,
            self.test.rows.source_row[audited],
            self.test.rows.multiplicity[audited],
            influence,
            gains,
        )

    def _tally(self, shifted: Shift, records: Ints) -> GainTally:
        """Count the rows of records, or each person once."""
        if self._person_of is None:
            return GainTally.of(shifted, self._rows[records])
        return tally_persons(shifted, self._person_of[records], self._rank[records])
