"""What a test state records: values once, the parts that become complete, and what is left to compute."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dit_dask.audit.parts import PartFile, part_name, read_part, read_tallies, write_part
from dit_dask.audit.plan import Cost, TestPlan
from dit_dask.audit.state import BATCH_PARTS, BATCH_ROWS
from dit_dask.audit.state import TestState as State
from dit_dask.audit.statistics import describe
from dit_dask.engines import Influence
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "illness"}
AGES = [10, 20, 10, 30, 20, 40, 10, 50]
RECORDS = [0, 1, 0, 2, 1, 3, 0, 4]  # the distinct record of each row: ages ascend
BOUNDARIES = [0, 3, 5, 8]  # parts: records 0, 1, 0 | 2, 1 | 3, 0, 4
ID = "raw.brute-force"
ROWS = loaded(pd.DataFrame({"age": AGES, "illness": ["flu" if age % 20 else "cold" for age in AGES]}), SCHEMA)


def new_state(boundaries: Sequence[int] = BOUNDARIES, tasks: int = 3, **test: object) -> State:
    (built,) = points(ROWS, SCHEMA, [{"sanitizer": "raw", "engine": "brute-force", "adversary": "bernoulli-nb", **test}])
    assert ROWS.index.tolist() == RECORDS
    distinct = len(np.unique(ROWS.index[built.audited]))
    return State(built, TestPlan(np.array(boundaries), tasks, distinct, Cost(0.0, 1.0)))


def values(distances: Sequence[float], failures: Mapping[int, str] | None = None, notes: tuple[str, ...] = ()) -> Influence:
    """Influences with predictions that tell records and sides apart."""
    distance = np.array(distances, float)
    before = np.where(np.isnan(distance), -1, np.arange(len(distance))).astype(np.int32)
    after = np.where(np.isnan(distance), -1, np.arange(len(distance)) + 7).astype(np.int32)
    return Influence(distance, before, after, notes, failures=failures or {})


def learn(state: State, records: Sequence[int], influence: Influence) -> list[int]:
    return state.record(np.array(records, np.int64), influence)


def folder_in(path: Path) -> Folder:
    return Folder(Location(str(path), {}))


def write(state: State, folder: Folder, part: int) -> PartFile:
    return write_part(folder, state.source.part(part)).file


def test_a_part_is_complete_when_its_last_record_is_known_also_one_that_begins_elsewhere() -> None:
    state = new_state()
    assert learn(state, [2, 4], values([0.2, 0.4])) == []
    assert learn(state, [1], values([0.1])) == [1]  # row 4 repeats a record that first appears in part 0
    assert learn(state, [0], values([0.0])) == [0]
    assert learn(state, [3], values([0.3])) == [2]
    assert state.done == 5
    assert state.ready() == [0, 1, 2]


def test_all_at_once_completes_every_part_in_order() -> None:
    assert learn(new_state(), [4, 3, 2, 1, 0], values([0.4, 0.3, 0.2, 0.1, 0.0])) == [0, 1, 2]


def test_a_part_holds_its_own_rows_and_equal_rows_repeat_their_values() -> None:
    state = new_state()
    learn(state, [0, 1, 2, 3, 4], values([0.0, 0.1, 0.2, 0.3, 0.4]))
    for part, rows, distances in ((0, [0, 1, 2], [0.0, 0.1, 0.0]), (1, [3, 4], [0.2, 0.1]), (2, [5, 6, 7], [0.3, 0.0, 0.4])):
        found = state.source.part(part)
        influence = found.influence
        assert found.name == part_name(ID, part)
        assert found.record.tolist() == rows
        assert found.multiplicity.tolist() == [AGES.count(AGES[row]) for row in rows]
        assert influence.distance.tolist() == distances
        assert influence.predicted.tolist() == [RECORDS[row] for row in rows]
        assert influence.predicted_without.tolist() == [RECORDS[row] + 7 for row in rows]


def test_what_is_known_is_not_overwritten_and_completes_no_part_twice() -> None:
    state = new_state()
    learn(state, [0, 1], values([0.5, 0.6]))
    assert learn(state, [1, 0, 2], values([9.0, 9.0, 0.7])) == [1]
    assert state.source.part(0).influence.distance.tolist() == [0.5, 0.6, 0.5]
    assert state.source.part(1).influence.distance.tolist() == [0.7, 0.6]
    assert learn(state, [0, 1, 2], values([9.0, 9.0, 9.0])) == []
    assert state.done == 3


def test_a_record_named_twice_in_one_result_counts_once() -> None:
    state = new_state()
    assert learn(state, [0, 0], values([0.5, 0.5])) == []
    assert learn(state, [1], values([0.1])) == [0]
    assert state.ready() == [0]


def test_a_failure_of_a_known_record_is_not_kept_and_one_of_an_unknown_record_is() -> None:
    state = new_state()
    learn(state, [0], values([0.5]))
    learn(state, [0, 1], values([math.nan, math.nan], failures={0: "late", 1: "crashed"}, notes=("slow",)))
    assert state.failures == {1: "crashed"}
    assert state.notes == {"slow"}
    assert state.skipped.tolist() == [1, 4]  # both rows of record 1
    assert state.source.part(0).influence.distance[0] == 0.5


def test_only_audited_rows_count_and_they_keep_their_positions() -> None:
    state = new_state([0, 2, 3], records=[2, 4, 6])
    assert state.records.tolist() == [0, 1]
    assert learn(state, [0], values([0.5])) == [1]
    assert learn(state, [1], values([0.6])) == [0]
    assert state.source.part(0).record.tolist() == [2, 4]
    assert state.source.part(1).record.tolist() == [6]


def test_records_are_cut_by_the_part_in_which_they_first_appear_and_known_ones_are_left_out() -> None:
    state = new_state()
    assert [chunk.tolist() for chunk in state.chunks()] == [[0, 1], [2], [3, 4]]
    learn(state, [2, 3], values([0.2, 0.3]))
    assert [chunk.tolist() for chunk in state.chunks()] == [[0, 1], [4]]
    learn(state, [0, 1, 4], values([0.0, 0.1, 0.4]))
    assert state.chunks() == []


def test_what_another_test_of_the_same_releases_lacks_is_cut_too() -> None:
    state, other = new_state(), new_state()
    learn(state, [0, 1, 2], values([0.0, 0.1, 0.2]))
    learn(other, [0, 3, 4], values([0.0, 0.3, 0.4]))
    assert [chunk.tolist() for chunk in state.chunks([other])] == [[1], [2], [3, 4]]


def test_records_with_the_largest_estimates_go_first_in_the_planned_number_of_tasks() -> None:
    state = new_state(tasks=2)
    state.test = dataclasses.replace(state.test, estimated_influence=np.array([0.1, 0.9, 0.5, 0.9, 0.0]))
    assert [chunk.tolist() for chunk in state.chunks()] == [[1, 3, 2], [0, 4]]
    learn(state, [1, 3, 2, 0], values([0.0] * 4))
    assert [chunk.tolist() for chunk in state.chunks()] == [[4]]  # no empty task


@pytest.mark.parametrize(
    ("known", "delta", "mean", "changed"),
    [([], 0.0, 0.0, 0.0), ([1], 0.8, 0.2, 0.25), ([1, 4], math.inf, math.inf, 0.375)],
)
def test_lower_bounds_take_the_unknown_as_zero(known: list[int], delta: float, mean: float, changed: float) -> None:
    state = new_state()
    distances = {1: 0.8, 4: math.inf}
    learn(state, known, values([distances[record] for record in known]))
    bounds = state.lower_bounds()
    assert tuple(bounds.figure(name) for name in ("records", "distinct", "skipped")) == (8, 5, 0)
    assert float(bounds.figure("delta")) == delta
    assert float(bounds.figure("mean")) == pytest.approx(mean)
    assert bounds.figure("argmax_changed") == changed


def test_a_skipped_record_does_not_raise_the_lower_bounds() -> None:
    state = new_state()
    learn(state, [0, 1], values([math.nan, 0.8], failures={0: "crashed"}))
    bounds = state.lower_bounds()
    assert tuple(bounds.figure(name) for name in ("delta", "skipped", "records")) == (0.8, 0, 8)
    assert bounds.figure("argmax_changed") == 0.25  # -1 on both sides is no change


def test_noise_of_repeats_raises_no_lower_bound() -> None:
    state = new_state(repeats=12, engine="auto")
    names = list(state.all_estimates().by_row)
    estimates = {name: np.zeros(2) for name in names} | {"p_value": np.array([0.4, 0.001]), "excess": np.array([0.5, 0.25])}
    learn(state, [0, 1], dataclasses.replace(values([0.9, 0.8]), estimates=estimates))
    bounds = state.lower_bounds()
    assert bounds.figure("delta") == 0.25  # what is certainly above the noise; the other record is not significant
    assert bounds.figure("argmax_changed") == 0
    assert state.all_estimates().distance.tolist() == [0.9, 0.8, 0.9, 0, 0.8, 0, 0.9, 0]


def test_written_parts_are_taken_over(tmp_path: Path) -> None:
    before, after, folder = new_state(), new_state(), folder_in(tmp_path)
    learn(before, [0, 1, 2], values([0.0, 0.1, 0.2]))
    files = [write(before, folder, part) for part in (0, 1)]
    after.restore(folder, folder.names(f"records/{ID}"))
    assert after.written == {0: files[0], 1: files[1]}
    assert after.done == 3
    assert after.ready() == []
    assert [chunk.tolist() for chunk in after.chunks()] == [[3, 4]]
    assert learn(after, [3, 4], values([0.3, 0.4])) == [2]
    assert after.source.part(2).influence.distance.tolist() == [0.3, 0.0, 0.4]  # record 0 is known from part 0


def test_a_part_that_is_not_listed_or_damaged_is_not_taken_over(tmp_path: Path) -> None:
    before, folder = new_state(), folder_in(tmp_path)
    learn(before, [0, 1, 2, 3, 4], values([0.0, 0.1, 0.2, 0.3, 0.4]))
    for part in range(3):
        write(before, folder, part)
    damaged = tmp_path / part_name(ID, 0)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    after = new_state()
    after.restore(folder, {"part-00000.parquet", "part-00001.parquet"})
    assert after.written.keys() == {1}
    assert [chunk.tolist() for chunk in after.chunks()] == [[0, 1], [3, 4]]  # the gains of record 1 are tallied in part 0


def test_a_part_with_skipped_records_is_computed_and_written_again(tmp_path: Path) -> None:
    before, after, folder = new_state(), new_state(), folder_in(tmp_path)
    learn(before, [0, 1, 2], values([math.nan, 0.1, 0.2], failures={0: "crashed"}))
    write(before, folder, 0)
    after.restore(folder, folder.names(f"records/{ID}"))
    assert after.written == {}
    assert after.failures == {}
    assert [chunk.tolist() for chunk in after.chunks()] == [[0, 1], [2], [3, 4]]  # its tally of gains must be made anew
    assert learn(after, [0, 1], values([0.9, 0.1])) == [0]
    assert after.source.part(0).influence.distance.tolist() == [0.9, 0.1, 0.9]
    assert after.source.part(0).influence.predicted.tolist() == [0, 1, 0]
    assert after.source.distribution().skipped == 0
    replaced = write_part(folder, after.source.part(0))
    assert replaced.other is None  # the part with the skipped record is not there any more
    found = read_part(folder, part_name(ID, 0), np.array([0, 1, 2]), ())
    assert found is not None
    assert found[0] == replaced.file
    assert found[1].distance.tolist() == [0.9, 0.1, 0.9]


def everyone(distances: Sequence[float], failures: Mapping[int, str] | None = None) -> State:
    """A state that knows all records."""
    state = new_state()
    learn(state, list(range(5)), values(distances, failures))
    return state


def summary(state: State) -> tuple[float, list[float], list[int], int]:
    """Delta, and the distances with the rows of each, of all records; how many rows were skipped."""
    found = state.source.distribution()
    return describe(found).figure("delta"), found.distance.tolist(), found.rows.tolist(), found.skipped


def test_the_summary_follows_a_part_that_another_run_wrote_first(tmp_path: Path) -> None:
    other, state, folder = everyone([0.5, 0.6, 0.7, 0.8, 0.9]), everyone([0.0, 0.1, 0.2, 0.3, 0.4]), folder_in(tmp_path)
    first = write(other, folder, 1)  # of record 2, and of record 1, which begins in part 0
    took = [state.take_written(part, write_part(folder, state.source.part(part))) for part in range(3)]
    assert took == [False, False, True]
    assert state.written[1] == first
    assert summary(state) == (0.7, [0.0, 0.1, 0.3, 0.4, 0.7], [3, 2, 1, 1, 1], 0)
    assert len(set(state.parts())) == 3
    assert all(read_tallies(folder, file) is not None for file in state.parts())


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_other_runs_wrote_is_taken_over_once_all_is_written_in_any_order(tmp_path: Path, order: Sequence[int]) -> None:
    other, state, folder = everyone([0.5, 0.6, 0.7, 0.8, 0.9]), everyone([0.0, 0.1, 0.2, 0.3, 0.4]), folder_in(tmp_path)
    for part in (0, 2):
        write(other, folder, part)
    contents = {}
    for part in order:
        own = state.source.part(part)
        contents[part] = own.influence.distance.tolist()
        state.take_written(part, write_part(folder, own))
    assert contents == {0: [0.0, 0.1, 0.0], 1: [0.2, 0.1], 2: [0.3, 0.0, 0.4]}  # no part is made of what another run found
    assert summary(state) == (0.9, [0.2, 0.5, 0.6, 0.8, 0.9], [1, 3, 2, 1, 1], 0)


def test_who_was_skipped_here_and_tested_by_the_run_that_was_first_is_not_skipped(tmp_path: Path) -> None:
    other, folder = everyone([0.5, 0.6, 0.7, 0.8, 0.9]), folder_in(tmp_path)
    state = everyone([math.nan, 0.1, 0.2, math.nan, 0.4], {0: "crashed", 3: "late"})
    write(other, folder, 0)
    for part in range(3):
        state.take_written(part, write_part(folder, state.source.part(part)))
    assert state.failures == {3: "late"}
    assert state.skipped.tolist() == [5]
    assert summary(state) == (0.6, [0.2, 0.4, 0.5, 0.6], [1, 1, 3, 2], 1)


def test_who_was_tested_here_and_skipped_by_the_run_that_was_first_is_tested(tmp_path: Path) -> None:
    other, folder = everyone([math.nan, 0.6, 0.7, 0.8, 0.9], {0: "crashed"}), folder_in(tmp_path)
    state = everyone([0.0, 0.1, 0.2, 0.3, 0.4])
    for part in (0, 1):
        write(other, folder, part)
    for part in range(3):
        state.take_written(part, write_part(folder, state.source.part(part)))
    assert summary(state) == (0.7, [0.0, 0.1, 0.3, 0.4, 0.7], [3, 2, 1, 1, 1], 0)


def test_equal_parts_of_another_run_change_nothing(tmp_path: Path) -> None:
    first, state = (everyone([0.0, 0.1, 0.2, 0.3, 0.4]) for _ in range(2))
    folder = folder_in(tmp_path)
    files = [write(first, folder, part) for part in range(3)]
    took = [state.take_written(part, write_part(folder, state.source.part(part))) for part in range(3)]
    assert took == [False] * 3
    assert state.parts() == files


def test_estimates_are_kept_by_record_and_taken_over(tmp_path: Path) -> None:
    sanitizer = {"name": "laplace", "epsilon": 1, "bins": {"age": 2}}
    (built,) = points(ROWS, SCHEMA, [{"sanitizer": sanitizer, "method": "simulate", "samples": 100}])
    record = built.rows.index[built.audited]
    plan = TestPlan(np.array([0, 4, 8]), 2, len(np.unique(record)), Cost(0.0, 1.0))
    state, after, folder = State(built, plan), State(built, plan), folder_in(tmp_path)
    names = list(state.all_estimates().by_row)
    assert names
    everyone = np.unique(record)
    influence = dataclasses.replace(
        values([0.5] * len(everyone)), estimates={name: everyone + 10.0 * place for place, name in enumerate(names, 1)}
    )
    assert state.record(everyone, influence) == [0, 1]
    for place, name in enumerate(names, 1):
        assert state.all_estimates().by_row[name].tolist() == (record + 10.0 * place).tolist()
        assert state.source.part(1).influence.estimates[name].tolist() == (record[4:] + 10.0 * place).tolist()
    for part in range(2):
        write(state, folder, part)
    after.restore(folder, folder.names(f"records/{built.id}"))
    assert after.written.keys() == {0, 1}
    for name, found in after.all_estimates().by_row.items():
        assert found.tolist() == state.all_estimates().by_row[name].tolist()


def test_small_parts_are_batched_by_number_and_by_rows() -> None:
    many = new_state(list(range(9)))
    assert many.batches([]) == []
    assert many.batches([0, 2, 5]) == [[0, 2, 5]]
    sizes = [BATCH_ROWS - 1, 1, 1, BATCH_ROWS + 5, 2] + [1] * (BATCH_PARTS + 1)
    many.rows = dataclasses.replace(many.rows, boundaries=np.concatenate([[0], np.cumsum(sizes)]))
    last = list(range(4, 4 + BATCH_PARTS))
    assert many.batches(range(len(sizes))) == [[0, 1], [2], [3], last, list(range(last[-1] + 1, len(sizes)))]


@pytest.mark.parametrize("lost", [1, 3])
def test_an_interruption_among_many_parts_loses_only_what_was_not_written(tmp_path: Path, lost: int) -> None:
    ages = np.random.default_rng(4).integers(0, 300, 1500)
    people = loaded(pd.DataFrame({"age": ages, "illness": np.where(ages % 2, "flu", "cold")}), SCHEMA)
    (built,) = points(people, SCHEMA, [{"sanitizer": "raw", "engine": "brute-force", "adversary": "bernoulli-nb"}])
    plan = TestPlan(np.arange(0, 1501, 5), 8, people.table.distinct, Cost(0.0, 1.0))
    before, after, folder = State(built, plan), State(built, plan), folder_in(tmp_path)
    distances = np.random.default_rng(5).random(people.table.distinct)
    before.record(before.records, values(distances[before.records]))
    for part in range(plan.parts):
        if part % lost or lost == 1:
            before.written[part] = write(before, folder, part)
    after.restore(folder, folder.names(f"records/{built.id}"))
    assert after.written == before.written
    owner = dict(zip(after.rows.owned.tolist(), after.rows.owner.tolist(), strict=True))
    unknown = [record for record in after.records.tolist() if owner[record] not in after.written]
    assert sorted(np.concatenate([*after.chunks(), np.empty(0, np.int64)]).tolist()) == sorted(unknown)
    if unknown:
        learn(after, unknown, values(distances[unknown]))
    assert sorted([*after.written, *after.ready()]) == list(range(plan.parts))
    for part in range(plan.parts):
        one, other = before.source.part(part), after.source.part(part)
        assert one.influence.distance.tolist() == other.influence.distance.tolist()
        assert one.multiplicity.tolist() == other.multiplicity.tolist()
