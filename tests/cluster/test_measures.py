"""Measures on a cluster: what they are shown, how they are spread, kept and resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dit_dask import cluster, discrimination_by_value, discrimination_rate, run
from dit_dask.audit import measure_plan as measurements
from dit_dask.audit.grammar import read_config
from dit_dask.audit.measure_plan import Measurement
from dit_dask.config.cluster import DEFAULT
from dit_dask.errors import RunError
from dit_dask.execution import measures as measuring
from dit_dask.execution.runner import TaskRunner
from dit_dask.measures.base import MeasureInput, MeasureResult
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.cluster.runs import dit

MEASURE = {"name": "discrimination", "target": "illness", "keys": ["job", "shoe"]}


class Spread:
    """Sums row numbers in pieces; says what it was shown."""

    def pieces(self, inputs: MeasureInput) -> Sequence[Any]:
        return np.array_split(np.arange(len(inputs.frame)), 3)

    def find_piece(self, inputs: MeasureInput, piece: Any) -> int:
        return int(inputs.frame.index[piece].to_numpy().sum())

    def join(self, inputs: MeasureInput, found: Sequence[int]) -> MeasureResult:
        return MeasureResult(sum(found), [], len(found), columns={"twice": 2 * np.arange(len(inputs.frame))})

    def find(self, inputs: MeasureInput) -> MeasureResult:
        raise NotImplementedError("it is divided")


class Fails:
    def find(self, _evidence: MeasureInput) -> MeasureResult:
        raise ValueError("as it must")


@pytest.fixture
def prepared(config_file: Path) -> run.PreparedRun:
    people = pd.read_csv(config_file.parent / "people.csv")
    people.assign(shoe=[str(36 + n % 9) if n % 7 else "?" for n in range(len(people))]).to_csv(
        config_file.parent / "people.csv", index=False
    )
    return run.prepare(
        read_config(str(config_file), [f"measures={json.dumps([MEASURE])}", "output=" + str(config_file.parent)])
    )


def test_a_measure_sees_the_used_rows_and_columns_outside_the_schema(prepared: run.PreparedRun) -> None:
    assert prepared.measure_plan is not None
    frame = prepared.measure_plan.shared_inputs.cells.expand()
    assert list(frame.columns) == ["age", "town", "job", "illness", "shoe"]
    assert len(frame) == prepared.rows.used == 60  # a missing shoe drops no row from the audit
    assert frame["shoe"].isna().tolist() == [n % 7 == 0 for n in range(60)]


def test_only_a_config_with_measures_has_another_digest(config_file: Path, prepared: run.PreparedRun) -> None:
    plain = run.prepare(read_config(str(config_file)))
    assert plain.measure_plan is None
    assert plain.folder.url.rsplit("-", 1)[0].endswith("people")
    assert plain.folder.url != prepared.folder.url
    (config_file.parent / "people.csv").write_text((config_file.parent / "people.csv").read_text().replace(",44", ",45"))
    assert run.prepare(read_config(str(config_file))).folder == plain.folder  # shoes are no part of this audit
    changed = run.prepare(replace(prepared.config))
    assert changed.folder.url != prepared.folder.url


def one(measure: Any, identity: str = "spread") -> Measurement:
    return Measurement(identity, "spread", {"name": "spread", "records": True}, measure, {}, None)


def test_a_divided_measure_is_joined_and_its_columns_kept(prepared: run.PreparedRun, tmp_path: Path) -> None:
    assert prepared.measure_plan is not None
    measure_plan = measurements.MeasurePlan(prepared.measure_plan.shared_inputs, [one(Spread())], "")
    folder = Folder(Location(str(tmp_path / "run"), {}))
    (entry,) = measuring.execute_measures(TaskRunner(None), measure_plan, folder)
    assert (entry.value, entry.records, entry.columns) == (sum(range(60)), 3, ["twice"])
    kept = tmp_path / "run" / "measures" / "spread.json"
    stamp = kept.stat().st_mtime_ns
    assert measuring.execute_measures(TaskRunner(None), measure_plan, folder) == [entry]
    assert kept.stat().st_mtime_ns == stamp
    (tmp_path / "run" / "measures" / "spread.parquet").unlink()
    assert not measuring.is_complete(measure_plan, folder)
    assert measuring.execute_measures(TaskRunner(None), measure_plan, folder) == [entry]
    columns = pd.read_parquet(tmp_path / "run" / "measures" / "spread.parquet")
    assert columns["record"].tolist() == list(range(60))
    assert columns["twice"].tolist() == list(range(0, 120, 2))


def test_a_measure_that_fails_says_so_in_one_line_and_the_others_are_kept(prepared: run.PreparedRun, tmp_path: Path) -> None:
    assert prepared.measure_plan is not None
    measure_plan = measurements.MeasurePlan(prepared.measure_plan.shared_inputs, [one(Spread()), one(Fails(), "fails")], "")
    folder = Folder(Location(str(tmp_path / "run"), {}))
    with pytest.raises(RunError, match=r"^fails: ValueError \(--show-values shows its message"):
        measuring.execute_measures(TaskRunner(None), measure_plan, folder)
    assert measuring.read_entry(folder, one(Spread())) is not None


def test_a_run_of_measures_alone_has_a_report_and_no_tests(config_file: Path, tmp_path: Path) -> None:
    measure = {"name": "discrimination", "target": "illness", "keys": ["job", "town"]}
    done = dit("run", config_file, "--out", tmp_path / "out", "--set", "tests=[]", "--set", f"measures={json.dumps([measure])}")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    (entry,) = json.loads((folder / "measures.json").read_text())
    assert entry.keys() >= {"measure", "parameters", "value", "by_value", "records"}
    assert json.loads((folder / "summary.json").read_text()) == []
    assert "No inference test was run" in (folder / "report.html").read_text()
    refused = dit("gate", folder, "--fail-on", "delta > 1")
    assert (refused.returncode, refused.stderr) == (
        2,
        "dit: dit gate: the run has measures only; delta and the like judge tests\n",
    )
    (folder / "measures.json").write_text("[{")
    assert dit("report", folder).returncode == 2
    assert (
        dit(
            "run", config_file, "--out", tmp_path / "out", "--set", "tests=[]", "--set", f"measures={json.dumps([measure])}"
        ).returncode
        == 0
    )
    assert json.loads((folder / "measures.json").read_text()) == [entry]


def test_a_cluster_shuffles_many_combinations_to_the_same_rate() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"x": rng.integers(0, 5, 4000), "y": rng.integers(0, 900, 4000), "z": rng.choice(["a", "b"], 4000)})
    lazy = dd.from_pandas(table, npartitions=20)  # more than one level of merging, so that pairs are shuffled
    expected = discrimination_rate(table["x"], table[["y", "z"]])
    with cluster.connect(replace(DEFAULT, workers=2)):
        assert discrimination_rate(lazy["x"], lazy[["y", "z"]]) == expected
        found = discrimination_by_value(lazy["x"], lazy[["y", "z"]])
    assert discrimination_rate(lazy["x"], lazy[["y", "z"]]) == expected  # threads, shuffling on disk
    pd.testing.assert_frame_equal(found, discrimination_by_value(table["x"], table[["y", "z"]]), check_exact=True)
