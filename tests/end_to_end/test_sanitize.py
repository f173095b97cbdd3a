"""`dit sanitize` and `result.release` as a user runs them: what is written, read back, refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.cli import main
from dit_dask.releasing import sanitized
from tests.third_party import environment

KEYS = ["age", "town", "job"]
BY_DECADE = """\
def decades(frame):
    low = frame["age"].astype(int) // 10 * 10
    return frame.assign(age=[f"[{one}, {one + 9}]" for one in low], town="*")
"""


def written(config: Path, capsys: pytest.CaptureFixture[str], *arguments: str, name: str = "release.csv") -> Path:
    target = config.parent / name
    assert main(["sanitize", str(config), "--to", str(target), *arguments]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == f"{target}\n"
    return target


def refused(config: Path, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    before = sorted(config.parent.iterdir())
    assert main(["sanitize", str(config), *arguments]) == code
    assert sorted(config.parent.iterdir()) == before
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.fixture
def wide(config_file: Path) -> Path:
    """The config, on a table with a further column."""
    path = config_file.parent / "people.csv"
    frame = pd.read_csv(path)
    frame.assign(ward=[f"w{row}" for row in range(len(frame))]).to_csv(path, index=False)
    return config_file


def test_the_release_has_every_used_row_and_readable_values(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(config_file, capsys, "--test", "mondrian-k5")
    frame = read(path)
    assert list(frame.columns) == [*KEYS, "illness"]
    assert len(frame) == 60
    assert frame.groupby(KEYS).size().min() == 7
    assert set(frame["town"]) <= {"Lyon", "Nice", "Bonn", "Köln", "France", "Germany", "*"}
    intervals = frame["age"].str.fullmatch(r"\[\d+, \d+\]|\d+")
    assert intervals.all()
    about = json.loads(path.with_name("release.csv.json").read_text())
    assert about["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (about["rows"], about["dropped"], about["claim_holds"]) == (60, 1, True)
    assert (about["read_back"]["rows"], about["read_back"]["k"]) == (60, 7)
    assert about["run"].startswith("people-")
    assert about["run_status"] is None


@pytest.mark.parametrize(
    ("gates", "status", "message"),
    [
        (["delta <= 0.01"], "failed", "warning: the audit of mondrian-k5 failed: delta <= 0.01: delta is "),
        (["delta <= 9"], "inconclusive", "warning: the audit of mondrian-k5 is inconclusive: delta <= 9: "),
        ([], "none", "warning: no gate judges mondrian-k5"),
        (["delta <= 0.5 for mondrian-k5"], "passed", None),
        (
            ["delta <= 0.5 for mondrian-k5", "delta <= 0.01 for mondrian-k2"],
            "passed",
            "warning: mondrian-k5 passed, but the audit of mondrian-k2 failed",
        ),
    ],
)
def test_gates_that_did_not_pass_are_said(
    config_file: Path, capsys: pytest.CaptureFixture[str], gates: list[str], status: str, message: str | None
) -> None:
    output = ("--set", f"output={config_file.parent / 'runs'}")
    given = ("--set", f"gates={json.dumps(gates)}", *output)
    main(["run", str(config_file), "--quiet", *output])  # judged by other gates than those of the release
    capsys.readouterr()
    target = config_file.parent / "release.csv"
    assert main(["sanitize", str(config_file), "--to", str(target), "--test", "mondrian-k5", *given]) == 0
    err = capsys.readouterr().err
    assert ("warning" in err) == (message is not None)
    assert message is None or message in err
    about = json.loads(Path(f"{target}.json").read_text())
    assert (about["run_status"], about["gate_status"]) == ("complete", status)
    assert about["run_verdict"] == ("failed" if "mondrian-k2 failed" in (message or "") else status)


def test_a_release_without_an_audit_is_said(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = config_file.parent / "release.csv"
    output = ("--set", f"output={config_file.parent / 'runs'}")
    assert main(["sanitize", str(config_file), "--to", str(target), "--test", "mondrian-k5", *output]) == 0
    assert "is not a finished audit" in capsys.readouterr().err
    about = json.loads(Path(f"{target}.json").read_text())
    assert (about["run_status"], about["gate_status"], about["run_verdict"]) == (None, None, None)


def test_every_row_is_covered_by_its_published_values(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = read(written(config_file, capsys, "--test", "mondrian-k2", "--keep-order"))
    original = pd.read_csv(config_file.parent / "people.csv").iloc[:60]
    ends = frame["age"].str.extract(r"\[(\d+), (\d+)\]").astype(float)
    low, high = (ends[place].fillna(pd.to_numeric(frame["age"], errors="coerce")) for place in (0, 1))
    assert ((low <= original["age"]) & (original["age"] <= high)).all()
    country = original["town"].map({"Lyon": "France", "Nice": "France", "Bonn": "Germany", "Köln": "Germany"})
    assert ((frame["town"] == original["town"]) | (frame["town"] == country) | (frame["town"] == "*")).all()
    assert frame["illness"].tolist() == original["illness"].tolist()


def test_rows_are_shuffled_by_a_seed_unless_asked(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--test", "mondrian-k5")
    ordered, first, again, other = (
        read(written(config_file, capsys, *options, *more, name=f"{number}.csv"))
        for number, more in enumerate([("--keep-order",), ("--seed", "1"), ("--seed", "1"), ("--seed", "2")])
    )
    assert first.equals(again)
    assert not first.equals(ordered)
    assert not first.equals(other)
    rows = [Counter(frame.itertuples(index=False, name=None)) for frame in (ordered, first, other)]
    assert rows[0] == rows[1] == rows[2]


def test_blocks_and_formats_change_nothing(
    wide: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--test", "mondrian-k5", "--columns", "keep")
    whole = read(written(wide, capsys, *options))
    monkeypatch.setattr(sanitized, "BLOCK_ROWS", 7)
    assert read(written(wide, capsys, *options, name="blocks.csv")).equals(whole)
    assert read(written(wide, capsys, *options, name="blocks.parquet")).equals(whole)


def test_further_columns_are_kept_dropped_or_refused(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = str(wide.parent / "r.csv")
    message = refused(wide, capsys, "--test", "mondrian-k5", "--to", to)
    assert "'ward'" in message
    assert "--columns drop" in message
    assert "--columns keep" in message
    kept = read(written(wide, capsys, "--test", "mondrian-k5", "--columns", "keep", name="kept.csv"))
    pairs = zip(kept["ward"], kept["illness"], strict=True)
    original = pd.read_csv(wide.parent / "people.csv")
    assert set(pairs) == set(zip(original["ward"][:60], original["illness"][:60], strict=True))
    dropped = read(written(wide, capsys, "--test", "mondrian-k5", "--columns", "drop", name="dropped.csv"))
    assert list(dropped.columns) == [*KEYS, "illness"]


def test_the_subject_is_dropped_unless_asked(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide.write_text(wide.read_text("utf-8").replace("schema:", "schema:\n  subject: ward"), "utf-8")
    plain = read(written(wide, capsys, "--test", "mondrian-k5"))
    assert "ward" not in plain.columns
    named = read(written(wide, capsys, "--test", "mondrian-k5", "--keep-subject", name="named.csv"))
    assert named["ward"].nunique() == 60


def test_classes_are_counted_in_persons(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config_file.parent / "people.csv"
    frame = pd.read_csv(path).iloc[:60]
    pd.concat([frame.assign(id=range(60)), frame.assign(id=range(60))]).to_csv(path, index=False)
    config_file.write_text(config_file.read_text("utf-8").replace("schema:", "schema:\n  subject: id"), "utf-8")
    release = written(config_file, capsys, "--test", "mondrian-k5", "--keep-subject")
    about = json.loads(Path(f"{release}.json").read_text())
    assert (about["smallest_class"], about["read_back"]["k"]) == (7, 14)
    assert read(release).groupby(KEYS)["id"].nunique().min() == 7


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--test", "mondrian-k6", "--to", "r.csv"], "did you mean 'mondrian-k5'?"),
        (["--test", "mondrian-k5", "--to", "people.csv"], "exists and is not overwritten"),
        (["--test", "mondrian-k5", "--to", "r.txt"], "must end in .csv or .parquet"),
        (["--test", "mondrian-k5", "--to", "r.csv", "--format", "parquet"], "ends in .csv"),
        (["--test", "mondrian-k5", "--to", "r.csv", "--keep-subject"], "no schema.subject"),
        (["--test", "raw.conditional-frequency", "--to", "r.csv"], "nothing to sanitise"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    config_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    monkeypatch.chdir(config_file.parent)
    tests = [one.id for one in dit_tests(config_file)]
    arguments = [next(name for name in tests if name.startswith("raw")) if "raw" in word else word for word in arguments]
    assert expected in refused(config_file, capsys, *arguments)


def dit_tests(config_file: Path) -> Any:
    from dit_dask.audit.grammar import read_config
    from dit_dask.run import prepare

    return prepare(read_config(str(config_file), [])).tests


def test_the_file_beside_it_is_not_overwritten_either(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config_file.parent / "r.csv.json").write_text("mine")
    assert "exists" in refused(config_file, capsys, "--test", "mondrian-k5", "--to", str(config_file.parent / "r.csv"))


def test_a_broken_claim_is_not_written(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"age": [1] * 5 + [2] * 3, "town": "Lyon", "job": "cook", "illness": list("abababab")})
    frame.to_csv(config_file.parent / "people.csv", index=False)
    config_file.write_text(config_file.read_text("utf-8").replace("k: [2, 5]", "k: 4, variant: basic"), "utf-8")
    to = str(config_file.parent / "r.csv")
    assert "does not hold" in refused(config_file, capsys, "--test", "mondrian-k4-basic", "--to", to, code=1)


def test_noisy_counts_are_a_table_of_counts(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sanitizer = "sanitizer: {name: laplace, epsilon: inf, bins: {age: 3}}"
    config_file.write_text(config_file.read_text("utf-8").replace("sanitizer: {name: mondrian, k: [2, 5]}", sanitizer), "utf-8")
    (name,) = [test.id for test in dit_tests(config_file) if test.id.startswith("laplace")]
    frame = read(written(config_file, capsys, "--test", name, name="counts.parquet"))
    original = pd.read_csv(config_file.parent / "people.csv").iloc[:60]
    assert list(frame.columns) == [*KEYS, "illness", "count"]
    ends = frame["age"].str.extract(r"\[(\d+), (\d+)\]").astype(int)
    for line, low, high in zip(frame.itertuples(), ends[0], ends[1], strict=True):
        same = (original[["town", "job", "illness"]] == [line.town, line.job, line.illness]).all(axis=1)
        assert frame.loc[line.Index, "count"] == (same & original["age"].between(low, high)).sum()
    assert frame["count"].sum() == 60


def test_python_returns_the_release_indexed_like_the_frame(config_file: Path) -> None:
    frame = pd.read_csv(config_file.parent / "people.csv").iloc[:60].set_axis([f"row {number}" for number in range(60)])
    schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "job": {"kind": "categorical"}}, "sensitive": "illness"}
    result = dit.audit(frame, schema=schema, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}])
    release = result.release()
    assert release.index.equals(frame.index)
    assert release["illness"].equals(frame["illness"])
    assert release.groupby(["age", "job"]).size().min() >= 5
    with pytest.raises(dit.InputError, match="did you mean 'mondrian-k5'"):
        result.release("mondrian-k4")


def test_pycanon_finds_the_same_k_l_and_t(config_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    environment.required()
    config_file.write_text(config_file.read_text("utf-8").replace("k: [2, 5]", "l: 2"), "utf-8")
    path = written(config_file, capsys, "--test", "mondrian-l2")
    (theirs,) = environment.pycanon([read(path)], KEYS, "illness", tmp_path)
    ours = json.loads(Path(f"{path}.json").read_text())["read_back"]
    assert (ours["k"], ours["l"]) == (theirs["k"], theirs["l"])
    assert ours["t"] == pytest.approx(theirs["t"], abs=1e-9)
    assert ours["largest_share"] <= 1 / 2


def with_sanitizer(config_file: Path, sanitizer: str) -> str:
    """Put another sanitizer into the config; return the id of its test."""
    old = "sanitizer: {name: mondrian, k: [2, 5]}"
    config_file.write_text(config_file.read_text("utf-8").replace(old, f"sanitizer: {sanitizer}"), "utf-8")
    return next(test.id for test in dit_tests(config_file) if not test.id.startswith("raw"))


def test_an_external_sanitizer_is_written_by_its_classes(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config_file.parent / "by_hand.py").write_text(BY_DECADE, "utf-8")
    name = with_sanitizer(config_file, "{name: python, target: 'by_hand:decades', cache: none}")
    release = written(config_file, capsys, "--test", name)
    original = pd.read_csv(config_file.parent / "people.csv").iloc[:60]
    low = original["age"] // 10 * 10
    expected = Counter(zip(low, low + 9, original["job"], original["illness"], strict=True))
    frame = read(release)
    ends = frame["age"].map(lambda text: [int(end) for end in text.strip("[]").split(", ")])
    inside = [(end[0] // 10 * 10, end[0] // 10 * 10 + 9, end[-1] // 10 * 10 + 9) for end in ends]
    assert all(high == last for _, high, last in inside)  # no interval is wider than its decade
    found = zip([low for low, _, _ in inside], [high for _, high, _ in inside], frame["job"], frame["illness"], strict=True)
    assert Counter(found) == expected
    assert json.loads(Path(f"{release}.json").read_text())["rows"] == 60
    to = str(config_file.parent / "r.csv")
    assert "does not tell which row" in refused(config_file, capsys, "--test", name, "--to", to, "--keep-order")


def test_a_synthesizer_is_written_by_its_classes(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = with_sanitizer(config_file, "{name: resample}\n    repeats: 2")
    release = written(config_file, capsys, "--test", name)
    frame = read(release)
    original = pd.read_csv(config_file.parent / "people.csv", dtype=str).iloc[:60]
    columns = [*KEYS, "illness"]
    rows = set(original[columns].itertuples(index=False, name=None))
    assert set(frame[columns].itertuples(index=False, name=None)) < rows  # drawn with replacement: some are missing
    assert json.loads(Path(f"{release}.json").read_text())["order"] == "shuffled"


def test_tables_of_counts_are_refused_in_one_line(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = with_sanitizer(config_file, "{name: tables, tables: [[job, illness]]}")
    to = str(config_file.parent / "r.csv")
    assert "publishes no rows" in refused(config_file, capsys, "--test", name, "--to", to)


def test_pycanon_finds_the_same_in_a_full_domain_release(
    config_file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    environment.required()
    draw = np.random.default_rng(3)
    columns = {"age": 20 + draw.geometric(0.1, 200) % 60, "town": draw.choice(["Lyon", "Nice", "Bonn"], 200, p=[0.6, 0.3, 0.1])}
    columns |= {
        "job": draw.choice(["cook", "clerk"], 200),
        "illness": draw.choice(["flu", "cold", "gout"], 200, p=[0.6, 0.3, 0.1]),
    }
    pd.DataFrame(columns).to_csv(config_file.parent / "people.csv", index=False)
    name = with_sanitizer(config_file, "{name: full-domain, k: 5, suppression: 0.1, bands: {age: [10, 20]}}")
    release = written(config_file, capsys, "--test", name)
    frame = read(release)
    is_suppressed = (frame[KEYS] == "*").all(axis=1)
    assert 5 <= is_suppressed.sum() <= 20  # a class like the others, of at most a tenth of the rows
    with_suppressed, theirs = environment.pycanon([frame, frame[~is_suppressed]], KEYS, "illness", tmp_path)
    about = json.loads(Path(f"{release}.json").read_text())
    ours = about["read_back"]
    assert about["suppressed"] == ours["suppressed"] == is_suppressed.sum()
    assert with_suppressed["k"] == about["smallest_class"] >= 5
    assert theirs["k"] == ours["k"] >= 5
    assert ours["l"] == theirs["l"]
    assert ours["t"] == pytest.approx(theirs["t"], abs=1e-9)
    assert ours["t"] > 0


def test_a_transformer_alone_keeps_k_and_the_other_columns() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, 300), "zip": rng.choice(["101", "102", "201"], 300), "x": rng.random(300)}
    )
    sanitizer = dit.Mondrian(k=5, quasi_identifiers=["age", "zip"], hierarchies={"zip": {"prefix": [1]}})
    release = sanitizer.fit_transform(frame)
    assert sanitizer.claim_holds_
    assert release.groupby(["age", "zip"]).size().min() >= 5
    assert release["x"].equals(frame["x"])
    assert sanitizer.transform(frame.iloc[::-1]).equals(release.iloc[::-1])
    with pytest.raises(dit.InputError, match="300 rows were not in the table"):
        sanitizer.transform(frame.assign(age=-1))
    with pytest.raises(dit.InputError, match="not fitted"):
        dit.Mondrian(k=5).transform(frame)
    with pytest.raises(dit.InputError, match="sensitive="):
        dit.Mondrian(l=2).fit(frame)
    with pytest.raises(dit.InputError, match="empty cells"):
        dit.Mondrian(k=2, quasi_identifiers=["age"]).fit(frame.assign(age=frame["age"].where(frame["age"] > 20)))


def test_a_transformer_goes_into_a_pipeline_and_is_cloned() -> None:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"age": np.arange(100) % 37, "s": list("ab") * 50})
    pipeline = make_pipeline(dit.Mondrian(k=5, sensitive="s"), OneHotEncoder())
    copied = clone(pipeline).set_params(mondrian__k=20)
    assert pipeline.fit_transform(frame).shape[1] > copied.fit_transform(frame).shape[1]
    assert pipeline.get_params()["mondrian__k"] == 5
    with pytest.raises(ValueError, match="Invalid parameter 'm'"):
        dit.Mondrian().set_params(m=2)
