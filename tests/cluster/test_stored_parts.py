"""The summary of a run is of what is stored: parts of another run, and parts that were changed or removed meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from dit_dask import cluster
from dit_dask.audit.parts import PartFile, distance_column, part_name, read_distances, read_tallies, write_part
from dit_dask.audit.plan import Cost, TestPlan
from dit_dask.audit.state import TestState as State
from dit_dask.audit.summary import Outcome
from dit_dask.config.cluster import DEFAULT
from dit_dask.engines.gain import CHANGED, merge_tallies
from dit_dask.errors import RunError
from dit_dask.execution import tests as execution
from dit_dask.execution.runner import TaskRunner
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.audits import loaded, points

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}
ROWS, PARTS = 60, 20  # so that the parts are checked by more than one task
PEOPLE = pd.DataFrame(
    {
        "age": np.arange(ROWS),  # each row is a record of its own: what is stored of it is in one part
        "town": np.random.default_rng(1).choice(list("abc"), ROWS),
        "illness": np.random.default_rng(2).choice(["flu", "cold", "gout"], ROWS),
    }
)
TABLE = loaded(PEOPLE, SCHEMA)
(TEST,) = points(TABLE, SCHEMA, [{"sanitizer": {"name": "mondrian", "k": 4}}])
PLAN = TestPlan(np.linspace(0, ROWS, PARTS + 1).astype(np.int64), 4, ROWS, Cost(0.0, 1.0))


class LooksOnce:
    """Does something when all parts are written and nothing is summed up yet."""

    def __init__(self, when_written: Callable[[], object] = lambda: None) -> None:
        self._when_written = when_written

    def __call__(self) -> None:
        """Nothing to look at."""

    def settle(self) -> None:
        """All parts are written."""
        self._when_written()


def execute(folder: Folder, state: State, checkpoint: LooksOnce | None = None, client: Client | None = None) -> Outcome:
    (outcome,) = execution.execute_tests(TaskRunner(client), [TEST], folder, [state], checkpoint or LooksOnce())
    return outcome


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(Location(str(tmp_path / "run"), {}))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> State:
    """What a run found."""
    state = State(TEST, PLAN)
    execute(Folder(Location(str(tmp_path_factory.mktemp("finished")), {})), state)
    return state


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with cluster.connect(replace(DEFAULT, workers=2)) as client:
        yield client


def write_others(folder: Folder, finished: State, parts: Sequence[int]) -> dict[int, PartFile]:
    """Write some parts as a run has them that found larger distances, other gains and other predictions."""
    values = finished.source.values
    shifts = {
        name: replace(one, distance=one.distance + 1.5, gain=one.gain / 2, marks=one.marks ^ CHANGED)
        for name, one in values.shifts.items()
    }
    predicted = np.stack([values.predicted[0], values.predicted[0] + 1])
    other = replace(finished.source, values=replace(values, distance=values.distance + 1.5, predicted=predicted, shifts=shifts))
    return {part: write_part(folder, other.part(part)).file for part in parts}


@pytest.mark.parametrize("where", ["here", "on workers", "on workers that have a copy"])
@pytest.mark.parametrize("parts", [(3, 17), range(PARTS)])
def test_figures_are_those_of_parts_that_another_run_wrote_first(
    folder: Folder,
    finished: State,
    where: str,
    parts: Sequence[int],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = None if where == "here" else request.getfixturevalue("client")
    monkeypatch.setattr(execution, "SENT_RECORDS", 0 if where == "on workers that have a copy" else ROWS + 1)
    others, state = write_others(folder, finished, parts), State(TEST, PLAN)
    outcome = execute(folder, state, client=client)
    assert {part: state.written[part] for part in parts} == others
    stored, figures = read_distances(folder, TEST.id), outcome.description.statistics
    assert len(stored) == figures.figure("records") == ROWS
    assert figures.figure("delta") == stored["distance"].max() > 1.5
    assert figures.figure("mean") == pytest.approx(stored["distance"].mean(), abs=1e-12)  # another order of additions
    assert figures.figure("argmax_changed") == (stored["predicted"] != stored["predicted_without"]).mean()
    tallies = [read_tallies(folder, file) for file in state.parts()]
    for name, alone in outcome.description.adversaries.items():
        tally = merge_tallies([each[name] for each in tallies if each is not None])
        assert alone.figure("delta") == stored[distance_column(name)].max()
        assert alone.figure("argmax_changed") == tally.marked(CHANGED) / ROWS
        assert alone.figure("mean_gain") == tally.mean
        assert outcome.description.gains[name] == tally
    np.testing.assert_array_equal(outcome.points["distance"], np.unique(stored["distance"]))


def test_figures_do_not_depend_on_who_wrote_equal_parts(folder: Folder, finished: State, tmp_path: Path) -> None:
    expected = execute(Folder(Location(str(tmp_path / "alone"), {})), State(TEST, PLAN))
    for part in range(0, PARTS, 3):
        write_part(folder, finished.source.part(part))
    shared = execute(folder, State(TEST, PLAN))
    resumed = State(TEST, PLAN)
    resumed.restore(folder, folder.names(f"records/{TEST.id}"))
    assert len(resumed.written) == PARTS
    for outcome in (shared, execute(folder, resumed)):
        assert outcome.description.statistics == expected.description.statistics
        assert outcome.description.adversaries == expected.description.adversaries
        assert outcome.description.gains == expected.description.gains


def change_byte(folder: Folder, name: str) -> None:
    content = bytearray(folder.read(name) or b"")
    content[len(content) // 2] ^= 1
    folder.write(name, bytes(content))


def replace_by_another(folder: Folder, name: str) -> None:
    """By one that is valid, of the same rows."""
    folder.write(name, folder.read(f"others/{name}") or b"")


@pytest.mark.parametrize("part", [0, PARTS - 1])
@pytest.mark.parametrize("spoil", [change_byte, Folder.remove, replace_by_another])
def test_a_part_that_was_changed_or_removed_before_the_summary_is_refused(
    folder: Folder, finished: State, spoil: Callable[[Folder, str], None], part: int
) -> None:
    write_others(folder.child("others"), finished, [part])
    name = part_name(TEST.id, part)
    checkpoint = LooksOnce(lambda: spoil(folder, name))
    with pytest.raises(RunError, match=rf"run/{name} cannot be read back; the output must be one place for all workers"):
        execute(folder, State(TEST, PLAN), checkpoint)


def test_the_tallies_of_parts_are_added_up_however_they_are_dealt_out(folder: Folder, finished: State) -> None:
    files = [write_part(folder, finished.source.part(part)).file for part in range(PARTS)]
    values, everyone = finished.source.values, finished.records
    expected = {name: finished.rows.tally(one.take(everyone), everyone) for name, one in values.shifts.items()}
    assert execution.check_parts(folder, files) == expected
    for size in (1, 7):
        edges = [*range(0, PARTS, size), PARTS]
        dealt = [execution.check_parts(folder, files[start:stop]) for start, stop in pairwise(edges)]
        assert execution.describe_records(finished.source.without_rows(), dealt)[0].gains == expected
