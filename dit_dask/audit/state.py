"""What is known of a test while a run works: the values of its records, and which parts wait for some."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dit_dask.audit.part_source import PartSource, RecordValues, TestRows
from dit_dask.audit.parts import PartFile, WrittenPart, distance_column, part_name, read_part
from dit_dask.audit.plan import TestPlan
from dit_dask.audit.statistics import Statistics, describe
from dit_dask.audit.test import Test
from dit_dask.audit.waiting import WaitingParts
from dit_dask.engines import ENGINES, Influence
from dit_dask.engines.exceedance import lower_ends
from dit_dask.engines.gain import Shift
from dit_dask.engines.influence import Estimates
from dit_dask.storage.folder import Folder
from dit_dask.values.arrays import Codes, Floats, Ints

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
        self._others: list[tuple[Ints, Influence]] = []
        self.rows = TestRows.of(test, plan)
        self._waiting = WaitingParts(self.rows.needed_by, plan.parts)
        size, names = test.rows.table.distinct, test.procedure.names
        self._known = np.zeros(size, bool)
        estimates = {name: np.zeros(size) for name in ENGINES[test.engine].estimates}
        shifts = {name: Shift(np.zeros(size), np.zeros(size), np.zeros(size, np.uint8)) for name in names}
        self.source = PartSource(self.rows, RecordValues(np.zeros(size), np.zeros((2, size), np.int32), estimates, shifts))
        self._further = (*estimates, *(map(distance_column, names) if len(names) > 1 else ()))

    @property
    def done(self) -> int:
        """How many distinct records are known."""
        return int(np.count_nonzero(self._known))

    @property
    def is_done(self) -> bool:
        """Whether all records are known."""
        return self.done == len(self.rows.owned)

    def batches(self, parts: Sequence[int]) -> list[list[int]]:
        """Put small parts together: a task costs the scheduler some milliseconds whatever it does."""
        together: list[list[int]] = []
        rows = BATCH_ROWS
        for part in parts:
            size = self.rows.size(part)
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
        self.source.values.take_in(records, influence, new)
        self._known[records[new]] = True
        return self._waiting.advance(self._known)

    def take_written(self, part: int, written: WrittenPart) -> bool:
        """Note that a part is there; once all are, take over what other runs wrote, and tell whether that was anything.

        The summary is of what is stored: a record that has rows in several parts is as the first of them says. Until then parts
        are made of this run's values alone, so that none depends on the order in which others are written.
        """
        self.written[part] = written.file
        if written.other is not None:
            self._others.append(self._beginning(part, written.other))
        if len(self.written) < self.plan.parts or not self._others:
            return False
        for records, stored in self._others:
            self.source.values.take_in(records, stored, np.arange(len(records)))
            tested = set(records[~np.isnan(stored.distance)].tolist())
            self.failures = {record: text for record, text in self.failures.items() if record not in tested}
        self._others.clear()
        return True

    def _beginning(self, part: int, stored: Influence) -> tuple[Ints, Influence]:
        """The records whose first row is in a part, and what a part file says of them."""
        records, places = np.unique(self.rows.records(part), return_index=True)
        begins = self.test.rows.first_places(self.test.audited)[records] >= self.plan.boundaries[part]
        return records[begins].astype(np.int64), stored.take(places[begins])

    @property
    def records(self) -> Ints:
        """The distinct records under audit."""
        return self.rows.owned

    def estimates(self, records: Ints | Codes) -> dict[str, Floats]:
        """The estimates of records, by name."""
        return {name: values[records] for name, values in self.source.values.estimates.items()}

    def all_estimates(self) -> Estimates:
        """The estimates of all distinct records under audit, and of all audited rows; no rows where nothing is estimated."""
        record = np.asarray(self.rows.record) if self.source.values.estimates else np.empty(0, np.int32)
        by_record, by_row = self.estimates(self.records), self.estimates(record)
        person = None if self.rows.person_of is None else self.rows.person_of[record]
        return Estimates(self.records, by_record, by_row, self.source.values.distance[record], person)

    def restore(self, folder: Folder, present: set[str]) -> None:
        """Take over the parts that an earlier session finished."""
        names = {part: part_name(self.test.id, part) for part in range(self.plan.parts)}
        kept = [part for part, name in names.items() if name.rsplit("/", 1)[-1] in present]

        def read(part: int) -> tuple[PartFile, Ints, Influence] | None:
            """Keep what a part says of each record once: all parts together are as long as the table."""
            found = read_part(folder, names[part], self.rows.positions(part), self._further)
            if found is None:
                return None
            records, places = np.unique(self.rows.records(part), return_index=True)
            return found[0], records.astype(np.int64), found[1].take(places)

        with ThreadPoolExecutor(READERS) as pool:  # storage answers slowly, but many at once
            found = {part: entry for part, entry in zip(kept, pool.map(read, kept), strict=True) if entry is not None}
        for part, (file, _, influence) in found.items():
            if not np.isnan(influence.distance).any():  # skipped records get another chance
                self.written[part] = file
        owner = np.full(len(self._known), -1)
        owner[self.rows.owned] = self.rows.owner
        is_tallied = np.isin(owner, list(self.written))
        for _, records, influence in found.values():  # of records that begin in another part only the distances are known
            chosen = is_tallied[records] & ~np.isnan(influence.distance)
            self.record(records[chosen], influence.take(chosen))

    def chunks(self, sharing: Sequence[TestState] = ()) -> list[Ints]:
        """Cut the records unknown to this test, or to those that share its releases.

        As the engine likes; those at risk first where that is known; else by the part in which they first appear.
        """
        owned = self.rows.owned
        unknown = np.logical_or.reduce([~state._known[owned] for state in (self, *sharing)])
        records, owner = owned[unknown], self.rows.owner[unknown]  # owner ascends with the rows
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
        if self.rows.person_of is None:
            along = records[np.argsort(-risk, kind="stable")]
            return np.array_split(along, min(self.plan.tasks, len(along)))
        persons, place = np.unique(self.rows.person_of[records], return_inverse=True)
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
        if not self.failures:
            return np.empty(0, np.int64)
        skipped: Ints = self.test.audited[np.isin(np.asarray(self.rows.record), list(self.failures))]
        return skipped

    def lower_bounds(self) -> Statistics:
        """The statistics if everything unknown were zero: what the final ones cannot fall below, but for the deviation.

        A release alone has none: its distances are not those that gates are about.
        """
        if self.test.external is not None and self.test.external.match is not None:
            return Statistics({})
        records = self.rows.owned
        known = self._known[records]
        distance = np.where(known, np.nan_to_num(self._least()[records], posinf=np.inf), 0.0)
        before, after = self.source.values.predicted[:, records]
        changed = known & (before != after) & (not self._draws_at_random)
        return describe(self.rows.distribution(distance, changed, {}))

    @property
    def _draws_at_random(self) -> bool:
        return "excess" in self.source.values.estimates

    def _least(self) -> Floats:
        """What is certain of each record's distance: all of it, or what is above the noise of repeats."""
        if not self._draws_at_random:
            return self.source.values.distance
        return lower_ends(self.source.values.estimates, self.test.repeats, len(self.rows.owned))

    def parts(self) -> list[PartFile]:
        """The parts that are written, in order."""
        return [self.written[part] for part in sorted(self.written)]

    def ready(self) -> list[int]:
        """The parts that could be written and are not."""
        return [part for part in self._waiting.complete() if part not in self.written]
