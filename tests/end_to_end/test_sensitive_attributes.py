"""Several sensitive attributes in one run, from config to verdict."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask import cli
from tests.external import people_audit

SENSITIVE = [{"name": "salary", "bins": 3}, "illness", {"joint": ["salary", "illness"]}]


def staff(rows: int = 120) -> pd.DataFrame:
    """People with a salary and an illness."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"age": rng.integers(20, 60, rows), "town": rng.choice(["Ulm", "Kiel", "Bonn"], rows)})
    return frame.assign(salary=rng.integers(20, 90, rows) * 100, illness=rng.choice(["flu", "flu", "gout"], rows))


def write_config(folder: Path, sensitive: Any, **more: Any) -> Path:
    staff().to_csv(folder / "staff.csv", index=False)
    document = {
        "version": 1,
        "data": {"source": "staff.csv"},
        "schema": {
            "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
            "sensitive": sensitive,
        },
        "tests": [{"sanitizer": {"name": "mondrian", "k": [3, 10]}}],
        "output": str(folder / "runs"),
    }
    path = folder / "staff.yaml"
    path.write_text(yaml.safe_dump(document | more), "utf-8")
    return path


def run(path: Path, capsys: pytest.CaptureFixture[str], expected: int) -> dict[str, Any]:
    assert cli.main(["run", str(path), "--quiet", "--json"]) == expected
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_run_has_a_test_a_control_and_a_measure_for_each_attribute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = [{"name": "discrimination", "attack": "homogeneity"}]
    gates = ["delta <= 0.00001 for *.salary", "delta >= 0 for *k3.illness"]
    document = run(write_config(tmp_path, SENSITIVE, measures=measures, gates=gates), capsys, 1)
    names = ["salary", "illness", "salary-illness"]
    ids = [f"mondrian-k{k}.{name}" for k in (3, 10) for name in names]
    assert [one["test"] for one in document["tests"]] == ids
    assert [one["parameters"]["sensitive"] for one in document["tests"]] == ["salary", "illness", "salary+illness"] * 2
    assert [one["test"] for one in document["verdicts"]] == ["mondrian-k3.salary", "mondrian-k10.salary", "mondrian-k3.illness"]
    assert sorted((one["control"], one["tests"][0]) for one in document["controls"]) == sorted(
        (control, f"mondrian-k3.{name}") for control in ("raw", "suppressed") for name in names
    )
    measured = {(one["parameters"]["sensitive"], one["id"].rpartition(".")[2]) for one in document["measures"]}
    assert measured == {("salary", "salary"), ("illness", "illness"), ("salary+illness", "salary-illness")}
    folder = Path(document["run"])
    assert sorted(path.name for path in (folder / "records").iterdir()) == sorted(ids)
    assert "<dt>sensitive attributes</dt><dd><code>salary</code>, <code>illness</code>" in (folder / "report.html").read_text(
        "utf-8"
    )
    assert run(tmp_path / "staff.yaml", capsys, 1) == document  # a second run finds everything done
    assert cli.main(["report", str(folder)]) == 0


def test_a_single_attribute_has_the_same_id_as_ever_and_a_list_of_one_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = run(write_config(tmp_path, "illness"), capsys, 0)["tests"]
    listed = run(write_config(tmp_path, ["illness"]), capsys, 0)["tests"]
    assert [one["test"] for one in alone] == ["mondrian-k3", "mondrian-k10"]
    assert [one["test"] for one in listed] == ["mondrian-k3.illness", "mondrian-k10.illness"]
    assert all("sensitive" not in one["parameters"] for one in alone)
    assert [one["delta"] for one in alone] == [one["delta"] for one in listed]


def test_a_test_may_choose_its_attributes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not every distance suits every attribute: an illness has no order."""
    ordered = {"name": "wasserstein", "ground": "ordered"}
    tests = [
        {"sanitizer": {"name": "mondrian", "k": 3}, "distance": ordered, "sensitive": "salary"},
        {"sanitizer": {"name": "mondrian", "k": 5}, "sensitive": ["illness", "salary"], "label": "five"},
    ]
    document = run(write_config(tmp_path, SENSITIVE, tests=tests), capsys, 0)
    ids = [one["test"] for one in document["tests"]]
    assert ids == ["mondrian-k3.wasserstein-ordered.salary", "five.illness", "five.salary"]
    assert cli.main(["run", str(write_config(tmp_path, SENSITIVE, tests=[tests[0] | {"sensitive": "illness"}]))]) == 2
    assert "'illness' has no order" in capsys.readouterr().err


def test_a_row_that_misses_one_of_the_attributes_is_dropped_for_all(tmp_path: Path) -> None:
    frame = staff()
    frame.loc[[5, 9], "illness"] = None
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": ["salary", "illness"]}
    result = dit.audit(frame, schema=schema, tests=[{"sanitizer": {"name": "mondrian", "k": 3}}])
    for test in ("mondrian-k3.salary", "mondrian-k3.illness"):
        assert result.distances(test).index.tolist() == [row for row in range(120) if row not in (5, 9)]
    assert list(result.values) == ["salary", "illness"]
    with pytest.raises(dit.InputError, match="there are 2 sensitive attributes"):
        _ = result.secrets


@pytest.mark.parametrize(
    ("sensitive", "message"),
    [
        ([], "schema.sensitive must be a list of at least 1; got 0"),
        (["salary", "salary"], "schema.sensitive[1]: 'salary' is listed twice"),
        ({"joint": ["salary"]}, "schema.sensitive.joint must be a list of at least 2; got 1"),
        ({"joint": ["salary", "salary"]}, "schema.sensitive.joint[1]: 'salary' is listed twice"),
        ([{"joint": ["salary", "age"]}], "schema.sensitive[0].joint[1] 'age' is also among the quasi_identifiers"),
        (["illness", "age"], "schema.sensitive[1] 'age' is also among the quasi_identifiers"),
        ({"joint": ["salary", "rank"]}, "no column 'rank' among 4"),
        (["illness", "rank"], "no column 'rank' among 4"),
        (
            [{"name": "salary", "bins": 3}, {"joint": [{"name": "salary", "bins": 4}, "illness"]}],
            "schema.sensitive[1].joint[0]: 'salary' is described in another way by schema.sensitive[0]",
        ),
        (
            [{"joint": ["salary", "illness"], "name": "town"}],
            "schema.sensitive[0].name: 'town' is the name of another attribute",
        ),
        (["salary", {"joint": ["salary", "illness"], "name": "illness"}], "'illness' is the name of another attribute"),
        (["salary", 3], "schema.sensitive[1] must be a column name or a mapping; got 3"),
        (["salary", {"name": "illness", "bins": 3}], "schema.sensitive[1].bins: bins are of numbers; column 'illness' must be"),
    ],
)
def test_bad_lists_are_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], sensitive: Any, message: str) -> None:
    assert cli.main(["run", str(write_config(tmp_path, sensitive))]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def with_jobs() -> pd.DataFrame:
    people = people_audit.people()
    return people.assign(pay=[100 * (number * 11 % 17) for number in range(len(people))])


def test_an_external_sanitizer_is_called_once_for_all_attributes(tmp_path: Path) -> None:
    records, log = [0, 7, 30], tmp_path / "calls.txt"
    sanitizer = people_audit.python_sanitizer("logs_calls", params={"log": str(log)}, claim={"k": 2})
    attributes = [{"name": "pay", "bins": 3}, "illness", {"joint": ["pay", "illness"]}]
    calls, results = [], []
    for sensitive in (attributes, *attributes[:2]):
        schema = people_audit.SCHEMA | {"sensitive": sensitive}
        log.unlink(missing_ok=True)
        with chdir(people_audit.HERE):
            tests = [{"sanitizer": sanitizer, "records": records}]
            results.append(dit.audit(with_jobs(), schema=schema, tests=tests, controls=False))
        calls.append(len([line for line in log.read_text("utf-8").splitlines() if line == "59"]))
    assert calls == [len(records)] * 3
    for place, alone in enumerate(results[1:]):
        pd.testing.assert_frame_equal(results[0].distances(place), alone.distances(), check_exact=True)


def test_an_external_release_has_no_further_column_where_that_is_a_sensitive_attribute() -> None:
    schema = people_audit.SCHEMA | {"sensitive": ["illness", "pay"]}
    with chdir(people_audit.HERE):
        tests = [{"sanitizer": people_audit.python_sanitizer("decades"), "records": [0, 7]}]
        result = dit.audit(with_jobs(), schema=schema, tests=tests)
    assert [one["oracle"]["further"] for one in result.tests] == [0, 0]


def test_a_joint_value_that_no_row_has_is_refused() -> None:
    schema = people_audit.SCHEMA | {"sensitive": {"joint": ["illness", "name"]}}
    with chdir(people_audit.HERE):
        tests = [{"sanitizer": people_audit.python_sanitizer("shuffles_names"), "records": [0]}]
        with pytest.raises(dit.RunError, match=r"columns 'illness', 'name': it published \d+ joint values that no row"):
            dit.audit(with_jobs(), schema=schema, tests=tests)


def test_risk_shows_every_sensitive_column_with_its_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path, SENSITIVE)
    assert cli.main(["risk", str(path), "--json", "--size", "2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["keys"] for one in document["columns"]] == [["age"], ["town"]]
    for one in document["columns"]:
        assert set(one["sensitive"]) == {"salary", "illness"}
        assert one["sensitive_rate"] is None
    schemas = {"salary": "illness", "illness": "salary"}
    for name, other in schemas.items():
        assert cli.main(["risk", str(write_config(tmp_path, name)), "--json", "--size", "1", "--without", other]) == 0
        alone = json.loads(capsys.readouterr().out)["columns"]
        found = [(one["sensitive"][name]["rate"], one["sensitive"][name]["chance"]) for one in document["columns"]]
        assert [(one["sensitive_rate"], one["sensitive_chance"]) for one in alone] == found


def test_a_draft_takes_several_sensitive_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    staff().to_csv("staff.csv", index=False)
    assert cli.main(["init", "staff.csv", "--sensitive", "salary", "--sensitive", "illness"]) == 0
    schema = yaml.safe_load(Path("staff.yaml").read_text("utf-8"))["schema"]
    assert schema["sensitive"] == [{"name": "salary", "bins": 5}, "illness"]
    assert set(schema["quasi_identifiers"]) == {"age", "town"}
    assert cli.main(["run", "staff.yaml", "--quiet", "--set", "tests.0.sanitizer.k=5"]) in (0, 1)


def test_files_of_all_attributes_travel_with_a_deployment() -> None:
    from dit_dask.audit.grammar import named_files

    joint = {"joint": [{"name": "cancer", "from": "icd", "map": "a.csv"}, {"name": "town", "hierarchy": "b.csv"}]}
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": [joint, {"name": "job", "hierarchy": "c.csv"}]}
    assert named_files({"schema": schema}) == [
        ("schema.sensitive[0].joint[0].map", "a.csv"),
        ("schema.sensitive[0].joint[1].hierarchy", "b.csv"),
        ("schema.sensitive[1].hierarchy", "c.csv"),
    ]


def test_a_list_gives_what_each_attribute_has_alone_also_where_persons_have_several_rows() -> None:
    frame = staff().assign(person=[row // 3 for row in range(120)])
    schema = {"subject": "person", "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}}
    tests = [{"sanitizer": {"name": "mondrian", "k": 3}}]
    together = dit.audit(frame, schema=schema | {"sensitive": SENSITIVE}, tests=tests)
    for place, sensitive in enumerate(SENSITIVE[:2]):
        alone = dit.audit(frame, schema=schema | {"sensitive": sensitive}, tests=tests)
        pd.testing.assert_frame_equal(together.distances(place), alone.distances(), check_exact=True)
        assert together.tests[place]["subjects"] == alone.tests[0]["subjects"] == 40
        assert together.tests[place]["delta"] == alone.tests[0]["delta"]


def test_a_raw_release_of_binned_numbers_is_the_original_to_measures_of_records() -> None:
    """What is published are bins, so the original is compared by its bins, not by its numbers."""
    schema = {"quasi_identifiers": {"town": {"kind": "categorical"}}, "sensitive": SENSITIVE}
    result = dit.audit(staff(), schema=schema, tests=[{"sanitizer": "raw"}], measures=["accuracy"], controls=False)
    originals = {one["parameters"]["sensitive"]: one["value"] for one in result.measures if one["sanitizer"] is None}
    assert originals == {"salary": 0.0, "illness": 0.0, "salary+illness": 0.0}
