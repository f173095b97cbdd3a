"""Synthetic data: wrong input says what, expected, got and where; verdicts in words; events to rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.measures.base import MeasureEntry
from dit_dask.measures.synthetic.closeness import Comparison, verdict
from dit_dask.measures.synthetic.closeness_measure import KIND as CLOSENESS
from dit_dask.measures.synthetic.tables import convert_cells, single_values
from dit_dask.values.release import Ranges, Sets

GOOD = pd.DataFrame({"age": [20, 30, 40, 50], "town": list("abab")})
WRONG = {
    "columns that differ": (GOOD.rename(columns={"town": "city"}), r"synthetic: no column 'town' among 2$"),
    "a column too many": (GOOD.assign(more=1), r"synthetic: column 'more' is not in \w+; name the columns to compare"),
    "types that differ": (
        GOOD.assign(age=list("abcd")),
        r"column 'age' holds number values in \w+ and text values in synthetic",
    ),
    "dates for numbers": (GOOD.assign(age=pd.Timestamp("2020")), r"column 'age' holds number values in \w+ and date values"),
    "mixed types": (GOOD.assign(town=["a", 1, "b", 2]), r"synthetic: column 'town' mixes number and text values; expected one"),
    "no rows": (GOOD.iloc[:0], r"synthetic must have at least 2 rows; got 0"),
    "one row": (GOOD.iloc[:1], r"synthetic must have at least 2 rows; got 1"),
    "infinite numbers": (GOOD.assign(age=[1.0, np.inf, 2, 3]), r"synthetic: column 'age' must hold finite numbers"),
    "a column twice": (GOOD.set_axis(["age", "age"], axis=1), r"synthetic: the column 'age' is there 2 times"),
    "no frame": ("people.csv", r"synthetic must be a DataFrame; got str"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_refused_in_one_line(case: str) -> None:
    frame, message = WRONG[case]
    with pytest.raises(dit.InputError, match=message):
        dit.accuracy(GOOD, frame)
    with pytest.raises(dit.InputError, match=message):
        dit.closeness(GOOD, frame, GOOD)


def test_a_column_without_any_value_is_refused_where_buckets_are_learned() -> None:
    empty = GOOD.assign(age=np.nan)
    message = r"^\w+: column 'age' has no value at all; leave it out with columns=$"
    with pytest.raises(dit.InputError, match=message):
        dit.accuracy(empty, GOOD)
    with pytest.raises(dit.InputError, match=message):
        dit.closeness(empty, GOOD, GOOD)
    assert dit.accuracy(GOOD, empty).by_combination["age",].l1d == 2  # a release that lost a column is far away, not wrong
    assert dit.accuracy(empty, GOOD, columns=["town"]).l1d == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 1}, "bins must be an integer from 2 to 10000; got 1"),
        ({"bins": True}, "bins must be an integer from 2"),
        ({"ways": (5,)}, "ways must be integers from 1 to 4; got 5"),
        ({"ways": (3,)}, r"ways must name a size that 2 columns can have; got \[3\]"),
        ({"limit": 0}, "limit must be an integer >= 1; got 0"),
        ({"splits": 0}, "splits must be an integer >= 1; got 0"),
        ({"kinds": {"agee": "numeric"}}, "kinds: column: unknown 'agee'; did you mean 'age'?"),
        (
            {"kinds": {"town": "numeric"}},
            "column 'town' must be numbers or ISO dates, all of one sort; got 4 cells",
        ),
        ({"kinds": {"town": "number"}}, "did you mean 'numeric'?"),
        ({"columns": []}, "original: expected at least one column; got none"),
        ({"columns": ["height"]}, "original: no column 'height' among 2"),
    ],
)
def test_wrong_parameters_of_accuracy(options: dict, message: str) -> None:
    with pytest.raises(dit.InputError, match=message):
        dit.accuracy(GOOD, GOOD, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "goower"}, "distance: unknown 'goower'; did you mean 'gower'?"),
        ({"level": 1.0}, "level must be a number from 0.0001 to below 1; got 1.0"),
        ({"level": 1e-9}, "level must be a number from 0.0001 to below 1; got 1e-09"),  # ten billion relabellings
        ({"bins": 0}, "bins must be an integer from 2"),
    ],
)
def test_wrong_parameters_of_closeness(options: dict, message: str) -> None:
    with pytest.raises(dit.InputError, match=message):
        dit.closeness(GOOD, GOOD, GOOD, **options)


def test_messages_never_show_a_cell() -> None:
    secret = GOOD.assign(age=["hidden-1", "hidden-2", "hidden-3", "hidden-4"])
    with pytest.raises(dit.InputError) as caught:
        dit.closeness(GOOD, secret, GOOD)
    assert "hidden" not in str(caught.value)


def test_ratios_of_two_zeros_are_one_and_ties_are_counted() -> None:
    training = pd.DataFrame({"x": [1, 1, 5, 9], "y": list("aabc")})
    synthetic = pd.DataFrame({"x": [1, 5, 5], "y": ["a", "b", "a"]})
    found = dit.closeness(training, synthetic, training, "gower")
    assert found.dcr.tolist() == [0, 0, 0.25]
    assert found.nndr.tolist() == [1, 0, 1]
    assert (found.ties, found.identical, found.holdout_identical) == (2 / 3, 2 / 3, 1)


def test_releases_of_single_values_are_records_however_they_are_published() -> None:
    codes = np.array([[0, 2], [1, 0]], np.int32)
    sets = (np.eye(2, dtype=bool), np.eye(3, dtype=bool)[[2, 0]])
    assert single_values(Ranges(codes, codes)).tolist() == codes.tolist()  # type: ignore[union-attr]
    assert single_values(Sets(np.array([[0, 0], [1, 1]], np.int32), sets)).tolist() == codes.tolist()  # type: ignore[union-attr]
    assert single_values(Ranges(codes, codes + 1)) is None
    assert single_values(Sets(np.zeros((1, 1), np.int32), (np.ones((1, 2), bool),))) is None


def test_cells_are_typed_by_their_kind() -> None:
    kinds = {"n": "numeric", "d": "numeric", "r": "numeric", "c": "categorical"}
    text = pd.DataFrame(
        {"n": ["1", None, "3"], "d": ["2020-01-02", "2020-01-03", None], "r": ["1", "2.5", "3"], "c": ["1", "2", None]}
    )
    found = convert_cells(text, kinds, "synthetic")
    assert found["n"].tolist()[::2] == [1, 3]
    assert found["d"].dt.day.tolist()[:2] == [2, 3]
    assert found["r"].tolist() == [1, 2.5, 3]
    numbers = convert_cells(pd.DataFrame({"c": [1.0, 2.0, np.nan]}), {"c": "categorical"}, "original")
    assert numbers["c"].tolist()[:2] == found["c"].tolist()[:2] == ["1", "2"]
    with pytest.raises(
        dit.InputError, match=r"must be numbers or ISO dates, all of one sort; got 1 cells of other text, first in its row 1$"
    ):
        convert_cells(pd.DataFrame({"n": ["1", "one", "2"]}), {"n": "numeric"}, "synthetic")


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        ("buckets", "in the same buckets as a training record: 5.00%"),
        ("gower", "equal to a training record in these columns: 5.00%"),
    ],
)
def test_the_same_buckets_are_not_called_the_same_record(distance: str, words: str) -> None:
    shares = {"share_nearer_training": 0.5, "share_expected": 0.5, "identical": 0.05, "holdout_identical": 0.01}
    curves = {"distance": [0.0, 1.0], "holdout": [0.1, 1.0], "synthetic": [0.1, 1.0]}
    effects = [{"name": name, "effect": 0.5, "interval": [0, 1]} for name in ("dcr", "nndr")]
    more = shares | {"passed": True, "reason": "none", "rows": [9, 9, 9], "curves": {"dcr": curves}}
    more |= {"effects": effects, "smallest_leak": 0.01}
    test = {"effect": 0.5, "expected": 0.5, "interval": [0, 1], "adjusted": 1, "closer": False}
    tests = [test | {"name": name} for name in ("all columns", "rare values")]
    entry = MeasureEntry("closeness", "closeness", {"distance": distance}, None, 0.5, tests, 9, more, ())
    overview, details = CLOSENESS.present([entry])
    assert words in details.description
    assert not any("identical" in str(text) for text in (*overview.header, details.description))


def test_words_never_let_a_release_pass() -> None:
    calm = [Comparison("all columns", 0.5, 0.5, (0.4, 0.6), 0.5, 1.0, closer=False)]
    passed, reason = verdict(calm, 0.01, [], 0.01)
    assert passed
    assert "pass" not in reason
    assert "would have been found if they were 1.00% of the records or more" in reason
    assert "cannot show" in reason
    assert "inference test" in reason
    for leak in (None, 0.7):
        few, why = verdict(calm, leak, [], 0.01)
        assert few is None
        assert why.startswith("undecided: the tables are too small or too coarse")
    doubtful, why = verdict(calm, 0.01, ["the holdout was seen"], 0.01)
    assert doubtful is None
    assert why.startswith("undecided: the holdout was seen")
    found = Comparison("all columns", 0.9, 0.5, (0.8, 1.0), 0.0, 0.0, closer=True)
    assert verdict([found], None, ["the holdout was seen"], 0.01)[0] is False


EVENTS = pd.DataFrame({"who": [1, 1, 1, 2, 3, 3, 1], "at": [3, 1, 2, 5, 1, 1, 9], "what": list("cabdefz")})
SUBJECTS = pd.DataFrame({"who": [3, 2, 1, 9], "sex": list("mfmf")})


def test_events_become_two_subsequent_ones_for_each_subject() -> None:
    seen = set()
    for seed in range(40):
        flat = dit.flatten_events(EVENTS, SUBJECTS, subject="who", order="at", seed=seed)
        assert list(flat.columns) == ["sex", "at.1", "what.1", "at.2", "what.2"]
        pairs = list(zip(flat["what.1"], flat["what.2"].fillna("-"), strict=True))
        assert flat["sex"].tolist() == list("mfmf")  # in the order of the identifiers 1, 2, 3, 9
        assert pairs[1:3] == [("d", "-"), ("e", "f")]
        assert flat.iloc[3, 1:].isna().all()
        seen.add(pairs[0])
    assert seen == {("a", "b"), ("b", "c"), ("c", "z")}
    same = [dit.flatten_events(EVENTS, SUBJECTS, subject="who", order="at", seed=3) for _ in range(2)]
    pd.testing.assert_frame_equal(*same)


def test_row_order_of_events_does_not_matter_where_an_order_is_given() -> None:
    mixed = EVENTS.drop(index=5).sample(frac=1, random_state=4)
    one = dit.flatten_events(EVENTS.drop(index=5), SUBJECTS, subject="who", order="at", seed=1)
    pd.testing.assert_frame_equal(one, dit.flatten_events(mixed, SUBJECTS[::-1], subject="who", order="at", seed=1))


def test_flattened_events_can_be_measured() -> None:
    rng = np.random.default_rng(0)
    events = pd.DataFrame({"who": rng.integers(0, 200, 900), "amount": rng.integers(0, 50, 900)})
    flat = dit.flatten_events(events, subject="who")
    other = dit.flatten_events(events.assign(amount=events["amount"].sample(frac=1, random_state=1).to_numpy()), subject="who")
    assert 0 < dit.accuracy(flat, other).tvd < 0.5


@pytest.mark.parametrize(
    ("events", "subjects", "options", "message"),
    [
        (EVENTS, SUBJECTS, {"subject": "whom"}, "events: no column 'whom' among 3"),
        (EVENTS, SUBJECTS, {"subject": "who", "order": "when"}, "events: no column 'when' among 3"),
        (EVENTS, SUBJECTS.iloc[1:], {"subject": "who"}, "events: 2 rows name a subject that is not in subjects"),
        (EVENTS, pd.concat([SUBJECTS, SUBJECTS]), {"subject": "who"}, "subjects: column 'who' must name each subject once"),
        (EVENTS.iloc[:0], SUBJECTS, {"subject": "who"}, "events must have rows; got none"),
        (
            EVENTS.assign(who=[1, None] + [2] * 5),
            SUBJECTS,
            {"subject": "who"},
            "must name a subject in every row; it is missing in 1",
        ),
        (EVENTS.assign(at=np.nan), SUBJECTS, {"subject": "who", "order": "at"}, "must be known in every row to sort by"),
        (EVENTS, SUBJECTS.rename(columns={"sex": "at.1"}), {"subject": "who"}, "column 'at.1' has the name of a flattened"),
    ],
)
def test_wrong_events(events: pd.DataFrame, subjects: pd.DataFrame, options: dict, message: str) -> None:
    with pytest.raises(dit.InputError, match=message):
        dit.flatten_events(events, subjects, **options)


def test_importing_the_package_stays_light() -> None:
    import subprocess
    import sys

    script = "import sys, dit_dask; dit_dask.__all__; print(sorted({'pandas', 'numba', 'scipy', 'dask'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    assert all(hasattr(dit, name) for name in dit.__all__)
