"""What a short run needs: no worker processes, and none of the packages that only other runs use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from dit_dask import run as runner
from dit_dask.audit import plan
from dit_dask.audit.grammar import check_config, read_config
from dit_dask.cluster import local
from dit_dask.config.cluster import CLUSTER
from dit_dask.errors import InputError
from dit_dask.execution import compiling
from dit_dask.execution.progress import Silent
from dit_dask.execution.workers import Workers
from tests.audits import WORKED, WORKED_SCHEMA
from tests.cluster.runs import assert_same, dit

# what a run of a CSV file with Mondrian and the default adversary may import, and what these packages import themselves
ALLOWED = """\
import fsspec.implementations.local, jinja2, numba, numpy, pandas, pyarrow.csv, pyarrow.parquet, yaml
numba.njit(lambda number: number)(1)
"""
ABSENT = ("sklearn", "scipy.stats", "scipy.optimize", "distributed", "dask", "s3fs", "ot", "bokeh", "rich", "matplotlib")
# what compiling imports, and what only other runs need
ABSENT_WHEN_COMPILED = (
    "numba.np.arraymath",
    "scipy.linalg",
    "scipy.special",
    "tenacity",
    "dit_dask.measures.discrimination.measure",
    "dit_dask.measures.synthetic.closeness",
    "dit_dask.sanitizers.external",
    "dit_dask.sanitizers.synthesizer",
)
RUN = """\
import sys
from dit_dask.cli import main
assert main(sys.argv[1:]) == 0
"""
SHOW_MODULES = """
import json, sys
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    WORKED.to_csv(tmp_path / "people.csv", index=False)
    tests = [{"sanitizer": {"name": "mondrian", "k": 2}}, {"sanitizer": {"name": "mondrian", "l": 2, "variant": "basic"}}]
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": WORKED_SCHEMA, "tests": tests}
    document["claims"] = "report"  # five people with one rare illness are not 2-diverse
    (tmp_path / "audit.yaml").write_text(json.dumps(document), "utf-8")
    return tmp_path / "audit.yaml"


def imported(program: str, *arguments: object) -> set[str]:
    """The modules that a program imports, without those of the standard library."""
    command = [sys.executable, "-c", program + SHOW_MODULES, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return {name for name in modules if packages([name]).isdisjoint(sys.stdlib_module_names)}


def packages(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_a_plain_run_imports_nothing_but_what_it_uses(config: Path, tmp_path: Path) -> None:
    modules = imported(RUN, "run", config, "--out", tmp_path / "runs")
    assert not modules & set(ABSENT)
    extension_modules = {name for name in packages(modules) if name.startswith("_")}
    assert packages(modules) - extension_modules - packages(imported(ALLOWED)) == {"dit_dask"}


def test_a_run_whose_kernels_are_compiled_imports_no_compiler_and_no_component_that_it_does_not_name(
    config: Path, tmp_path: Path
) -> None:
    assert dit("run", config, "--out", tmp_path / "compiled").returncode == 0
    modules = imported(RUN, "run", config, "--out", tmp_path / "runs")
    assert not modules & set(ABSENT_WHEN_COMPILED)


def test_a_run_with_workers_imports_dask(config: Path, tmp_path: Path) -> None:
    assert "distributed" in imported(RUN, "run", config, "--out", tmp_path / "runs", "--workers", 1)


def test_this_process_and_worker_processes_give_the_same_rows_and_figures(config: Path, tmp_path: Path) -> None:
    alone = dit("run", config, "--out", tmp_path / "alone")
    for number, options in enumerate((("--workers", 2), ("--cluster", "local"))):
        spread = dit("run", config, "--out", tmp_path / f"spread-{number}", *options)
        assert alone.returncode == spread.returncode == 0, alone.stderr + spread.stderr
        assert_same(Path(alone.stdout.splitlines()[-1]), Path(spread.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("cluster", "only_if_long"),
    [
        ({}, True),
        ({"kind": "auto"}, True),
        ({"stall_minutes": 3}, True),
        ({"workers": 1}, False),
        ({"kind": "local"}, False),
        ({"kind": "kubernetes"}, False),
        ({"dashboard": True}, False),
    ],
)
def test_workers_are_started_for_short_runs_only_when_they_are_asked_for(cluster: dict[str, Any], only_if_long: bool) -> None:
    assert CLUSTER.check(cluster, "cluster").only_if_long is only_if_long


class StartedError(InputError):
    """Workers were to be started."""


def start() -> Any:
    raise StartedError("cluster: started")


OPTIONAL = Workers(start, 2, only_if_long=True)


def test_a_short_run_completes_without_workers(config: Path) -> None:
    prepared = runner.prepare(read_config(str(config), [f"output={config.parent / 'runs'}"]))
    assert len(runner.run(prepared, OPTIONAL, Silent()).summaries) == 2


def test_threads_of_one_process_write_the_same_bytes(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan.make

    def cut_finely(*arguments: Any) -> Any:
        return {test: replace(one, tasks=8) for test, one in made(*arguments).items()}

    monkeypatch.setattr(plan, "make", cut_finely)
    folders = []
    for threads in (1, 3):
        prepared = runner.prepare(read_config(str(config), [f"output={config.parent / f'threads-{threads}'}"]))
        folders.append(Path(runner.run(prepared, Workers(None, threads), Silent()).folder.url))
    assert_same(*folders)


def test_a_long_run_starts_workers_and_writes_nothing_before_they_answer(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = runner.prepare(read_config(str(config), [f"output={config.parent / 'runs'}"]))
    for limit in ("SHORT_SECONDS", "THREADED_SECONDS"):
        monkeypatch.setattr(runner, limit, 0.0)
    with pytest.raises(StartedError):
        runner.run(prepared, OPTIONAL, Silent())
    assert not (config.parent / "runs").exists()
    finished = runner.run(prepared, Workers(None, 1), Silent())
    folder = Path(finished.folder.url)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(StartedError):
        runner.run(prepared, OPTIONAL, Silent(), fresh=True)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_an_external_sanitizer_starts_workers(tmp_path: Path) -> None:
    WORKED.to_csv(tmp_path / "people.csv", index=False)
    sanitizer = {"name": "python", "target": "tests.external.sample_sanitizers:decades"}
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": WORKED_SCHEMA, "tests": [{"sanitizer": sanitizer}]}
    prepared = runner.prepare(check_config(document | {"output": str(tmp_path / "runs")}, str(tmp_path)))
    with pytest.raises(StartedError):
        runner.run(prepared, OPTIONAL, Silent())


def test_large_tables_under_measures_start_workers(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measures = json.dumps([{"name": "discrimination", "target": "disease", "keys": ["age"]}])
    overrides = ["tests=[]", f"measures={measures}", f"output={config.parent / 'runs'}"]
    prepared = runner.prepare(read_config(str(config), overrides))
    monkeypatch.setattr(runner, "SHORT_CELLS", 1)
    with pytest.raises(StartedError):
        runner.run(prepared, OPTIONAL, Silent())
    monkeypatch.undo()
    assert len(runner.run(prepared, OPTIONAL, Silent()).measures) == 1


def test_a_short_run_resumes_in_this_process_with_the_same_bytes(config: Path) -> None:
    prepared = runner.prepare(read_config(str(config), [f"output={config.parent / 'runs'}"]))
    folder = Path(runner.run(prepared, OPTIONAL, Silent()).folder.url)
    parts = sorted(folder.glob("records/*/*.parquet"))
    before = {part: part.read_bytes() for part in parts}
    parts[0].unlink()
    (folder / "summary.json").unlink()
    runner.run(prepared, replace(OPTIONAL, stall_seconds=60.0), Silent())
    assert {part: part.read_bytes() for part in sorted(folder.glob("records/*/*.parquet"))} == before


def test_cores_are_counted_as_dask_counts_them() -> None:
    from dask.system import CPU_COUNT

    assert local.cores() == CPU_COUNT


COMPILE_BESIDE = """
import psutil
from dit_dask.execution import compiling
processes = psutil.Process().children
assert not compiling.is_compiled()
with compiling.compile_beside(["brute-force"]):
    assert not processes()
with compiling.compile_beside(["exact"]):
    assert [compiling.PROGRAM in child.cmdline() for child in processes()] == [True]
assert not processes()
"""


def test_another_process_compiles_while_the_exact_engine_is_first_used_and_ends_with_that(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_BESIDE],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


def test_kernels_that_are_compiled_need_no_other_process(config: Path) -> None:
    prepared = runner.prepare(read_config(str(config), [f"output={config.parent / 'runs'}"]))
    runner.run(prepared, OPTIONAL, Silent())
    assert compiling.is_compiled()
    with compiling.compile_beside(["exact"]):
        assert not [child for child in psutil.Process().children() if compiling.PROGRAM in child.cmdline()]


UNKNOWN_NUMBA = """\
import numba, numpy as np
numba.__version__ = "99.0"
from dit_dask.kernels import mondrian, predicates
rows = np.array([[0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1]], np.int32)
domain = np.arange(4.0), np.array([[0, 0, 4, -1]], np.int32), np.array([3.0]), np.zeros((1, 5), np.int32)
rule = (2, False, True, *(np.zeros(size, np.int64) for size in (predicates.LIMITS, 2, 1)))
order, nodes = mondrian.partition(rows, rule, *domain, np.zeros(0, np.int32), np.zeros(1), 2)
assert nodes[:, [3, 4]].tolist() == [[0, 4], [0, 2], [2, 4]], nodes
"""


def test_kernels_compile_with_a_version_of_numba_that_is_not_known(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", UNKNOWN_NUMBA], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*.nbc"))
