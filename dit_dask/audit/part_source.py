"""What the parts of a test are made of: its rows, and what is known of their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.parts import Part, distance_column, part_name
from dit_dask.audit.persons import PersonDistances
from dit_dask.audit.statistics import Distribution
from dit_dask.engines import Influence
from dit_dask.engines.gain import GainTally, Shift, tally_persons
from dit_dask.values.arrays import RowNumbers, stretch_of
from dit_dask.values.pieces import PieceColumn, RowPiece, choose_pieces, join_pieces

if TYPE_CHECKING:
    from dit_dask.audit.plan import TestPlan
    from dit_dask.audit.test import Test
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints, Positions
    from dit_dask.values.pieces import RowIndex, SourceRows


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Consecutive audited rows: from which one on, their positions, and where they are in the pieces that a task gets."""

    start: int
    audited: Positions
    cuts: Sequence[slice]

    def join(self, pieces: Sequence[RowPiece]) -> RowPiece:
        """The rows of the pieces as one piece."""
        return join_pieces([piece.cut(cut) for piece, cut in zip(pieces, self.cuts, strict=True)])


@dataclass(frozen=True, eq=False)
class TestRows:
    """The audited rows of a test, cut into parts; record[n] is the record of each, `audited` their positions.

    `row` has their positions in the source. All three begin at row `start` where only some of them are there.
    A part tallies the records that begin in it, in the order of `owned`, or where persons have several rows, the records of
    the persons who do; `owner` has their parts, ascending. `counts[m]` are the audited rows of each record. `recoded` are the
    records in place of the numbers that pieces of rows have.
    """

    __test__ = False

    test: str
    boundaries: Ints
    record: RowIndex
    audited: Positions
    row: SourceRows
    multiplicity: Ints
    owned: Ints
    owner: Ints
    counts: Ints
    person_of: Ints | None
    rank: Ints
    recoded: Ints | Codes | None = None
    start: int = 0

    @classmethod
    def of(cls, test: Test, plan: TestPlan) -> TestRows:
        """The rows of a test as its plan cuts them."""
        rows, record = test.rows, test.record
        subject = rows.table.subject
        first = rows.first_places(test.audited)
        owned = np.argsort(first, kind="stable")[: int(np.count_nonzero(first < len(record)))]
        owner = np.searchsorted(plan.boundaries, first[owned], "right") - 1
        rank = owned[:0]
        if subject is not None:  # all records of a person belong to the part where its first row is
            rank = rows.table.ranks()
            of_person = np.full(rows.table.persons, plan.parts)
            np.minimum.at(of_person, subject[owned], owner)
            owner = of_person[subject[owned]]
            order = np.lexsort((subject[owned], owner))
            owned, owner = owned[order], owner[order]
        return cls(
            test.id,
            plan.boundaries,
            record,
            test.audited,
            rows.source_row if len(test.audited) == rows.used else np.asarray(rows.source_row[np.asarray(test.audited)]),
            rows.multiplicity,
            owned,
            owner,
            rows.count_records(test.audited),
            subject,
            rank,
            record.recoded if isinstance(record, PieceColumn) else None,
        )

    def stretch(self, parts: Sequence[int]) -> tuple[list[Any], AuditedRows]:
        """The rows of the parts from the first to the last of some, and what stands for their pieces."""
        rows = slice(int(self.boundaries[min(parts)]), int(self.boundaries[max(parts) + 1]))
        pieces, cuts = choose_pieces(self.record, self.row, rows)
        return pieces, AuditedRows(rows.start, stretch_of(self.audited, rows), cuts)

    def cut_out(self, chosen: AuditedRows, pieces: Sequence[RowPiece]) -> TestRows:
        """The same with only some of what is as long as the table."""
        piece = chosen.join(pieces)
        record = piece.number if self.recoded is None else self.recoded[piece.number]
        return replace(self, record=record, audited=chosen.audited, row=piece.row, start=chosen.start)

    def _local(self, part: int) -> slice:
        """Where a part's rows are in what is there."""
        return slice(int(self.boundaries[part]) - self.start, int(self.boundaries[part + 1]) - self.start)

    def records(self, part: int) -> Ints | Codes:
        """The record of each of a part's rows."""
        found: Ints | Codes = self.record[self._local(part)]
        return found

    def size(self, part: int) -> int:
        """How many rows a part has."""
        return int(self.boundaries[part + 1] - self.boundaries[part])

    def positions(self, part: int) -> Ints:
        """The positions of a part's rows among the used ones."""
        found: Ints = self.audited[self._local(part)]
        return found

    def source_rows(self, part: int) -> Ints:
        """The positions of a part's rows in the source."""
        found: Ints = self.row[self._local(part)]
        return found

    def owned_by(self, part: int) -> Ints:
        """The records that are tallied in a part."""
        return self.owned[slice(*np.searchsorted(self.owner, (part, part + 1)))]

    def needed_by(self, part: int) -> Ints | Codes:
        """The records that a part waits for: those of its rows, and those whose gains it tallies.

        Where its rows are kept elsewhere, all that begin up to it: its own are among them.
        """
        if isinstance(self.record, PieceColumn):
            return self.owned[: int(np.searchsorted(self.owner, part, "right"))]
        record = self.records(part)
        return record if self.person_of is None else np.concatenate([record, self.owned_by(part)])

    def tally(self, shifted: Shift, records: Ints) -> GainTally:
        """Count the rows of records, or each person once."""
        if self.person_of is None:
            return GainTally.of(shifted, self.counts[records])
        return tally_persons(shifted, self.person_of[records], self.rank[records])

    def distribution(self, distance: Floats, changed: Bools, members: Mapping[str, Floats]) -> Distribution:
        """How many audited rows, or persons, have each distance; arguments are of the records in `owned`."""
        counts = self.counts[self.owned]
        if self.person_of is not None:
            return PersonDistances.of(self.person_of[self.owned], distance, changed, counts, members).distribution()
        of_members = {name: Distribution.of(column, counts, 0) for name, column in members.items()}
        return replace(Distribution.of(distance, counts, int(counts[changed].sum())), members=of_members)


@dataclass(frozen=True, eq=False)
class RecordValues:
    """What is known of the records of a test, which outlives the workers that found it."""

    distance: Floats
    predicted: Codes
    estimates: Mapping[str, Floats]
    shifts: dict[str, Shift]

    def take_in(self, records: Ints, influence: Influence, new: Ints) -> None:
        """Write down what was found of records; `new` are the places of those that were not known."""
        chosen = records[new]
        self.distance[chosen] = influence.distance[new]
        self.predicted[0, chosen] = influence.predicted[new]
        self.predicted[1, chosen] = influence.predicted_without[new]
        for name, values in self.estimates.items():
            values[chosen] = influence.estimates[name][new]
        for name, known in list(self.shifts.items()):
            column = distance_column(name)
            if name in influence.shifts:
                shifted = influence.shifts[name]
                known.distance[chosen] = shifted.distance[new]
                known.gain[chosen], known.marks[chosen] = shifted.gain[new], shifted.marks[new]
                self.shifts[name] = replace(known, knows_confidence=shifted.knows_confidence)
            elif column in influence.estimates:  # a part file has the distances of an adversary only, and the tally of the rest
                known.distance[chosen] = influence.estimates[column][new]


@dataclass(frozen=True, eq=False)
class PartSource:
    """Makes the parts of a test, here or on a worker."""

    rows: TestRows
    values: RecordValues

    def cut_out(self, chosen: AuditedRows, pieces: Sequence[RowPiece]) -> PartSource:
        """The same with only some of what is as long as the table."""
        return replace(self, rows=self.rows.cut_out(chosen, pieces))

    def without_rows(self) -> PartSource:
        """The same without anything that is as long as the table: what workers are sent once."""
        nothing = np.empty(0, np.int32), RowNumbers(0)
        return self.cut_out(AuditedRows(0, RowNumbers(0), [slice(None)]), [RowPiece(*nothing)])

    def distribution(self) -> Distribution:
        """How many audited rows, or persons, have each distance."""
        records, values = self.rows.owned, self.values
        several = values.shifts if len(values.shifts) > 1 else {}
        members = {name: shifted.distance[records] for name, shifted in several.items()}
        before, after = values.predicted[:, records]
        return self.rows.distribution(values.distance[records], before != after, members)

    def part(self, part: int) -> Part:
        """The content of a part."""
        rows, values = self.rows, self.values
        audited, record, owned = rows.positions(part), rows.records(part), rows.owned_by(part)
        further = {name: known[record] for name, known in values.estimates.items()}
        if len(values.shifts) > 1:
            further |= {distance_column(name): shifted.distance[record] for name, shifted in values.shifts.items()}
        sides = values.predicted[0, record], values.predicted[1, record]
        influence = Influence(values.distance[record], *sides, estimates=further)
        gains = {name: rows.tally(shifted.take(owned), owned) for name, shifted in values.shifts.items()}
        name = part_name(rows.test, part)
        return Part(name, audited, rows.source_rows(part), rows.multiplicity[record], influence, gains)
