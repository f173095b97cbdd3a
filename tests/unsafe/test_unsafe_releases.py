"""Releases that must never pass: the command does not exit with 0, and Python does not say passed.

Gates are those that a careful user would set. Every report of a wrongly passed release becomes a case here.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.api import Result
from dit_dask.cli import main
from dit_dask.kernels.mechanisms import Laplace
from tests.unsafe.gallery import Case, audit_external, judge_by_command, mondrian, parametrize
from tests.unsafe.tables import CLINIC, PAYROLL, census, clinic, payroll

NB = {"adversary": "bernoulli-nb"}
BLIND = {"adversary": {"name": "sklearn.dummy.DummyClassifier", "params": {"strategy": "prior"}}}
DROWNED = {"adversary": {"name": "sklearn.naive_bayes.BernoulliNB", "params": {"alpha": 10000.0}}}


def with_one_value(share: float) -> pd.DataFrame:
    """Patients of whom nearly all have the same illness."""
    frame = clinic(200)
    return frame.assign(illness=np.where(np.random.default_rng(3).random(200) < share, "none", frame["illness"]))


CASES = [
    # secrets that adversaries can hardly learn
    Case(
        "near-unique-secrets-and-a-blind-adversary", payroll(), [mondrian(5, **NB)], ["delta <= 0.2"], "inconclusive", PAYROLL
    ),
    Case("near-unique-secrets-and-the-panel", payroll(400), [mondrian(5)], ["delta <= 0.2"], "failed", PAYROLL),
    Case(
        "counts-over-60-diagnoses-cannot-exceed-0.032",
        clinic(400, illnesses=60),
        [{"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": 4}}}],
        ["delta <= 0.1"],
        "inconclusive",
    ),
    Case("an-adversary-that-does-not-look", clinic(60), [mondrian(5, **BLIND)], ["delta <= 0.2"], "inconclusive"),
    Case("an-adversary-drowned-in-smoothing", clinic(60), [mondrian(5, **DROWNED)], ["delta <= 0.2"], "inconclusive"),
    Case(
        "an-adversary-that-fails-on-the-raw-table",
        clinic(60),
        [mondrian(20, adversary="tests.unsafe.refusing.RefusesRaw")],
        ["delta <= 1"],
        "inconclusive",
        warning="mondrian-k20.refusesraw-",
    ),
    # rows that are not persons
    Case(
        "every-row-five-times-and-a-claim",
        pd.concat([clinic(150)] * 5),
        [mondrian(5)],
        ["claims hold", "smallest_class >= 5"],
        "inconclusive",
        warning="every record occurs in a multiple of 5 rows",
    ),
    Case("every-row-twice-and-a-limit", pd.concat([clinic(150)] * 2), [mondrian(2)], ["mean_gain <= 0.5"], "inconclusive"),
    Case(
        "an-identifier-among-the-quasi-identifiers",
        clinic(200).assign(badge=np.arange(200)),
        [mondrian(2)],
        ["delta <= 0.5"],
        "failed",
        {**CLINIC, "quasi_identifiers": {**CLINIC["quasi_identifiers"], "badge": {"kind": "numeric"}}},
        warning="'badge' is unique in 100.0% of the rows",
    ),
    # claims that are broken, without any gate on them
    Case(
        "basic-mondrian-has-classes-below-k",
        census(600)[["age", "sex", "occupation"]],
        [mondrian(5, variant="basic")],
        [],
        "failed",
        {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"},
    ),
    Case("more-diversity-than-values", clinic(), [{"sanitizer": {"name": "mondrian", "l": 6}}], [], "failed"),
    Case(
        "diversity-of-a-value-that-nearly-all-have",
        with_one_value(0.95),
        [{"sanitizer": {"name": "mondrian", "l": 2}}],
        [],
        "failed",
    ),
    Case(
        "a-gate-on-claims-where-nobody-claims-anything",
        clinic(),
        [{"sanitizer": "suppressed"}],
        ["claims hold"],
        "inconclusive",
    ),
    # releases that leak
    Case("classes-of-two", clinic(), [mondrian(2)], ["delta <= 0.5"], "failed"),
    Case(
        "homogeneous-classes-keep-k",
        clinic().assign(illness=lambda frame: "illness of " + frame["town"]),
        [mondrian(5)],
        ["claims hold", "discrimination[homogeneity] <= 0.5"],
        "failed",
        measures=[{"name": "discrimination", "attack": "homogeneity"}],
        warning="of the published rows are in classes with one sensitive value",
    ),
    Case("counts-without-noise", clinic(), [{"sanitizer": {"name": "laplace", "epsilon": "inf"}}], ["delta <= 0.1"], "failed"),
    Case(
        "one-test-of-a-sweep-fails", clinic(), [{"sanitizer": {"name": "mondrian", "k": [2, 100]}}], ["delta <= 0.5"], "failed"
    ),
    Case("a-test-with-a-gate-of-its-own-fails", clinic(), [mondrian(100), mondrian(2, gates=["delta <= 0.5"])], [], "failed"),
    # gates that could not have failed, or that judge nothing
    Case("a-limit-that-no-distance-exceeds", clinic(), [mondrian(2)], ["delta <= 2"], "inconclusive"),
    Case("a-threshold-that-no-distance-exceeds", clinic(), [mondrian(2, **NB)], ["share_over[1.9] <= 0"], "inconclusive"),
    Case("a-share-of-at-most-everybody", clinic(), [mondrian(2)], ["share_over[0.01] <= 1"], "inconclusive"),
    Case("predictions-of-everybody-may-change", clinic(), [mondrian(2)], ["argmax_changed <= 1"], "inconclusive"),
    Case("a-gain-that-nobody-exceeds", clinic(), [mondrian(2)], ["mean_gain <= 1"], "inconclusive"),
    Case("a-distance-that-is-not-negative", clinic(), [mondrian(2)], ["delta >= 0"], "inconclusive"),
    Case("a-class-of-at-least-one-person", clinic(), [mondrian(2)], ["smallest_class >= 1"], "inconclusive"),
    Case("a-gate-in-the-wrong-direction", clinic(), [mondrian(2)], ["delta > 0.4", "skipped == 0"], "inconclusive"),
    Case("gates-on-the-raw-table-only", clinic(), [{"sanitizer": "raw"}], ["delta <= 0.2"], "inconclusive"),
    Case("a-pattern-that-no-test-matches", clinic(), [mondrian(2)], ["delta <= 0.2 for mondrain-*"], "inconclusive"),
]


@parametrize(CASES)
def test_an_unsafe_release_does_not_pass(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = judge_by_command(case, tmp_path, capsys)
    assert (code, document["status"]) == (1, case.status)
    assert case.warning in "\n".join(document["warnings"])


def test_an_adversary_that_fails_on_a_control_is_named_without_its_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(case for case in CASES if case.id == "an-adversary-that-fails-on-the-raw-table")
    _, document = judge_by_command(case, tmp_path, capsys)
    (test,), (verdict,) = document["tests"], document["verdicts"]
    assert (test["attainable"], test["planting_error"]) == (None, "ValueError")
    assert "no person could be planted, because an adversary failed on the raw table (ValueError)" in verdict["reason"]
    raw, suppressed = document["controls"]
    assert (raw["control"], raw["error"], raw.get("delta")) == ("raw", "ValueError", None)
    assert suppressed["delta"] > 0
    assert "error" not in suppressed
    warnings = "\n".join(document["warnings"])
    assert f"{test['test']}: the control raw is missing: an adversary failed on it (ValueError)" in warnings
    assert f"{test['test']}: no person could be planted" in warnings
    assert main(["run", str(case.write(tmp_path))]) == 1  # nothing new: the same from what is stored
    out, err = capsys.readouterr()
    assert "control: raw, missing" in out
    assert "the control raw is missing" in err
    written = [path.read_bytes() for path in Path(document["run"]).rglob("*") if path.is_file()]
    assert not [text for text in (*written, out.encode(), err.encode()) if b"cannot learn" in text]


def test_beliefs_that_are_no_numbers_on_a_control_do_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adversary = "tests.unsafe.refusing.UnsureOfSuppressed"
    case = Case("unsure", clinic(60), [mondrian(20, adversary=adversary)], ["delta <= 0.3"], "passed")
    code, document = judge_by_command(case, tmp_path, capsys)
    raw, suppressed = document["controls"]
    assert (code, raw["control"], "error" in raw) == (0, "raw", False)
    assert (suppressed["control"], suppressed["error"]) == ("suppressed", "the adversary returned beliefs that are not numbers")


def people(rows: int, seed: int) -> pd.DataFrame:
    """Numbers without ties, and a group."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)).round(6), columns=list("wxyz"))
    return frame.assign(group=rng.choice(list("abcd"), rows))


SYNTHETIC: dict[str, Any] = {
    "quasi_identifiers": {name: {"kind": "numeric"} for name in "wxyz"},
    "sensitive": "group",
}


def closeness_of(synthetic: pd.DataFrame, holdout: pd.DataFrame | float, folder: Path, gates: Sequence[str]) -> Result:
    """Audit a synthetic table in this process; a number is a part of the training table as holdout."""
    synthetic.to_csv(folder / "synthetic.csv", index=False)
    if isinstance(holdout, pd.DataFrame):
        holdout.to_csv(folder / "holdout.csv", index=False)
    measure = {"name": "closeness", "synthetic": str(folder / "synthetic.csv"), "distance": "gower"}
    measure |= {"holdout": str(folder / "holdout.csv") if isinstance(holdout, pd.DataFrame) else holdout}
    return dit.audit(TRAINING, schema=SYNTHETIC, measures=[measure], gates=gates, output=str(folder / "runs"))


TRAINING, HOLDOUT, FRESH = people(400, 1), people(400, 2), people(400, 3)
COPIES = pd.concat([TRAINING.iloc[:60], FRESH.iloc[60:]])
CONTAMINATED = pd.concat([TRAINING.iloc[:100], HOLDOUT.iloc[100:]])
RARE = FRESH.assign(**{name: np.where(np.arange(400) < 60, TRAINING[name], FRESH[name]) for name in "wxy"})


@pytest.mark.parametrize(
    ("synthetic", "holdout"),
    [
        pytest.param(TRAINING, HOLDOUT, id="copied-rows"),
        pytest.param(COPIES, HOLDOUT, id="some-copied-rows"),
        pytest.param(TRAINING, 0.3, id="copied-rows-and-a-holdout-cut-from-the-table"),
        pytest.param(TRAINING.assign(w=TRAINING["w"] + 1e-4), HOLDOUT, id="rows-next-to-training-rows"),
        pytest.param(FRESH.iloc[:3], HOLDOUT.iloc[:3], id="too-few-rows-to-find-anything"),
        pytest.param(TRAINING, TRAINING, id="copied-rows-and-the-training-rows-as-holdout"),
        pytest.param(RARE, HOLDOUT, id="values-that-only-one-person-has"),
        pytest.param(COPIES, CONTAMINATED, id="some-copied-rows-and-a-contaminated-holdout"),
    ],
)
def test_synthetic_rows_that_are_too_close_do_not_pass(
    synthetic: pd.DataFrame, holdout: pd.DataFrame | float, tmp_path: Path
) -> None:
    found = closeness_of(synthetic, holdout, tmp_path, ["closeness passed"])
    assert not found.passed
    assert main(["gate", found.url]) == 1


def test_a_failing_measure_without_any_gate_is_no_pass(tmp_path: Path) -> None:
    found = closeness_of(TRAINING, HOLDOUT, tmp_path, [])
    assert (found.verdict.status, found.passed) == ("none", False)
    report = (Path(found.url) / "report.html").read_text()
    assert "nothing is decided" not in report.lower()
    assert "PASS" not in report
    assert main(["gate", found.url]) == 2  # no gates: that is an error
    assert main(["gate", found.url, "--fail-on", "closeness failed"]) == 1


def test_a_table_of_one_sensitive_value_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = Case("one value", clinic().assign(illness="flu"), [mondrian(5)], ["delta <= 0.2"], "")
    assert main(["run", str(case.write(tmp_path))]) == 2
    assert "illness" in capsys.readouterr().err


SMALL = clinic(60)


@pytest.mark.parametrize(
    ("function", "status"),
    [
        ("ignores_its_input", "inconclusive"),
        ("publishes_everything", "failed"),
        ("exposes_one_person", "failed"),
        ("exposes_one_age", "failed"),
        ("suppresses_outliers", "failed"),
        ("adds_the_names", "inconclusive"),
    ],
)
def test_an_unsafe_function_does_not_pass(function: str, status: str) -> None:
    found = audit_external(function, SMALL, ["delta <= 0.5"])
    assert (found.verdict.status, found.passed) == (status, False)
    assert main(["gate", found.url]) == 1
    if function == "adds_the_names":
        assert "1 further column, and no test looks at what stands there" in "\n".join(found.verdict.warnings)
    elif status == "inconclusive":
        assert "no release differs from the full one" in "\n".join(found.verdict.warnings)


def test_a_single_exposed_person_is_found_by_a_gate_on_classes() -> None:
    found = audit_external("exposes_one_person", SMALL, ["delta <= 0.5", "smallest_class >= 5"])
    assert (found.verdict.status, found.passed) == ("failed", False)


def test_a_stored_result_does_not_pass(tmp_path: Path) -> None:
    SMALL.to_csv(tmp_path / "stored.csv", index=False)
    found = audit_external("returns_a_stored_result", SMALL, ["delta <= 0.5"], params={"stored": str(tmp_path / "stored.csv")})
    assert (found.verdict.status, found.passed) == ("inconclusive", False)


def test_an_external_claim_that_is_broken_fails_without_a_gate() -> None:
    found = audit_external("publishes_everything", SMALL, [], claim={"k": 5})
    assert (found.verdict.status, found.passed) == ("failed", False)


def test_releases_that_were_all_copied_from_the_full_one_do_not_pass(tmp_path: Path) -> None:
    released = SMALL.assign(town="*")
    for name in ["full", *map(str, range(len(SMALL)))]:
        released.to_csv(tmp_path / f"{name}.csv", index=False)
    sanitizer = {
        "name": "precomputed",
        "full": f"{tmp_path}/full.csv",
        "without": f"{tmp_path}/{{record}}.csv",
        "cache": "none",
    }
    found = dit.audit(SMALL, schema=CLINIC, tests=[{"sanitizer": sanitizer}], gates=["delta <= 0.5"])
    assert (found.verdict.status, found.passed) == ("inconclusive", False)


def test_noise_of_a_wrong_scale_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Laplace.noise
    monkeypatch.setattr(Laplace, "noise", lambda self, rng, size: right(self, rng, size) / 4)
    test = {"sanitizer": {"name": "laplace", "epsilon": 1, "bins": {"age": 2}}, "method": "simulate", "samples": 4000}
    found = dit.audit(clinic(40), schema=CLINIC, tests=[test], seed=1)
    assert (found.verdict.status, found.passed) == ("failed", False)
    assert "the noise loses epsilon" in found.verdict.verdicts[0].reason


def test_a_broken_claim_fails_whatever_is_asked_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in CASES if case.id == "more-diversity-than-values")
    _, document = judge_by_command(case, tmp_path, capsys)
    assert main(["gate", document["run"], "--fail-on", "delta > 0.5"]) == 1
    assert "claims hold" in capsys.readouterr().out


@pytest.mark.parametrize("condition", ["delta > 0.5", "delta > 2", "share_over[0.1] > 0.99", "claims broken", "delta < 0.1"])
def test_conditions_on_a_finished_run_are_as_strict_as_gates(
    condition: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Classes of two persons of a table of rows that are repeated."""
    case = Case("repeated", pd.concat([clinic(60)] * 2), [mondrian(2)], [], "none")
    _, document = judge_by_command(case, tmp_path, capsys)
    assert main(["gate", document["run"], "--fail-on", condition]) == 1


def test_python_does_not_say_passed_without_a_gate() -> None:
    found = dit.audit(SMALL, schema=CLINIC, tests=[mondrian(2)])
    assert (found.verdict.status, found.passed) == ("none", False)


WARNED = [
    Case(
        "a-claim-by-identical-rows",
        pd.concat([clinic(200), *[clinic(40)] * 4]),
        [mondrian(5)],
        ["claims hold"],
        "passed",
        warning="classes only because of identical rows; if these are one person's, it is broken",
    ),
    Case(
        "a-sample-of-the-rows",
        clinic(),
        [mondrian(50, records={"sample": 20, "seed": 1})],
        ["mean <= 0.5"],
        "passed",
        warning="gates judge a sample of 20 of 300 rows",
    ),
    Case(
        "a-list-of-rows",
        clinic(),
        [mondrian(50, records=list(range(20)))],
        ["mean <= 0.5"],
        "passed",
        warning="gates judge the 20 rows that the config lists",
    ),
    Case(
        "a-test-that-no-gate-judges",
        clinic(),
        [mondrian(50, gates=["mean <= 0.5"]), mondrian(2)],
        [],
        "passed",
        warning="mondrian-k2: no gate judges this test",
    ),
    Case(
        "a-limit-that-the-raw-table-meets",
        clinic(),
        [mondrian(50, **NB)],
        ["mean <= 0.2"],
        "passed",
        warning="the raw table meets the gate mean <= 0.2, too",
    ),
    Case(
        "rows-dropped-as-incomplete",
        clinic().assign(town=lambda frame: frame["town"].where(frame["age"] < 60)),
        [mondrian(50)],
        ["mean <= 0.5"],
        "passed",
        warning="rows were dropped as incomplete: nothing is known about a release that has them",
    ),
]


@parametrize(WARNED)
def test_what_only_a_person_can_judge_is_said(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = judge_by_command(case, tmp_path, capsys)
    assert (code, document["status"]) == (0, case.status)
    assert case.warning in "\n".join(document["warnings"])
    report = (Path(document["run"]) / "report.html").read_text()
    assert case.warning in html.unescape(report)
