"""The figures of a test are those of its stored parts, whichever run wrote them, against plain Python over rows and persons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dit_dask.audit.parts import distance_column, read_distances, write_part
from dit_dask.audit.plan import Cost, TestPlan
from dit_dask.audit.state import TestState as State
from dit_dask.audit.summary import Description
from dit_dask.audit.test import Test as Point
from dit_dask.engines import Influence
from dit_dask.engines.gain import CHANGED, Shift
from dit_dask.execution.tests import check_parts, describe_records
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"}
ADVERSARIES = {"one": "bernoulli-nb", "several": "panel"}
EIGHTHS = st.integers(0, 8).map(lambda number: number / 8)


@dataclass(frozen=True)
class Value:
    """What a run found of one record: of each adversary the distance, the gain and whether the prediction changes."""

    distances: tuple[float, ...]
    gains: tuple[float, ...]
    changes: tuple[bool, ...]
    predictions: tuple[int, int]

    @property
    def worst(self) -> float:
        """The largest distance."""
        return max(self.distances)


Values = Mapping[int, Value | None]  # of each record; None: it was skipped


@dataclass(frozen=True)
class Audit:
    """A test with its plan, and whose each audited row is: a person's where some have several, else nobody else's."""

    point: Point
    plan: TestPlan
    record: Sequence[int]
    person: Sequence[Any]

    def new_state(self) -> State:
        """Nothing is known yet."""
        return State(self.point, self.plan)

    def part_of(self, row: int) -> int:
        """The part that has a row."""
        return int(np.searchsorted(self.plan.boundaries, row, "right")) - 1

    def person_of(self, record: int) -> Any:
        """Whose a record is; of rows without persons, the record itself."""
        return self.person[self.record.index(record)] if self.point.rows.table.subject is not None else record


@st.composite
def audits(draw: st.DrawFn) -> Audit:
    """A few rows, some of them equal, of which some are audited; with or without persons, of one adversary or several."""
    size = draw(st.integers(4, 14))
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 4)), min_size=size, max_size=size))
    frame = pd.DataFrame(rows, columns=["age", "ill", "who"])
    frame.loc[:1, "ill"], frame.loc[:1, "who"] = [False, True], [7, 8]
    frame = pd.DataFrame({"age": frame["age"], "who": frame["who"], "illness": np.where(frame["ill"], "flu", "cold")})
    has_persons = draw(st.booleans(), label="persons")
    schema = SCHEMA | ({"subject": "who"} if has_persons else {})
    people = loaded(frame, schema)
    chosen = sorted(draw(st.sets(st.integers(1, size - 1)), label="audited") | {0})
    adversary = draw(st.sampled_from(sorted(ADVERSARIES)), label="adversaries")
    test = {"sanitizer": "raw", "engine": "brute-force", "adversary": ADVERSARIES[adversary]}
    (point,) = points(people, schema, [test] if has_persons else [test | {"records": chosen}])
    record = people.index[np.asarray(point.audited)].tolist()
    cuts = draw(st.sets(st.integers(1, max(1, len(record) - 1)), max_size=4), label="cuts") if len(record) > 1 else set()
    plan = TestPlan(np.array([0, *sorted(cuts), len(record)]), 3, len(set(record)), Cost(0.0, 1.0))
    whose = frame["who"].to_numpy()[np.asarray(point.audited)].tolist() if has_persons else list(range(len(record)))
    return Audit(point, plan, record, whose)


def draw_values(data: st.DataObject, audit: Audit, skipped: Iterable[Any] = ()) -> dict[int, Value | None]:
    """What a run finds of every record; whoever is skipped is skipped with all records."""
    several, without = len(audit.point.procedure.names), set(skipped)
    value = st.builds(
        Value,
        st.tuples(*[EIGHTHS] * several),
        st.tuples(*[EIGHTHS.map(lambda gain: gain - 0.5)] * several),
        st.tuples(*[st.booleans()] * several),
        st.tuples(st.integers(0, 1), st.integers(0, 1)),
    )
    found: dict[int, Value | None] = {}
    for record in sorted(set(audit.record)):
        found[record] = None if audit.person_of(record) in without else data.draw(value)
    return found


def draw_skipped(data: st.DataObject, audit: Audit) -> set[Any]:
    """Who is skipped: never the first one, for a test of nobody is refused."""
    everyone = [audit.person_of(record) for record in audit.record]
    return data.draw(st.sets(st.sampled_from(everyone))) - {everyone[0]}


def influence(values: Values, records: Sequence[int], names: Sequence[str]) -> Influence:
    """What an engine hands back."""
    chosen = [values[record] for record in records]
    nothing = Value((np.nan,) * len(names), (np.nan,) * len(names), (False,) * len(names), (-1, -1))
    found = [value or nothing for value in chosen]

    def column(of: str, place: int) -> Any:
        return np.array([getattr(value, of)[place] for value in found])

    marks = {name: (column("changes", place) * CHANGED).astype(np.uint8) for place, name in enumerate(names)}
    shifts = {name: Shift(column("distances", place), column("gains", place), marks[name]) for place, name in enumerate(names)}
    return Influence(
        np.array([value.worst for value in found]),
        column("predictions", 0).astype(np.int32),
        column("predictions", 1).astype(np.int32),
        failures={record: "it failed" for record, value in zip(records, chosen, strict=True) if value is None},
        shifts=shifts,
    )


def learn(state: State, values: Values, records: Sequence[int]) -> None:
    state.record(np.array(records, np.int64), influence(values, records, state.test.procedure.names))


def write(state: State, folder: Folder, part: int) -> None:
    state.take_written(part, write_part(folder, state.source.part(part)))


def describe_stored(state: State, folder: Folder, data: st.DataObject) -> Description:
    """What the tasks of a summary make of a finished state, however the parts are dealt out to them."""
    files = state.parts()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(files))), label="tasks") - {len(files)})
    groups = [files[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(files)], strict=True)]
    return describe_records(state.source.without_rows(), [check_parts(folder, group) for group in groups])[0]


def check(found: Mapping[str, Any], distances: Sequence[float], changed: int, gains: Sequence[float]) -> None:
    """Compare figures with those of plain lists: a distance for each row, or person; sums are added in another order."""
    assert found["delta"] == max(distances)
    assert found["mean"] == pytest.approx(sum(distances) / len(distances), abs=1e-12)
    assert found["std"] == pytest.approx(np.std(distances), abs=1e-12)
    assert found["quantiles"]["0.5"] == pytest.approx(np.median(distances), abs=1e-12)
    assert found["share_over"]["0.1"] == sum(distance > 0.1 for distance in distances) / len(distances)
    assert found["argmax_changed"] == changed / len(distances)
    if gains:
        assert found["mean_gain"] == pytest.approx(sum(gains) / len(gains), abs=1e-12)


def check_figures(audit: Audit, found: Description, values: Values, tallied: Values) -> None:
    """Compare a description with what plain Python makes of each record's values, and of those that its part tallied."""
    rows = [values[record] for record in audit.record]
    tested = [(person, value) for person, value in zip(audit.person, rows, strict=True) if value is not None]
    statistics = found.statistics.document()
    assert statistics["records"] == len(tested)
    assert statistics["skipped"] == len(rows) - len(tested)
    assert statistics["distinct"] == len({record for record in audit.record if values[record] is not None})
    assert statistics["subjects"] == len({person for person, _ in tested})
    groups = pd.DataFrame(tested, columns=["person", "value"]).groupby("person")["value"].apply(list)
    worst = [max(value.worst for value in group) for group in groups]
    changed = sum(any(len(set(value.predictions)) > 1 for value in group) for group in groups)
    check(statistics | {"mean_gain": None}, worst, changed, ())
    of_person: dict[Any, dict[int, Value]] = {}  # a person's records, each once, as they are tallied
    for person, record in zip(audit.person, audit.record, strict=True):
        value = tallied[record]
        if value is not None:
            of_person.setdefault(person, {})[record] = value
    for place, name in enumerate(audit.point.procedure.names):
        gains = [mean_gain_at_largest([*records.values()], place) for records in of_person.values()]
        changed = sum(any(value.changes[place] for value in records.values()) for records in of_person.values())
        distances = [max(value.distances[place] for value in group) for group in groups]
        check(found.adversaries[name].document(), distances, changed, gains)
        largest = [value.gains[place] for records in of_person.values() for value in records.values()]
        assert found.gains[name].largest == max(largest, default=None)
        assert found.gains[name].count == len(of_person)


def mean_gain_at_largest(values: Sequence[Value], place: int) -> float:
    """The gain where the distance is largest; of several such records, the mean."""
    largest = max(value.distances[place] for value in values)
    gains = [value.gains[place] for value in values if value.distances[place] == largest]
    return sum(gains) / len(gains)


def new_folder() -> Folder:
    return Folder(Location(f"memory://{uuid4().hex}", {}))


@given(audits(), st.data())
@settings(max_examples=60)
def test_figures_are_those_of_all_rows_or_persons(audit: Audit, data: st.DataObject) -> None:
    values = draw_values(data, audit, draw_skipped(data, audit))
    state, folder = audit.new_state(), new_folder()
    for record in data.draw(st.permutations(sorted(values)), label="order of records"):
        learn(state, values, [record])
    for part in data.draw(st.permutations(range(audit.plan.parts)), label="order of parts"):
        write(state, folder, part)
    check_figures(audit, describe_stored(state, folder, data), values, values)
    assert state.skipped.tolist() == [
        row for row, record in zip(state.test.audited, audit.record, strict=True) if values[record] is None
    ]


@given(audits(), st.data())
@settings(max_examples=60)
def test_figures_follow_the_parts_that_another_run_wrote_first(audit: Audit, data: st.DataObject) -> None:
    """Two runs with other values, as a sanitizer that draws at random gives them; the other one wrote some of the parts."""
    others, own = (draw_values(data, audit, draw_skipped(data, audit)) for _ in range(2))
    other, state, folder = audit.new_state(), audit.new_state(), new_folder()
    learn(other, others, sorted(others))
    learn(state, own, sorted(own))
    first = data.draw(st.sets(st.integers(0, audit.plan.parts - 1)), label="parts of the other run")
    for part in first:
        write(other, folder, part)
    for part in data.draw(st.permutations(range(audit.plan.parts)), label="order of parts"):
        write(state, folder, part)

    def is_of_other(part: int) -> bool:
        """A part that skips a record which was tested here is replaced."""
        records = {record for row, record in enumerate(audit.record) if audit.part_of(row) == part}
        return part in first and not any(others[record] is None and own[record] is not None for record in records)

    writers = {part: others if is_of_other(part) else own for part in range(audit.plan.parts)}
    stored = {record: writers[audit.part_of(audit.record.index(record))][record] for record in own}
    frame = read_distances(folder, audit.point.id)
    for record, value in stored.items():
        row = frame.iloc[audit.record.index(record)]
        np.testing.assert_equal(row["distance"], np.nan if value is None else value.worst)
        for place, name in enumerate(audit.point.procedure.names):
            if distance_column(name) in frame and value is not None:
                assert row[distance_column(name)] == value.distances[place]
    owner = {record: audit.part_of(first_row_of_person(audit, record)) for record in own}
    tallied = {record: writers[owner[record]][record] for record in own}
    check_figures(audit, describe_stored(state, folder, data), stored, tallied)
    assert state.skipped.tolist() == [
        row for row, record in zip(state.test.audited, audit.record, strict=True) if stored[record] is None
    ]


def first_row_of_person(audit: Audit, record: int) -> int:
    """The first audited row of whoever has a record."""
    person = audit.person_of(record)
    return next(row for row, other in enumerate(audit.record) if audit.person_of(other) == person)


@given(audits(), st.data())
@settings(max_examples=60)
def test_a_resumed_run_has_the_figures_of_one_that_was_not_interrupted(audit: Audit, data: st.DataObject) -> None:
    """Some parts are there, some of them with skipped records; what is missing is computed and written."""
    skipped = draw_skipped(data, audit)
    still_skipped = {person for person in skipped if data.draw(st.booleans())}
    values = draw_values(data, audit, still_skipped)
    before = {record: None if audit.person_of(record) in skipped else value for record, value in values.items()}
    interrupted, folder = audit.new_state(), new_folder()
    learn(interrupted, before, sorted(before))
    for part in data.draw(st.sets(st.integers(0, audit.plan.parts - 1)), label="parts that are there"):
        write(interrupted, folder, part)
    state = audit.new_state()
    state.restore(folder, folder.names(f"records/{audit.point.id}"))
    for records in state.chunks():
        learn(state, values, records.tolist())
    assert sorted([*state.written, *state.ready()]) == list(range(audit.plan.parts))
    for part in data.draw(st.permutations(state.ready()), label="order of parts"):
        write(state, folder, part)
    check_figures(audit, describe_stored(state, folder, data), values, values)
    fresh, apart = audit.new_state(), new_folder()
    learn(fresh, values, sorted(values))
    for part in range(audit.plan.parts):
        write(fresh, apart, part)
    assert state.parts() == fresh.parts()  # to the byte
    resumed, expected = describe_stored(state, folder, data), describe_stored(fresh, apart, data)
    assert resumed.statistics == expected.statistics
    assert (resumed.adversaries, resumed.gains) == (expected.adversaries, expected.gains)
