"""What only Python callers can give: frames of other libraries, objects, and functions that no module has."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dask.dataframe
import pandas as pd
import polars
import pytest

import dit_dask as dit
from dit_dask.inputs import datasets

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
TESTS = [{"sanitizer": {"name": "mondrian", "k": 5}}]
FRAMES = {
    "dask": lambda frame: dask.dataframe.from_pandas(frame, npartitions=3),
    "polars": polars.from_pandas,
    "polars, lazy": lambda frame: polars.from_pandas(frame).lazy(),
}


def widen(frame: pd.DataFrame, width: int = 10) -> pd.DataFrame:
    """Publish ages as decades."""
    low = frame["age"] // width * width
    return frame.assign(age=low.astype(str) + "-" + (low + width - 1).astype(str))


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_other_libraries_give_the_same_bits(library: str) -> None:
    people = datasets.census(80)
    expected = dit.audit(people, schema=SCHEMA, tests=TESTS).distances()
    pd.testing.assert_frame_equal(dit.audit(FRAMES[library](people), schema=SCHEMA, tests=TESTS).distances(), expected)


def test_polars_is_imported_only_by_those_who_use_it() -> None:
    code = "import sys, pandas, dit_dask.api; dit_dask.inputs.arguments.to_pandas(pandas.DataFrame())"
    check = f"{code}; assert 'polars' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize("data", [polars.Series([1]), {"age": [1]}, None, 3], ids=lambda data: type(data).__name__)
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(dit.InputError, match="data must be a DataFrame, a path or a URL"):
        dit.audit(data, schema=SCHEMA, tests=TESTS)


def test_an_object_is_as_good_as_its_name() -> None:
    people = datasets.census(80)
    by_name = dit.audit(people, schema=SCHEMA, tests=TESTS)
    for tests in ([dit.Mondrian(k=5)], [{"sanitizer": dit.Mondrian(k=5)}]):
        by_object = dit.audit(people, schema=SCHEMA, tests=tests)
        assert by_object.summary.index.tolist() == ["mondrian-k5"]
        pd.testing.assert_frame_equal(by_object.distances(), by_name.distances())
    with pytest.raises(dit.InputError, match=r"tests\[0\].sanitizer: hierarchies are those of the schema"):
        dit.audit(people, schema=SCHEMA, tests=[dit.Mondrian(k=5, hierarchies={"sex": {"prefix": [1]}})])


def test_l_of_an_object_is_about_the_sensitive_attribute_of_the_schema() -> None:
    result = dit.audit(datasets.census(80), schema=SCHEMA, tests=[dit.Mondrian(l=2)])
    assert result.summary.index.tolist() == ["mondrian-l2"]
    assert bool(result.summary["claim_holds"].all())


def test_a_notebook_shows_a_bar_and_removes_it() -> None:
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    start = """
import dit_dask.execution.progress as progress
progress.NOTEBOOK_SECONDS = progress.REDRAW_SECONDS = 0
bar = progress.choose_progress(quiet=None)
bar.start(10, 0)
bar.note("<script>")
bar.advance(4)
print(bar._display is not None)
"""
    notebook = new_notebook(cells=[new_code_cell(start), new_code_cell("bar.stop()")])
    NotebookClient(notebook, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    assert [one["text"] for one in outputs if one.output_type == "stream"] == ["True\n"]
    assert [one["data"]["text/html"] for one in outputs if one.output_type == "display_data"] == [""]


def test_a_function_by_value_equals_the_same_function_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle is a module that the sanitizer process imports by its name."""
    people = datasets.census(20)
    (tmp_path / "oracle_module.py").write_text(
        "def widen(frame, width=10):\n"
        "    low = frame['age'] // width * width\n"
        "    return frame.assign(age=low.astype(str) + '-' + (low + width - 1).astype(str))\n"
    )
    monkeypatch.chdir(tmp_path)
    step = 20
    given = [
        {"sanitizer": {"name": "python", "target": "oracle_module:widen", "params": {"width": 20}}},
        {"sanitizer": {"name": "python", "target": widen, "params": {"width": 20}}},
        {"sanitizer": lambda frame: widen(frame, step)},  # a name of this function
        functools.partial(widen, width=20),
    ]
    result = dit.audit(people, schema=SCHEMA, tests=given)
    first, *others = (result.distances(place) for place in range(4))
    for other in others:
        pd.testing.assert_frame_equal(other, first)
    assert result.summary.index[2:].tolist() == ["function-lambda", "function-widen2"]


def test_runs_of_a_function_by_value_are_never_taken_for_one_another(tmp_path: Path) -> None:
    people = datasets.census(15)
    first, second = (dit.audit(people, schema=SCHEMA, tests=[widen], output=str(tmp_path)) for _ in range(2))
    assert first.url != second.url
    assert not [path for path in tmp_path.rglob("*") if ".releases" in path.parts]
    config = json.loads((Path(first.url) / "manifest.json").read_text())["config"]
    assert config["tests"][0]["sanitizer"]["pickled"].startswith("***")
    with pytest.raises(dit.InputError, match="a function that it was given by value"):
        dit.open(first.url, data=people).worst()


def test_a_function_that_cannot_be_sent_is_one_clear_line() -> None:
    lock = threading.Lock()
    with pytest.raises(dit.InputError, match=r"tests\[0\].sanitizer: this function cannot be sent to other processes"):
        dit.audit(datasets.census(20), schema=SCHEMA, tests=[lambda frame: frame.assign(age=lock)])


def test_a_function_that_draws_at_random_needs_repeats() -> None:
    import random

    with pytest.raises(dit.InputError, match="it draws at random"):
        dit.audit(
            datasets.census(30),
            schema=SCHEMA,
            tests=[lambda frame: frame.assign(age=random.sample(list(frame["age"]), len(frame)))],
        )


def test_an_opened_run_is_the_result_again(tmp_path: Path) -> None:
    people = datasets.census(60)
    people.index = [f"p{row}" for row in range(len(people))]
    made = dit.audit(people, schema=SCHEMA, tests=TESTS, gates=["delta <= 0.1"], output=tmp_path)
    opened = dit.open(made.url, data=people)
    pd.testing.assert_frame_equal(opened.summary, made.summary)
    pd.testing.assert_frame_equal(opened.distances(), made.distances())
    pd.testing.assert_frame_equal(opened.worst(3), made.worst(3))
    pd.testing.assert_frame_equal(opened.release(), made.release())
    assert opened.verdict.document() == made.verdict.document()
    assert opened.secrets == made.secrets
    with pytest.raises(dit.InputError, match=r"give it: dit\.open"):
        dit.open(made.url).worst()
    with pytest.raises(dit.InputError, match="not the one that was audited"):
        dit.open(made.url, data=people.iloc[1:]).worst()
    with pytest.raises(dit.InputError, match="is not a run folder"):
        dit.open(tmp_path / "nowhere")


def test_an_opened_run_of_a_file_reads_its_source(tmp_path: Path) -> None:
    datasets.census(60).to_csv(tmp_path / "people.csv", index=False)
    made = dit.audit(tmp_path / "people.csv", schema=SCHEMA, tests=TESTS, output=tmp_path / "runs")
    pd.testing.assert_frame_equal(dit.open(made.url).worst(2), made.worst(2))


def test_the_report_is_written_again_if_it_is_absent(tmp_path: Path) -> None:
    result = dit.audit(datasets.census(60), schema=SCHEMA, tests=TESTS, output=tmp_path)
    path = Path(result.report())
    before = path.read_bytes()
    path.unlink()
    assert Path(result.report()).read_bytes() == before


def test_a_notebook_shows_verdict_and_tests_escaped() -> None:
    people = datasets.census(60).rename(columns={"sex": "<script>"})
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "<script>": {"kind": "categorical"}}, "sensitive": "occupation"}
    result = dit.audit(people, schema=schema, tests=[{"sanitizer": {"name": "mondrian", "k": [2, 5]}}], gates=["delta <= 0.01"])
    assert repr(result).startswith("<Result failed: 2 tests, largest delta ")
    page = result._repr_html_()
    assert "<strong>FAIL</strong>" in page
    assert "delta &lt;= 0.01" in page
    assert "<td>mondrian-k5</td>" in page
    assert "<script>" not in page
    assert result.plot_tail().svg.startswith("<svg")
    assert "mondrian-k5" in result.plot_frontier().svg
