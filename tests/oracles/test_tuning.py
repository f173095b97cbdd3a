"""Tuning against audits of single values; the frontier and the recommendation against their definitions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dit_dask as dit
from dit_dask.audit.verdict import Verdict
from dit_dask.cli import main
from dit_dask.deciding.figures import RISKS, labels_of
from dit_dask.deciding.frontier import find_frontier
from dit_dask.deciding.tuning import Point, recommend
from tests.oracles.test_explanations import patients, schema
from tests.oracles.test_hardening import check_schema, written

VALUES = [3, 6, 12, 24, 48]


@pytest.fixture(scope="module")
def tuned() -> dit.Tuning:
    return dit.tune(patients(), schema=schema(), sanitizer="mondrian", values=VALUES[::-1], gates=["delta <= 0.4"])


def test_the_curve_has_the_figures_of_single_audits(tuned: dit.Tuning) -> None:
    assert tuned.curve.index.tolist() == VALUES  # the weakest first, whatever order they were given in
    for k in VALUES:
        tests = [{"sanitizer": {"name": "mondrian", "k": k}}]
        alone = dit.audit(patients(), schema=schema(), tests=tests, gates=["delta <= 0.4"], controls=False)
        for name in ("delta", "mean", "mean_gain", "certainty_penalty", "classes"):
            assert tuned.curve.loc[k, name] == alone.tests[0][name], name
        assert tuned.curve.loc[k, "share_over[0.1]"] == alone.tests[0]["share_over"]["0.1"]
        assert tuned.curve.loc[k, "status"] == alone.verdict.status


def test_the_weakest_value_that_passes_is_recommended(tuned: dit.Tuning) -> None:
    passed = tuned.curve.index[tuned.curve["status"] == "passed"]
    assert 0 < len(passed) < len(VALUES)  # else nothing was chosen
    assert tuned.recommended == passed.min()
    assert tuned.reason.startswith(f"k = {tuned.recommended} is the weakest of 5 values that passes every gate")
    assert "fails delta <= 0.4" in tuned.reason
    assert tuned.plot()._repr_svg_().startswith("<svg")
    assert "recommended" in tuned.plot_frontier().svg


def test_the_frontier_is_what_nothing_beats(tuned: dit.Tuning) -> None:
    for risk in labels_of(RISKS):
        pairs = tuned.curve[["certainty_penalty", risk]]
        best = [
            k
            for k, own in pairs.iterrows()
            if not any((other <= own).all() and (other < own).any() for _, other in pairs.iterrows())
        ]
        assert tuned.frontier(risk).index.tolist() == sorted(best, key=lambda k: pairs.loc[k, "certainty_penalty"])


def test_the_frontier_of_an_audit_names_its_tests() -> None:
    tests = [{"sanitizer": {"name": "mondrian", "k": VALUES}}, {"sanitizer": "raw"}]
    result = dit.audit(patients(), schema=schema(), tests=tests, controls=False)
    found = result.frontier()
    assert found.columns[0] == "certainty_penalty"
    assert set(found.index) <= {f"mondrian-k{k}" for k in VALUES}  # what is not sanitised is no choice
    assert found["certainty_penalty"].is_monotonic_increasing
    assert found["delta"].is_monotonic_decreasing
    with pytest.raises(dit.InputError, match="did you mean 'delta'"):
        result.frontier("dleta")


def test_epsilon_is_weakest_where_it_is_largest() -> None:
    tuned = dit.tune(
        patients(),
        schema=schema(),
        sanitizer={"name": "laplace", "bins": {"age": 2}},
        values=[0.1, 2, 1],
        gates=["delta <= 0.1"],
    )
    assert tuned.curve.index.tolist() == [2, 1, 0.1]
    assert tuned.curve["delta"].is_monotonic_decreasing
    passed = tuned.curve.index[tuned.curve["status"] == "passed"]
    assert tuned.recommended == passed.max()


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(points)
def test_every_point_is_on_the_frontier_or_beaten_by_one_that_is(pairs: list[tuple[int, int]]) -> None:
    figures = [{"delta": float(risk), "certainty_penalty": float(loss)} for risk, loss in pairs]
    places = find_frontier(figures, "delta", "certainty_penalty")
    best = [pairs[place] for place in places]
    for place, pair in enumerate(pairs):
        beaten = any(a <= pair[0] and b <= pair[1] and (a, b) != pair for a, b in best)
        assert beaten != (place in places)


def _point(value: float, status: str) -> Point:
    verdicts = [] if status == "none" else [Verdict(status, "delta <= 0.1", f"k{value}", 0.2, 0.1, "delta is 0.2")]  # type: ignore[arg-type]
    figures = {"delta": 0.2, "certainty_penalty": 0.1, "query_error[0.5]": None}
    return Point(value, [f"k{value}"], figures, verdicts)


@pytest.mark.parametrize(
    ("statuses", "expected", "words"),
    [
        (["failed", "passed", "passed"], 1, "k = 1 is the weakest of 3 values"),
        (["passed", "failed", "passed"], 0, "not monotone: the stronger k = 1 does not pass"),
        (["failed", "passed", "inconclusive"], 1, "not monotone: the stronger k = 2 does not pass"),
        (["failed", "failed", "inconclusive"], None, "no value passes every gate: the strongest, k = 2, cannot be judged"),
        (["inconclusive"] * 3, None, "none can be judged"),
        (["none"] * 3, None, "no gate says what is safe enough"),
    ],
)
def test_the_reason_says_what_was_decided(statuses: Sequence[str], expected: float | None, words: str) -> None:
    recommended, reason = recommend("k", [_point(place, status) for place, status in enumerate(statuses)])
    assert recommended == expected
    assert words in reason


def tune_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    code = main(["tune", *map(str, arguments), "--json", "--quiet"])
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return code, document


def test_the_command_writes_the_curve_and_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, patients(), ["delta <= 0.4"])
    code, document = tune_json(capsys, config, "--values", "3,12, 48")
    assert code == 0
    folder = Path(str(document["run"]))
    assert json.loads((folder / "tune.json").read_text()) == document["tune"]
    check_schema(document["tune"], "tune")
    assert (folder / "tune.svg").read_text().startswith("<svg")
    assert (folder / "frontier.svg").read_text().startswith("<svg")
    assert "is the weakest of 3 values that passes every gate" in (folder / "report.html").read_text()
    parts = {path: path.stat().st_mtime_ns for path in (folder / "records").rglob("*.parquet")}
    assert tune_json(capsys, config, "--values", "3,12,48") == (code, document)
    assert {path: path.stat().st_mtime_ns for path in parts} == parts
    assert main(["tune", str(config), "--values", "3,12,48", "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split()[:2] == ["k", "delta"]
    assert printed[-1] == str(folder)
    assert printed[-2].startswith("k = ")


def test_exit_codes_are_those_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    never = written(tmp_path, patients(120), ["delta <= 1e-9"])
    code, document = tune_json(capsys, never, "--values", "3,6")
    assert (code, document["status"]) == (1, "failed")
    found = document["tune"]
    assert isinstance(found, dict)
    assert found["recommended"] is None
    assert str(found["reason"]).startswith("no value passes every gate")
    code, document = tune_json(capsys, written(tmp_path, patients(120), []), "--values", "3,6")
    assert (code, document["status"]) == (0, "none")
    code, document = tune_json(capsys, written(tmp_path, patients(120), ["delta <= 3"]), "--values", "3,6")
    assert (code, document["status"]) == (1, "inconclusive")


def test_the_default_grid_fits_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = tune_json(capsys, written(tmp_path, patients(60)))
    found = document["tune"]
    assert isinstance(found, dict)
    assert [point["value"] for point in found["values"]] == [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30]
    config = written(tmp_path, patients(60), tests=[{"sanitizer": {"name": "mondrian", "k": [9, 4]}}, {"sanitizer": "raw"}])
    _, document = tune_json(capsys, config)
    found = document["tune"]
    assert isinstance(found, dict)
    assert [point["value"] for point in found["values"]] == [4, 9]


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (["--values", "1,2"], {}, "--values must be an integer >= 2; got 1"),
        (["--values", "2.5"], {}, "--values must be an integer"),
        (["--values", ","], {}, "--values must be a list"),
        (["--values", "5,500"], {}, "must be at most the table's 60 rows; got 500"),
        (["--parameter", "l"], {}, "no test sets a parameter called 'l'"),
        ([], {"tests": [{"sanitizer": "raw"}]}, "no test sets a parameter that can be tuned (entropy_l, epsilon, k, l"),
        (["--attributes", "--values", "2"], {}, "does not go with --values"),
        (["--attributes", "--test", "mondrian-k13"], {}, "did you mean 'mondrian-k12'"),
        (["--test", "mondrian-k12"], {}, "--test goes with --attributes"),
        ([], {"gates": ["mean_gain < -1"]}, "can never hold: mean_gain lies between -1 and 1"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    changes: dict[str, object],
    message: str,
) -> None:
    assert main(["tune", str(written(tmp_path, patients(60), **changes)), *arguments]) == 2  # type: ignore[arg-type]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1


def test_two_parameters_need_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [{"sanitizer": {"name": "mondrian", key: 3}} for key in ("k", "l")]
    config = written(tmp_path, patients(60), tests=tests)
    assert main(["tune", str(config)]) == 2
    assert "--parameter is missing: the tests set k of mondrian, l of mondrian" in capsys.readouterr().err
    _, document = tune_json(capsys, config, "--parameter", "l", "--values", "2,3")
    found = document["tune"]
    assert isinstance(found, dict)
    assert (found["parameter"], len(found["values"])) == ("l", 2)


def _banded(ages: pd.Series, count: int) -> pd.Series:
    """Put the middles of bands of about equal frequency in place of ages, cut as docs/configuration.md says of bins."""
    from dit_dask.values.bins import equal_frequency

    counts = ages.value_counts().sort_index()
    band = pd.Series(equal_frequency(counts.to_numpy(), count), counts.index)
    ends = band.reset_index().groupby(0)["age"].agg(["min", "max"]).mean(axis=1)
    return ages.map(band).map(ends)


def test_alternatives_have_the_figures_of_changed_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = patients()
    code, document = tune_json(capsys, written(tmp_path, frame, []), "--attributes")
    assert code == 0
    found = document["what_if"]
    assert isinstance(found, dict)
    deltas = {one["what"]: one["delta"] for one in found["alternatives"]}
    losses = {one["what"]: one["certainty_penalty"] for one in found["alternatives"]}
    cut = frame.assign(postcode=frame["postcode"].str[:3])
    expected = {
        "as it is": (frame, {}),
        "age in 5 bands": (frame.assign(age=_banded(frame["age"], 5)), {}),
        "postcode one level coarser": (cut, {"postcode": {"kind": "categorical", "hierarchy": {"prefix": [2]}}}),
        "postcode dropped": (frame.drop(columns="postcode"), {"postcode": None}),
        "ward dropped": (frame.drop(columns="ward"), {"ward": None}),
    }
    tests = [{"sanitizer": {"name": "mondrian", "k": 12}}]
    for what, (changed, changes) in expected.items():
        alone = dit.audit(changed, schema=schema(**changes), tests=tests, controls=False)
        assert deltas[what] == pytest.approx(alone.tests[0]["delta"], rel=1e-12), what
        if what.endswith("dropped"):  # all of one attribute of three is lost, and what the release loses of the others
            assert losses[what] == pytest.approx((1 + 2 * alone.tests[0]["certainty_penalty"]) / 3, abs=1e-8)
    ranked = [one["delta"] for one in found["alternatives"][1:]]
    assert ranked == sorted(ranked)  # without gates by delta
    assert losses["age in 5 bands"] > losses["as it is"]
    check_schema(json.loads((Path(str(document["run"])) / "what-if.json").read_text()), "what-if")


def test_an_alternative_that_passes_is_preferred(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(tmp_path, patients(), ["delta <= 0.25"])
    code, document = tune_json(capsys, config, "--attributes")
    found = document["what_if"]
    assert isinstance(found, dict)
    base, *others = found["alternatives"]
    statuses = [one["status"] for one in others]
    assert base["status"] == "failed"
    assert code == (0 if "passed" in statuses else 1)
    assert statuses == sorted(statuses, key=lambda status: status != "passed")
    passed = [one["certainty_penalty"] for one in others if one["status"] == "passed"]
    assert passed == sorted(passed)


def what_if_json(capsys: pytest.CaptureFixture[str], config: Path) -> tuple[int, str, dict[str, Any]]:
    code, document = tune_json(capsys, config, "--attributes")
    found = document["what_if"]
    assert isinstance(found, dict)
    check_schema(found, "what-if")
    return code, str(document["status"]), found


def test_alternatives_are_judged_on_the_loss_against_the_table_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, free = what_if_json(capsys, written(tmp_path, patients(120), []))
    losses = {one["what"]: one["certainty_penalty"] for one in free["alternatives"]}
    changed = patients(120).drop(columns="ward")
    tests = [{"sanitizer": {"name": "mondrian", "k": 12}}]
    alone = dit.audit(changed, schema=schema(ward=None), tests=tests, controls=False).tests[0]["certainty_penalty"]
    limit = (alone + losses["ward dropped"]) / 2  # the release of the smaller table meets it, but a whole attribute is lost
    assert alone < limit < losses["ward dropped"]
    code, status, found = what_if_json(capsys, written(tmp_path, patients(120), [f"certainty_penalty <= {limit}"]))
    judged = {one["what"]: one["status"] for one in found["alternatives"]}
    assert judged == {what: "passed" if loss <= limit else "failed" for what, loss in losses.items()}
    assert (code, status) == ((0, "passed") if "passed" in judged.values() else (1, "failed"))
    low = min(losses.values()) / 2
    code, status, _ = what_if_json(capsys, written(tmp_path, patients(120), [f"certainty_penalty <= {low}"]))
    assert (code, status) == (1, "failed")


def test_one_figure_is_in_every_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = tune_json(capsys, written(tmp_path, patients(60), ["certainty_penalty <= 0.4"]), "--attributes")
    shown = {one["test"]: one["certainty_penalty"] for one in document["what_if"]["alternatives"]}  # type: ignore[index]
    folder = Path(str(document["run"]))
    stored = {one["test"]: one["certainty_penalty"] for one in json.loads((folder / "summary.json").read_text())}
    verdicts = json.loads((folder / "verdict.json").read_text())["verdicts"]
    assert shown == stored == {one["test"]: one["value"] for one in verdicts}


def test_the_status_is_that_of_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = tune_json(capsys, written(tmp_path, patients(), ["delta <= 0.4"]), "--values", "3,48")
    found = document["tune"]
    assert isinstance(found, dict)
    assert [one["status"] for one in found["values"]] == ["failed", "passed"]
    assert (code, document["status"]) == (0, "passed")


def test_gates_of_all_tests_that_are_tuned_together_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["delta <= 1.2", "delta <= 0.001"]
    tests = [{"sanitizer": {"name": "mondrian", "k": k}, "gates": [gate]} for k, gate in zip((3, 6), limits, strict=True)]
    code, document = tune_json(capsys, written(tmp_path, patients(60), [], tests=tests), "--values", "3,6")
    verdicts = document["verdicts"]
    assert isinstance(verdicts, list)
    assert sorted((one["test"], one["gate"]) for one in verdicts) == [
        (f"mondrian-k{k}", gate) for k in (3, 6) for gate in sorted(limits)
    ]
    assert (code, document["status"]) == (1, "failed")


def test_gates_on_measures_let_no_alternative_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = ["delta <= 1.9", "utility.value  <= 1"]
    config = written(tmp_path, patients(60), gates, measures=[{"name": "utility"}])
    code, status, found = what_if_json(capsys, config)
    assert (code, status) == (1, "inconclusive")
    assert {one["status"] for one in found["alternatives"]} == {"inconclusive"}
    assert found["reason"].endswith("gates on measures are not judged here: utility.value <= 1")


def test_a_gate_for_one_test_judges_its_alternatives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = ["delta <= 0.9", "delta <= 0.0001 for mondrian-k12"]
    code, _, found = what_if_json(capsys, written(tmp_path, patients(60), gates))
    assert code == 1
    assert {one["status"] for one in found["alternatives"]} == {"failed"}


def test_columns_of_similar_names_have_alternatives_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = patients(60).rename(columns={"postcode": "my ward", "ward": "my-ward"})
    columns = {"age": {"kind": "numeric"}, "my ward": {"kind": "categorical"}, "my-ward": {"kind": "categorical"}}
    config = written(tmp_path, frame, [], schema={"quasi_identifiers": columns, "sensitive": "diagnosis"})
    _, _, found = what_if_json(capsys, config)
    tests = [one["test"] for one in found["alternatives"]]
    assert len(tests) == len(set(tests)) == 7  # as it is, four changes of age, and each of the others dropped


def test_what_a_prior_has_groups_of_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["ward;diagnosis;probability", "neuro;flu;0.1", "neuro;stroke;0.7", "neuro;fracture;0.1", "neuro;hernia;0.1"]
    (tmp_path / "prior.csv").write_text("\n".join(lines))
    tests = [{"sanitizer": {"name": "mondrian", "k": 12}, "prior": "prior.csv"}]
    config = written(tmp_path, patients(120), [], tests=tests)
    _, _, found = what_if_json(capsys, config)
    reason = "the prior has groups of this attribute as it is"
    assert found["skipped"] == [{"what": "ward dropped", "attribute": "ward", "change": "dropped", "reason": reason}]
    assert not any(one.get("attribute") == "ward" for one in found["alternatives"])
    assert main(["tune", str(config), "--attributes", "--quiet"]) == 0
    assert f"skipped: ward dropped: {reason}" in capsys.readouterr().out
    assert main(["run", str(config), "--quiet", "--json"]) == 0
    folder = json.loads(capsys.readouterr().out)["run"]
    assert main(["explain", folder, "--top", "1", "--config", str(config)]) == 0
    assert f"; ward was not tried: {reason}" in capsys.readouterr().out


def test_bands_leave_with_their_attribute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"age": {"kind": "numeric"}, "postcode": {"kind": "categorical", "hierarchy": {"prefix": [3, 2]}}}
    tests = [{"sanitizer": {"name": "full-domain", "k": 5, "bands": {"age": [10, 20]}}}]
    own = {"quasi_identifiers": columns, "sensitive": "diagnosis"}
    _, _, found = what_if_json(capsys, written(tmp_path, patients(60), [], tests=tests, schema=own))
    deltas = {one["what"]: one["delta"] for one in found["alternatives"]}
    assert [one["what"] for one in found["skipped"]] == ["age one level coarser", "age in 10 bands", "age in 5 bands"]
    left = own | {"quasi_identifiers": {"postcode": columns["postcode"]}}
    alone = dit.audit(patients(60), schema=left, tests=[{"sanitizer": {"name": "full-domain", "k": 5}}], controls=False)
    assert deltas["age dropped"] == pytest.approx(alone.tests[0]["delta"], rel=1e-12)


def test_noisy_counts_do_not_claim_a_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tests = [{"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": 2}}}]
    _, _, free = what_if_json(capsys, written(tmp_path, patients(120), [], tests=tests))
    base, *others = [one["delta"] for one in free["alternatives"]]
    assert min(others) < base
    _, _, found = what_if_json(capsys, written(tmp_path, patients(120), [f"delta <= {(min(others) + base) / 2}"], tests=tests))
    assert "smallest loss" not in found["rule"] + found["reason"]
    assert "no loss of utility is known" in found["rule"]


def test_an_alternative_is_not_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = tune_json(capsys, written(tmp_path, patients(60), []), "--attributes")
    folder = str(document["run"])
    assert main(["explain", folder, "--top", "1"]) == 0
    assert capsys.readouterr().out.startswith("mondrian-k12: delta")
    assert main(["explain", folder, "--test", "mondrian-k12.ward-dropped"]) == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert "explain the table as it is with --test mondrian-k12, or make the change in the config" in printed
