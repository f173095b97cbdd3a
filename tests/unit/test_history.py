"""The index of all runs, and what counts as a rise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dit_dask.audit import index
from dit_dask.audit.index import IndexEntry, TestFigures
from dit_dask.errors import InputError, RunError
from dit_dask.reporting import history
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location


def run(name: str, number: int, delta: Any, audit: str = "a") -> IndexEntry:
    tests = {"mondrian-k2": TestFigures.read({"delta": delta, "mean": 0.1})}
    return IndexEntry(f"2026-11-{number:02d}T03:00:00+00:00", name, audit, f"{name}-{number}", "f", 9, tests)


@pytest.mark.parametrize(
    ("old", "new", "rose"),
    [
        ({"delta": 0.5}, {"delta": 0.5}, False),
        ({"delta": 0.5}, {"delta": 0.5 + 1e-12}, False),
        ({"delta": 0.5}, {"delta": 0.5 + 1e-6}, True),
        ({"delta": 0.5}, {"delta": 0.4}, False),
        ({"delta": 0.5}, {"delta": "inf"}, True),
        ({"delta": "inf"}, {"delta": "inf"}, False),
        ({"delta": None}, {"delta": 1.0}, False),
        ({"delta": 0.5, "interval": [0.4, 0.6]}, {"delta": 0.65, "interval": [0.55, 0.75]}, False),
        ({"delta": 0.5, "interval": [0.4, 0.6]}, {"delta": 0.7, "interval": [0.61, 0.8]}, True),
        ({"delta": 0.5}, {"delta": 0.6, "interval": [0.45, 0.7]}, False),
    ],
)
def test_a_rise_is_more_than_rounding_or_beyond_both_intervals(old: dict[str, Any], new: dict[str, Any], rose: bool) -> None:
    assert history.is_rise(TestFigures.read(old), TestFigures.read(new)) is rose


def test_runs_are_compared_with_the_one_before_of_the_same_name_and_audit() -> None:
    runs = [run("a", 1, 0.1), run("b", 2, 0.9), run("a", 3, 0.2), run("b", 4, 0.8), run("a", 5, 0.15)]
    other = run("a", 6, 0.9, "another question")
    (rise,) = history.rises([*runs, other])
    assert (rise.name, rise.run, rise.before, rise.after) == ("a", "a-3", 0.1, 0.2)


def test_data_that_did_not_change_is_entered_once_and_data_that_came_back_again(tmp_path: Path) -> None:
    output = Folder(Location(str(tmp_path), {}))
    for number in (1, 1, 2, 2, 1, 1):
        index.append(output, run("a", number, number / 10))
    entered = index.read(output)
    assert [one.run for one in entered] == ["a-1", "a-2", "a-1"]
    assert entered[2].date > entered[0].date
    assert [rise.run for rise in history.rises(entered)] == ["a-2"]


def test_the_document_has_the_newest_tests_and_judges_rises_only_if_asked_to() -> None:
    runs = [run("a", 1, 0.1), run("b", 2, 0.9), run("a", 3, 0.2)]
    document = history.document("s3://audits", runs)
    assert (document["run"], document["status"], document["verdicts"]) == ("s3://audits", "none", [])
    assert [(one["run"], one["test"], one["delta"]) for one in document["tests"]] == [
        ("a-3", "mondrian-k2", 0.2),
        ("b-2", "mondrian-k2", 0.9),
    ]
    assert [one["run"] for one in document["runs"]] == ["a-1", "b-2", "a-3"]
    judged = history.document("s3://audits", runs, is_judged=True)
    (verdict,) = judged["verdicts"]
    assert (judged["status"], verdict["value"], verdict["limit"]) == ("failed", 0.2, 0.1)
    assert verdict["reason"] == "delta rose from 0.1 to 0.2 in a-3"
    assert history.document("s3://audits", runs[:2], is_judged=True)["status"] == "passed"


def test_the_trend_is_a_table_with_rises_marked(tmp_path: Path) -> None:
    lines = history.text([run("a", 1, 0.1), run("a", 2, 0.3), run("a", 3, None)]).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["–", "ROSE", "–"]
    assert lines[2].split()[-3:-1] == ["0.3", "0.2"]


@pytest.mark.parametrize("figures", [{"delta": "inf", "mean": None}, {"delta": 0.5, "interval": [0.25, 0.75], "mean": 0.1}])
def test_an_entry_is_read_and_written_without_any_change(figures: dict[str, Any]) -> None:
    document = run("a", 1, 0.5).document() | {"tests": {"laplace": figures}}
    assert json.dumps(IndexEntry.read(document).document()) == json.dumps(document)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"schema_version": 2, "runs": []}', b'{"schema_version": 1, "runs": [{}]}']
)
def test_an_index_of_another_kind_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index.json").write_bytes(content)
    output = Folder(Location(str(tmp_path), {}))
    with pytest.raises(RunError, match="move it away to begin a new one"):
        index.append(output, run("a", 1, 0.1))
    assert (tmp_path / "index.json").read_bytes() == content


def test_an_output_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run has been completed there"):
        index.read(Folder(Location(str(tmp_path), {})))


def test_a_release_of_other_data_under_the_same_name_is_said_to_be_composed_with_the_earlier_one() -> None:
    first, again, second = run("a", 1, 0.1), run("a", 2, 0.1), run("a", 3, 0.1)
    assert history.compositions("runs/", [first, again]) == []  # the same data, audited again
    (warning,) = history.compositions("s3://out/", [first, run("b", 4, 0.1), replace(second, fingerprint="g")])
    assert "a-3 is composed with 1 earlier release on other data" in warning
    assert "dit run CONFIG --set 'measures=[{name: composition, with: s3://out/a-1, match: {key: COLUMN}}]'" in warning
    assert history.document("s3://out/", [first, replace(second, fingerprint="g")])["warnings"] == [warning]
