"""A release alone: what is said about it, what is not, and how rows are found in it."""

from __future__ import annotations

import glob
import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.cli import main
from tests.conftest import ROOT

EXAMPLE = ROOT / "configs" / "release-only"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, with few rows."""
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    runpy.run_path(str(tmp_path / "make_tables.py"))["write_tables"](tmp_path, 60)
    return tmp_path / "audit.yaml"


def run(config: Path, capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(["run", str(config), "--out", str(config.parent / "runs"), "--quiet", *arguments]) == code
    out, err = capsys.readouterr()
    return out if code < 2 else err


def summary(config: Path) -> dict[str, Any]:
    (path,) = glob.glob(str(config.parent / "runs" / "members-*" / "summary.json"))
    (found,) = json.loads(Path(path).read_text())
    return found


def distances(config: Path, label: str) -> np.ndarray:
    paths = sorted(glob.glob(str(config.parent / "runs" / "members-*" / "records" / label / "*.parquet")))
    return pd.concat([pd.read_parquet(path) for path in paths])["distance"].to_numpy()


def replaced(config: Path, old: str, new: str) -> None:
    text = config.read_text("utf-8")
    assert old in text
    config.write_text(text.replace(old, new), "utf-8")


def test_the_example_says_what_is_known_and_that_delta_is_not(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(example, capsys, 1)
    assert "INCONCLUSIVE  delta <= 0.5" in out
    assert "dit leave-out" in out
    assert "python sanitizer" in out
    assert "PASS  certainty_penalty <= 0.3" in out
    found = summary(example)
    assert found["delta"] is None
    assert set(found["quantiles"].values()) == set(found["share_over"].values()) == {None}
    assert found["adversaries"] == {}
    release = pd.read_csv(example.parent / "release.csv", dtype=str)
    sizes = release.groupby(["age", "postcode"]).size()
    only = found["release_only"]
    assert (only["k"], only["classes"]) == (sizes.min(), len(sizes))
    assert only["l"] == release.groupby(["age", "postcode"])["plan"].nunique().min()
    risk = 1 / release.groupby(["age", "postcode"])["plan"].transform("size")
    assert only["reidentification"]["largest"] == risk.max()
    assert only["reidentification"]["mean"] == pytest.approx(risk.mean())
    for limit, share in only["reidentification"]["share_over"].items():
        assert share == pytest.approx((risk > float(limit)).mean())
    assert 0 < only["own_row"]["largest"] <= 2


def test_no_gate_on_inference_is_judged_by_own_rows(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = 'gates: ["delta <= 2", "share_over[0.05] <= 1", "mean <= 0.001", "largest_gain > -1"]\nstop_on_breach: true'
    replaced(example, 'gates: ["claims hold", "certainty_penalty <= 0.3", "delta <= 0.5"]', gates)
    replaced(example, ", claim: {k: 2}", "")
    out = run(example, capsys, 1)
    assert out.count("INCONCLUSIVE") == 4
    assert "PASS" not in out
    assert "FAIL" not in out


def test_own_rows_of_fixed_bands_are_the_distances_of_all_releases(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bands do not move: without a person the release lacks that person's row and nothing else changes."""
    release = pd.read_csv(example.parent / "release.csv", dtype=str)
    for record in range(len(release)):
        release.drop(index=record).to_csv(example.parent / f"{record}.csv", index=False)
    run(example, capsys, 1)
    own = distances(example, "by-hand")
    shutil.rmtree(example.parent / "runs")
    replaced(example, "match: {key: member}", "columns: [member], without: '{record}.csv'")
    run(example, capsys, 1)
    np.testing.assert_array_equal(own, distances(example, "by-hand"))
    assert summary(example)["delta"] == own.max()


@pytest.mark.parametrize("match", ["order", "none"])
def test_every_correspondence_finds_the_same_rows(example: Path, capsys: pytest.CaptureFixture[str], match: str) -> None:
    run(example, capsys, 1)
    own = distances(example, "by-hand")
    shutil.rmtree(example.parent / "runs")
    release = pd.read_csv(example.parent / "release.csv", dtype=str).drop(columns="member")
    shuffled = release if match == "order" else release.sample(frac=1, random_state=3)
    shuffled.to_csv(example.parent / "release.csv", index=False)
    replaced(example, "match: {key: member}", f"match: {match}")
    run(example, capsys, 1)
    np.testing.assert_array_equal(own, distances(example, "by-hand"))


def test_the_order_of_a_keyed_release_does_not_matter(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(example, capsys, 1)
    own = distances(example, "by-hand")
    shutil.rmtree(example.parent / "runs")
    release = pd.read_csv(example.parent / "release.csv", dtype=str)
    release.sample(frac=1, random_state=3).to_csv(example.parent / "release.csv", index=False)
    run(example, capsys, 1)
    np.testing.assert_array_equal(own, distances(example, "by-hand"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("match: {key: member}", "match: {key: plan}", "has a value twice, so it is not a key"),
        ("match: {key: member}", "match: {key: nobody}", "no column 'nobody'"),
        ("match: {key: member}", "match: sideways", "match"),
        ("match: {key: member}", "match: order, without: '{record}.csv'", "match is for a release alone"),
        ("full: release.csv", "full: nothing.csv", "cannot read"),
    ],
)
def test_bad_input_is_one_line(example: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str) -> None:
    replaced(example, old, new)
    err = run(example, capsys, 2)
    assert expected in err
    assert err.strip().count("\n") == 0


def test_an_order_needs_as_many_rows(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced(example, "match: {key: member}", "match: order")
    path = example.parent / "release.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:50]) + "\n")
    assert "needs as many published rows as the 60 used ones; got 49" in run(example, capsys, 2)


def with_persons(config: Path, persons: int, match: str) -> pd.DataFrame:
    """Give members to households, one of which is in no published row; return the published rows with theirs."""
    folder = config.parent
    members, release = (pd.read_csv(folder / name, dtype=str) for name in ("members.csv", "release.csv"))
    home = pd.Series([f"h{number * 7 % persons}" for number in range(len(members))])
    members.assign(home=home).to_csv(folder / "members.csv", index=False)
    replaced(config, "  sensitive: plan", "  sensitive: plan\n  subject: home")
    if match == "key":
        release = release[home != "h0"]
    else:
        replaced(config, "match: {key: member}", f"match: {match}")
    if match in {"key", "order"}:
        release.to_csv(folder / "release.csv", index=False)
    else:
        release.drop(columns="member").sample(frac=1, random_state=5).to_csv(folder / "release.csv", index=False)
    return release.assign(home=home)


@pytest.mark.parametrize("match", ["key", "order", "none"])
def test_figures_are_also_in_persons(example: Path, capsys: pytest.CaptureFixture[str], match: str) -> None:
    published = with_persons(example, 25, match)
    run(example, capsys, 1)
    only = summary(example)["release_only"]
    classes = published.groupby(["age", "postcode"])
    people = classes["home"].nunique()
    assert only["k"] == classes.size().min()
    found = only["persons"]
    assert (found["classes"], found["k"], found["l"]) == (len(people), people.min(), classes["plan"].nunique().min())
    once = published.drop_duplicates(["age", "postcode", "plan", "home"])
    counts = once.groupby(["age", "postcode", "plan"]).size().unstack(fill_value=0)
    whole = published.drop_duplicates(["plan", "home"])["plan"].value_counts(normalize=True)
    share = counts.div(counts.sum(axis=1), axis=0)
    assert found["t"] == pytest.approx((share - whole[share.columns]).abs().sum(axis=1).max() / 2)
    assert found["largest_share"] == pytest.approx(counts.div(people, axis=0).max().max())
    risk = (1 / classes["home"].transform("nunique")).groupby(published["home"]).max()
    assert found["reidentification"]["largest"] == risk.max()
    assert found["reidentification"]["mean"] == pytest.approx(risk.mean())
    for limit, over in found["reidentification"]["share_over"].items():
        assert over == pytest.approx((risk > float(limit)).mean())
    assert found["reidentification"] != only["reidentification"]


def test_persons_are_not_known_where_rows_fit_into_several_classes(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_persons(example, 25, "none")
    path = example.parent / "release.csv"
    release = pd.read_csv(path, dtype=str)
    release.loc[release.index % 2 == 0, "age"] = "*"
    release.to_csv(path, index=False)
    run(example, capsys, 1)
    assert summary(example)["release_only"]["persons"] is None


def test_figures_of_few_persons_are_not_in_the_shared_files(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_persons(example, 9, "order")
    private = example.parent / "private"
    replaced(example, "output: runs/", f"output: {{url: runs/, private: {private}}}")
    run(example, capsys, 1)
    assert "release_only" not in summary(example)
    (shared,) = (example.parent / "runs").glob("members-*")
    assert not (shared / "records").exists()
    texts = [path.read_text("utf-8", "replace") for path in shared.rglob("*") if path.is_file()]
    assert not any('"own_row"' in text or ("at most " in text and "is another figure" in text) for text in texts)
    (exact,) = private.glob("members-*/summary.json")
    assert json.loads(exact.read_text())[0]["release_only"]["persons"]["classes"] > 0


def test_nobody_is_explained_and_the_next_command_is_another(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(example), "--out", str(example.parent / "runs")]) == 1
    err = capsys.readouterr().err
    assert "next: dit leave-out" in err
    assert "dit explain" not in err
    (folder,) = (example.parent / "runs").glob("members-*")
    assert main(["explain", str(folder), "--config", str(example)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "no leave-one-out releases" in err
