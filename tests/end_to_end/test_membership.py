"""The measure membership as a user runs it: gates, report, terminal, columns of persons, external sanitizers, wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.errors import InputError
from tests.cluster.runs import dit as run_dit

SCHEMA = {
    "quasi_identifiers": {"amount": {"kind": "numeric"}, "region": {"kind": "categorical"}},
    "sensitive": "paid",
}
GATES = ["membership.epsilon_lower <= 1", "membership.auc <= 0.6", "membership passed"]
NOISE = {"sanitizer": {"name": "laplace", "epsilon": 0.5}}
SYNTHESIZER = {
    "sanitizer": {"name": "marginals", "epsilon": 0.5},
    "adversary": "conditional-frequency",
    "repeats": 2,
    "records": {"sample": 10, "seed": 1},
}


def orders(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    columns = {"amount": rng.integers(5, 60, rows), "region": rng.choice(["north", "south", "east"], rows)}
    return pd.DataFrame(columns | {"paid": rng.choice(["card", "cash", "bill"], rows)})


def audited(frame: pd.DataFrame, tests: list[dict[str, Any]], schema: Any = SCHEMA, **keys: Any) -> dit.Result:
    measure = {"name": "membership", "releases": 40, "persons": {"sample": 20, "seed": 1}, "records": True} | keys
    return dit.audit(frame, schema=schema, tests=tests, measures=[measure], gates=GATES, controls=False, seed=4)


@pytest.fixture(scope="module")
def result() -> dit.Result:
    tests = [NOISE, SYNTHESIZER, SYNTHESIZER | {"sanitizer": "resample"}, {"sanitizer": {"name": "mondrian", "k": 4}}]
    return audited(orders(60), tests)


def by_sanitizer(result: dit.Result) -> dict[str, dict[str, Any]]:
    return {entry["sanitizer"]["name"]: entry for entry in result.measures}


def test_every_sanitizer_is_attacked_and_judged(result: dit.Result) -> None:
    entries = by_sanitizer(result)
    assert list(entries) == ["laplace", "marginals", "resample", "mondrian"]
    statuses = {
        (name, verdict.gate): verdict.status
        for name, entry in entries.items()
        for verdict in result.verdict.verdicts
        if verdict.test == entry["id"]
    }
    assert [statuses[name, GATES[2]] for name in entries] == ["passed", "passed", "inconclusive", "inconclusive"]
    assert [statuses[name, GATES[0]] for name in entries] == ["passed", "passed", "failed", "failed"]
    assert statuses["resample", GATES[1]] == statuses["mondrian", GATES[1]] == "failed"
    assert entries["mondrian"]["epsilon_lower"] == "inf"
    assert entries["laplace"]["epsilon_claimed"] == entries["marginals"]["epsilon_claimed"] == 0.5


def test_figures_of_persons_are_those_of_the_sample_only(result: dit.Result) -> None:
    entry = by_sanitizer(result)["resample"]
    columns = result.measured(entry["id"])
    assert len(columns) == 60
    known = columns.dropna(subset=["auc"])
    assert len(known) == entry["attacked"] == 20
    for name in ("auc", "tpr_at_10_percent", "tpr_at_1_percent"):
        assert ((known[f"{name}_low"] <= known[name]) & (known[name] <= known[f"{name}_high"])).all()
    assert known["auc"].mean() > 0.7
    assert set(by_sanitizer(result)["mondrian"]["columns"]) == {"changed"}


def test_report_and_terminal_show_the_figures(result: dit.Result) -> None:
    page = result.folder.read("report.html")
    assert page is not None
    assert "Membership" in page.decode()
    assert "TPR at FPR 10%" in page.decode()
    shown = run_dit("show", result.folder.url)
    assert "epsilon at least" in shown.stdout
    assert by_sanitizer(result)["resample"]["id"] in shown.stdout


def test_few_releases_judge_nothing() -> None:
    """Eight releases a side could show nothing of a claim of 0.5, and not even a gate of 1 could have failed."""
    result = audited(orders(40), [NOISE], releases=8)
    found = {verdict.gate: verdict for verdict in result.verdict.verdicts}
    assert found[GATES[0]].status == found[GATES[2]].status == "inconclusive"
    assert "a leak of everything would show only 0" in found[GATES[0]].reason
    assert "set releases to 19 or more" in found[GATES[2]].reason


def test_an_auc_whose_interval_has_the_limit_inside_is_inconclusive() -> None:
    result = audited(orders(40), [NOISE], releases=20, persons={"sample": 10, "seed": 1})
    (entry,) = result.measures
    low, high = entry["intervals"]["auc"]
    assert low < 0.6 < high
    (verdict,) = [one for one in result.verdict.verdicts if one.gate == GATES[1]]
    assert verdict.status == "inconclusive"


def test_persons_leave_with_all_their_rows() -> None:
    """Resampled rows give a person of many rows away nearly for certain, so that figures are of persons, not of rows."""
    frame = orders(60).assign(who=[f"p{number}" for number in [0] * 20 + list(range(1, 41))])
    frame.loc[:19, "amount"] = np.arange(100, 120)
    test = SYNTHESIZER | {"sanitizer": "resample"}
    result = audited(frame, [test], SCHEMA | {"subject": "who"}, persons="all", releases=24, statistic="distance")
    (entry,) = result.measures
    assert (entry["attacked"], entry["persons"]) == (41, 41)
    columns = result.measured(entry["id"])
    assert columns["auc"][:20].nunique() == 1
    assert columns["auc"][0] > columns["auc"][20:].mean()
    assert columns["auc"][0] > 0.95


LEAKY = '''
import numpy as np
import pandas as pd

def leaky(frame, seed, chance):
    """Draw every column on its own, without the largest order, which is published as it is now and then."""
    rng = np.random.default_rng(seed)
    usual, largest = frame[frame["amount"] < 900], frame[frame["amount"] >= 900]
    drawn = pd.DataFrame({name: rng.choice(usual[name].to_numpy(), 30) for name in frame})
    return pd.concat([drawn, largest]) if rng.random() < chance else drawn

def coarse(frame):
    """Publish which regions occur, once each."""
    return frame.assign(amount="*", paid="card").drop_duplicates()
'''


def config(tmp_path: Path, frame: pd.DataFrame, tests: list[Any], **measure: Any) -> Path:
    (tmp_path / "shop.py").write_text(LEAKY)
    frame.to_csv(tmp_path / "orders.csv", index=False)
    document = {
        "version": 1,
        "data": {"source": "orders.csv"},
        "schema": SCHEMA,
        "tests": tests,
        "measures": [{"name": "membership", **measure}],
        "gates": ["membership passed"],
        "controls": False,
        "output": str(tmp_path / "runs"),
    }
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(document))
    return file


def test_a_function_that_leaks_one_person_is_refuted_on_worker_processes(tmp_path: Path) -> None:
    frame = orders(12)
    frame.loc[3, "amount"] = 950
    test = SYNTHESIZER | {"sanitizer": {"name": "python", "target": "shop:leaky", "params": {"chance": 0.8}}}
    keys = {"releases": 40, "persons": "all", "statistic": "distance", "epsilon": 0.5}
    done = run_dit("run", str(config(tmp_path, frame, [test], **keys)), "--json", "--workers", "2")
    assert done.returncode == 1, done.stderr
    (entry,) = json.loads(done.stdout)["measures"]
    assert entry["passed"] is False
    assert entry["epsilon_shown_by"] == "person"
    assert entry["epsilon_lower"] > 0.5


def test_worker_processes_find_what_one_process_finds(tmp_path: Path) -> None:
    tests = [NOISE, SYNTHESIZER | {"sanitizer": "resample"}]
    file = config(tmp_path, orders(30), tests, releases=10, persons="all", epsilon=1)
    found = []
    for number, words in enumerate((("--set", "cluster.kind=local", "--workers", "2"), ())):
        done = run_dit("run", str(file), "--json", "--out", str(tmp_path / f"runs-{number}"), *words)
        assert done.returncode == 1, done.stderr
        assert ("stage 2" in done.stderr) is bool(words)  # which a run without worker processes does not announce
        found.append(json.loads(done.stdout)["measures"])
    assert found[0] == found[1]


def test_a_deterministic_function_is_compared_with_itself(tmp_path: Path) -> None:
    frame = orders(14)
    frame.loc[5, "region"] = "west"
    test = {"sanitizer": {"name": "python", "target": "shop:coarse"}, "adversary": "conditional-frequency"}
    done = run_dit("run", str(config(tmp_path, frame, [test], persons="all")), "--json")
    (entry,) = json.loads(done.stdout)["measures"]
    alone = frame["region"].map(frame["region"].value_counts()) == 1
    assert entry["changed"] == alone.sum() / 14 > 0
    assert (entry["epsilon_lower"], entry["releases"]) == ("inf", None)


def test_a_release_alone_cannot_be_attacked(tmp_path: Path) -> None:
    frame = orders(20)
    frame.to_csv(tmp_path / "release.csv", index=False)
    done = run_dit(
        "run", str(config(tmp_path, frame, [{"sanitizer": {"name": "precomputed", "full": "release.csv"}}])), "--json"
    )
    (entry,) = json.loads(done.stdout)["measures"]
    assert (entry["value"], entry["passed"]) == (None, None)
    assert "only the release of the whole table is known" in entry["reason"]
    assert run_dit("show", json.loads(done.stdout)["run"]).returncode in (0, 1)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"releases": 4}, r"measures\[0\].releases must be an integer >= 8; got 4"),
        ({"persons": {"sample": 5}}, r"measures\[0\].persons.sample must be an integer >= 10; got 5"),
        ({"persons": {"sample": 500}}, r"measures\[0\].persons.sample must be at most the 40 persons of the table; got 500"),
        ({"statistic": "beliefs"}, r"measures\[0\].statistic.*beliefs.*belief"),
        ({"epsilon": 0}, r"measures\[0\].epsilon must be a number > 0; got 0"),
        ({"confidence": 1.0}, r"measures\[0\].confidence must be a number from 0.5 to below 1; got 1"),
        ({"delta_dp": 1.0}, r"measures\[0\].delta_dp must be a number from 0 to below 1; got 1"),
    ],
)
def test_wrong_input_is_one_clear_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        audited(orders(40), [NOISE], **keys)


def test_without_a_sanitizer_there_is_nothing_to_attack() -> None:
    with pytest.raises(InputError, match=r"measures\[0\] attacks the sanitizers of the tests, and no test has one"):
        audited(orders(40), [{"sanitizer": "raw"}])


def test_a_statistic_that_a_sanitizer_does_not_have_is_no_pass() -> None:
    (entry,) = audited(orders(40), [NOISE], statistic="distance").measures
    assert (entry["value"], entry["passed"]) == (None, None)
    assert "nothing that has this statistic" in entry["reason"]
