"""Sequences in a run against counting in pandas, against simulation, and wrong options in one line."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from tests.cluster.runs import dit as command
from tests.oracles.nearest import bucket_of

STEPS = ("home", "shop", "work", "gym")
SCHEMA: dict[str, Any] = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "step": {"kind": "categorical"}},
    "sensitive": "mood",
    "subject": "person",
}
EVENTS = {"subject": "person", "order": "at"}
MEASURE: dict[str, Any] = {"name": "accuracy", "synthetic": "synthetic.csv", "events": EVENTS, "ways": [1, 2]}


def visits(subjects: int, seed: int, most: int = 6) -> pd.DataFrame:
    """One to `most` events of each subject; a step depends on the step before, as the mood does, and age stays."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(subjects):
        age, step, mood = int(rng.integers(20, 70)), int(rng.integers(4)), int(rng.integers(2))
        for time in range(int(rng.integers(1, most + 1))):
            rows.append((f"p{person}", time * 10 + int(rng.integers(9)), age, STEPS[step], ("low", "high")[mood]))
            step = (step + 1) % 4 if rng.random() < 0.7 else int(rng.integers(4))
            mood = mood if rng.random() < 0.8 else 1 - mood
    return pd.DataFrame(rows, columns=["person", "at", "age", "step", "mood"])


def measure(folder: Path, original: pd.DataFrame, synthetic: pd.DataFrame, **options: Any) -> dict[str, Any]:
    synthetic.to_csv(folder / "synthetic.csv", index=False)
    keys = MEASURE | {"synthetic": str(folder / "synthetic.csv")} | options
    (entry,) = dit.audit(original, schema=SCHEMA, tests=[], measures=[keys]).measures
    return entry


def tvd(first: list[Any], second: list[Any]) -> float:
    sides = [Counter(first), Counter(second)]
    cells = sides[0].keys() | sides[1].keys()
    shares = [{cell: Fraction(side[cell], side.total()) for cell in cells} for side in sides]
    return float(sum(abs(shares[0][cell] - shares[1][cell]) for cell in cells) / 2)


def pairs(events: pd.DataFrame, column: str) -> pd.DataFrame:
    """Both events of each subject that has two."""
    rows = [group.sort_values("at")[column].tolist() for _, group in events.groupby("person")]
    return pd.DataFrame([row for row in rows if len(row) == 2], columns=["first", "second"])


@pytest.mark.parametrize("bins", [3, 10])
def test_lengths_and_pairs_equal_what_is_counted_in_pandas(tmp_path: Path, bins: int) -> None:
    original, synthetic = visits(120, 1, most=2), visits(90, 2, most=2)
    entry = measure(tmp_path, original, synthetic, bins=bins)
    lengths = [events.groupby("person").size() for events in (original, synthetic)]
    assert entry["length_tvd"] == pytest.approx(tvd(*(side.tolist() for side in lengths)), abs=1e-15)
    assert entry["length_mean"] == pytest.approx([side.mean() for side in lengths])
    assert entry["rows"] == [120, 90]
    for column in ("age", "step", "mood"):
        first, second = (pairs(events, column) for events in (original, synthetic))
        bucket = {side: bucket_of(first[side], bins) for side in first}
        coded = [
            [tuple(bucket[side](row[side]) for side in bucket) for _, row in frame.iterrows()] for frame in (first, second)
        ]
        score = entry["coherence_by_column"][column]
        assert score["tvd"] == pytest.approx(tvd(*coded), abs=1e-15)
        products = [(left[0], right[1]) for left in coded[0] for right in coded[0]]
        assert score["unrelated"] == pytest.approx(tvd(coded[0], products), abs=1e-12)
    by_column = entry["coherence_by_column"].values()
    for name in ("tvd", "expected", "unrelated"):
        assert entry[f"coherence_{name}"] == pytest.approx(np.mean([score[name] for score in by_column]))


def test_long_sequences_are_compared_by_their_lengths_in_buckets(tmp_path: Path) -> None:
    original, synthetic = visits(200, 3, most=40), visits(150, 4, most=25)
    lengths = [events.groupby("person").size() for events in (original, synthetic)]
    bucket = bucket_of(lengths[0], 5)
    expected = tvd(*([bucket(length) for length in side] for side in lengths))
    assert measure(tmp_path, original, synthetic, bins=5)["length_tvd"] == pytest.approx(expected, abs=1e-15)


def test_the_run_compares_what_the_functions_compare(tmp_path: Path) -> None:
    original, synthetic = visits(150, 5), visits(140, 6)
    entry = measure(tmp_path, original, synthetic)
    compared = ["person", "at", "age", "step", "mood"]
    flat = [dit.flatten_events(events[compared], subject="person", order="at", seed=0) for events in (original, synthetic)]
    columns = [f"{name}.{step}" for step in (1, 2) for name in ("age", "step", "mood")]
    expected = dit.accuracy(*flat, ways=(1, 2), columns=columns)
    assert entry["tvd"] == expected.tvd
    assert list(entry["by_column"]) == columns


def test_new_people_score_at_the_expected_level_and_unrelated_events_far_above(tmp_path: Path) -> None:
    original = visits(400, 7)
    entries = [measure(tmp_path, original, visits(300, 100 + seed)) for seed in range(12)]
    for name in ("length", "coherence"):
        found = np.mean([entry[f"{name}_tvd"] for entry in entries])
        # one original: its own deviation is in all twelve
        assert 0.75 < found / entries[0][f"{name}_expected"] < 1.25
    fresh = visits(300, 50)
    mixed = fresh.assign(**{name: fresh[name].sample(frac=1, random_state=1).to_numpy() for name in ("age", "step", "mood")})
    broken = measure(tmp_path, original, mixed)
    assert broken["length_tvd"] == measure(tmp_path, original, fresh)["length_tvd"]
    for column, score in broken["coherence_by_column"].items():
        assert score["tvd"] > 1.5 * score["expected"], column
        assert score["tvd"] == pytest.approx(score["unrelated"], abs=0.15), column
    shorter = fresh.groupby("person").head(2)
    assert measure(tmp_path, original, shorter)["length_tvd"] > 5 * broken["length_expected"]


def test_equal_sequences_have_distance_zero_in_any_order_and_type(tmp_path: Path) -> None:
    original = visits(60, 8)
    times = pd.to_datetime("2024-01-01") + pd.to_timedelta(original["at"], unit="h")
    shuffled = original.assign(at=times.dt.strftime("%Y-%m-%dT%H:%M:%SZ")).sample(frac=1, random_state=2)
    entry = measure(tmp_path, original.assign(at=times), shuffled)
    assert (entry["tvd"], entry["length_tvd"], entry["coherence_tvd"]) == (0, 0, 0)
    assert entry["coherence_expected"] > 0
    numbers = original.assign(person=original["person"].str[1:].astype(int))
    as_floats = numbers.assign(person=numbers["person"].astype(float), at=numbers["at"].astype(str))
    assert measure(tmp_path, numbers, as_floats)["tvd"] == 0


def test_pairs_of_few_subjects_have_no_figure(tmp_path: Path) -> None:
    single = pd.concat([visits(40, 9, most=1), visits(9, 10, most=3).assign(person=lambda frame: "q" + frame["person"])])
    entry = measure(tmp_path, visits(60, 11), single)
    assert (entry["coherence_by_column"], entry["coherence_tvd"], entry["coherence_expected"]) == ({}, None, None)
    assert entry["length_tvd"] > 0


WRONG = {
    "measures[0].events.subject is missing": {"events": {"order": "at"}},
    "measures[0].events.subject must be a non-empty text; got 3": {"events": {"subject": 3}},
    "measures[0].events: key: unknown 'ordr'; did you mean 'order'?": {"events": {"subject": "person", "ordr": "at"}},
    "measures[0].events must be a mapping; got 'person'": {"events": "person"},
    "measures[0].events.order must be another column than events.subject": {"events": {"subject": "at", "order": "at"}},
    "measures[0].events needs measures[0].synthetic": {"synthetic": None},
    "measures[0].columns names 'person', which is events.subject": {"columns": {"person": "categorical", "age": "numeric"}},
    "no column 'when'": {"events": {"subject": "person", "order": "when"}},
    "column 'step' must be numbers or ISO dates": {"events": {"subject": "person", "order": "step"}},
    "column 'at' must be known in every event; it is missing in 1": {"synthetic": "gap.csv"},
    "synthetic: no column 'at' among 4": {"synthetic": "short.csv"},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_options_end_in_one_line(tmp_path: Path, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = visits(30, 12)
    frame.to_csv("synthetic.csv", index=False)
    frame.drop(columns="at").to_csv("short.csv", index=False)
    frame.assign(at=frame["at"].astype(object).mask(frame.index == 3)).to_csv("gap.csv", index=False)
    keys = {key: value for key, value in (MEASURE | WRONG[message]).items() if value is not None}
    tests = [] if "synthetic" in keys else [{"sanitizer": "resample", "repeats": 2, "records": {"sample": 1}}]
    schema = {key: value for key, value in SCHEMA.items() if key != "subject"}
    with pytest.raises(dit.InputError) as caught:
        dit.audit(frame, schema=schema, tests=tests, measures=[keys])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_shows_sequences_and_refuses_wrong_options_with_code_two(tmp_path: Path) -> None:
    visits(80, 13).to_csv(tmp_path / "visits.csv", index=False)
    visits(70, 14).replace({"step": {"gym": "beach"}}).to_csv(tmp_path / "synthetic.csv", index=False)
    document = {"version": 1, "data": {"source": "visits.csv"}, "schema": SCHEMA, "tests": [], "measures": [MEASURE]}
    (tmp_path / "visits.json").write_text(json.dumps(document | {"gates": ["accuracy.length_tvd <= 0.5"]}))
    done = command("run", tmp_path / "visits.json", "--out", tmp_path / "runs")
    assert done.returncode == 1, done.stderr
    assert "have labels that the original does not have" in done.stdout  # so no figure of accuracy passes
    folder = Path(done.stdout.splitlines()[-1])
    report = (folder / "report.html").read_text("utf-8")
    for words in ("Sequences", "number of events", "if unrelated", "step.1: "):
        assert words in report, words
    assert "beach" not in report + (folder / "measures.json").read_text("utf-8") + done.stdout
    (tmp_path / "visits.json").write_text(json.dumps(document | {"measures": [MEASURE | {"events": {"subject": ""}}]}))
    wrong = command("run", tmp_path / "visits.json", "--out", tmp_path / "runs")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "measures[0].events.subject must be a non-empty text" in wrong.stderr.splitlines()[-1]
    assert "Traceback" not in wrong.stderr
