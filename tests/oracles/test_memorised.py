"""What closeness finds and what it does not hold against a table: leaks are planted, and protected tables are honest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dit_dask as dit

CATEGORIES = {"town": 12, "job": 8, "sex": 2, "kind": 5}


def people(rows: int, seed: int) -> pd.DataFrame:
    """Numbers and categories that depend on each other, with ties and rare values."""
    rng = np.random.default_rng(seed)
    wealth = rng.normal(size=rows)
    columns = {"age": (40 + 12 * rng.normal(size=rows)).round().clip(17, 90), "income": np.round(np.exp(8 + wealth), -1)}
    for name, size in CATEGORIES.items():
        codes = np.minimum(rng.geometric(0.35, rows) + (wealth > 0.5), size)
        columns[name] = np.array([f"{name}-{code}" for code in codes], object)
    return pd.DataFrame(columns | {"hours": rng.choice([20, 35, 40, 40, 40, 50], rows)})


TRAINING, HOLDOUT, FRESH = (people(600, seed) for seed in (1, 2, 3))


def mixed(columns: list[str], rows: int) -> pd.DataFrame:
    """Some columns of training rows beside the others of fresh rows."""
    return FRESH.assign(**{name: np.where(np.arange(600) < rows, TRAINING[name], FRESH[name]) for name in columns})


LEAKS = {
    "copies": pd.concat([TRAINING.iloc[:20], FRESH.iloc[20:]]),
    "noisy copies": pd.concat([TRAINING.iloc[:60].assign(age=lambda frame: frame["age"] + 1), FRESH.iloc[60:]]),
    "a part of the columns": mixed(["age", "town", "job", "kind"], 600),
    "rare numbers only": mixed(["income"], 600),
}


@pytest.mark.parametrize("distance", ["buckets", "gower", "euclidean"])
@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak: str, distance: str) -> None:
    found = dit.closeness(TRAINING, LEAKS[leak], HOLDOUT, distance)
    assert found.passed is False
    assert found.smallest_leak is None
    assert any(test.closer for test in found.tests)


def test_rare_numbers_are_found_by_the_test_of_rare_values() -> None:
    found = dit.closeness(TRAINING, LEAKS["rare numbers only"], HOLDOUT)
    assert "rare values of income" in [test.name for test in found.tests if test.closer]


def protect(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace rare categories by the most common one."""
    counts = {name: frame[name].value_counts() for name in CATEGORIES}
    return frame.assign(
        **{name: frame[name].where(frame[name].map(counts[name]) >= 30, counts[name].index[0]) for name in CATEGORIES}
    )


HONEST = {
    "fresh": FRESH,
    "protected": protect(FRESH),
    "clipped": FRESH.assign(age=FRESH["age"].clip(25, 60), income=FRESH["income"].clip(1000, 9000)),
    "few records, many times": pd.concat([people(200, 4)] * 3),
}


@pytest.mark.parametrize("table", HONEST)
def test_honest_tables_pass_and_say_what_would_have_been_found(table: str) -> None:
    found = dit.closeness(TRAINING, HONEST[table], HOLDOUT, "gower")
    assert found.passed is True
    assert found.smallest_leak is not None
    assert 0 < found.smallest_leak < 0.1


def test_what_is_said_to_be_found_is_found() -> None:
    found = dit.closeness(TRAINING, FRESH, HOLDOUT, "gower")
    assert found.smallest_leak is not None
    count = round(2 * found.smallest_leak * len(FRESH))  # twice as many: found in 18 of 20 trials is not found in all
    for seed in (1, 2, 3):
        copies = TRAINING.sample(count, random_state=seed)
        leaky = pd.concat([copies, FRESH.iloc[count:]])
        assert dit.closeness(TRAINING, leaky, HOLDOUT, "gower").passed is False


LABELS = np.array([f"P-{number:05d}" for number in range(1800)], object)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ((TRAINING, FRESH, TRAINING), "600 of 600 holdout records equal a training record"),
        ((TRAINING, FRESH, pd.concat([TRAINING.iloc[:150], HOLDOUT.iloc[150:]])), "holdout records equal a training record"),
        ((TRAINING, FRESH, HOLDOUT.iloc[:2]), "too small or too coarse"),
        ((TRAINING.iloc[:4], FRESH.iloc[:4], HOLDOUT.iloc[:4]), "too small or too coarse"),
        (
            tuple(frame.assign(id=np.arange(600) + 600 * place) for place, frame in enumerate((TRAINING, FRESH, HOLDOUT))),
            "column 'id' numbers or names the rows",
        ),
        (
            tuple(frame.assign(id=LABELS[600 * place :][:600]) for place, frame in enumerate((TRAINING, FRESH, HOLDOUT))),
            "column 'id' numbers or names the rows",
        ),
        (
            tuple(pd.DataFrame({"id": LABELS[600 * place :][:600]}) for place in (1, 0, 2)),
            "column 'id' numbers or names the rows",
        ),
        (
            (TRAINING, FRESH.assign(town=np.where(np.arange(600) < 200, LABELS[:600], FRESH["town"])), HOLDOUT),
            "33.3% of the synthetic cells of 'town' have labels that no real record has",
        ),
    ],
)
def test_tables_that_cannot_be_judged_do_not_pass(tables: tuple[pd.DataFrame, ...], words: str) -> None:
    for distance in ("gower", "buckets"):
        found = dit.closeness(*tables, distance)
        assert found.passed is None
    assert words in found.reason


def test_an_identifier_does_not_hide_a_leak() -> None:
    tables = [frame.assign(id=np.arange(600)) for frame in (TRAINING, LEAKS["copies"], HOLDOUT)]
    assert dit.closeness(*tables).passed is False


def test_a_level_may_be_any_number_and_a_smaller_one_draws_more_labels() -> None:
    exact = dit.closeness(TRAINING, FRESH, HOLDOUT, "gower", level=np.float32(0.05), bins=np.int64(5))
    assert exact.level == pytest.approx(0.05)
    strict = dit.closeness(TRAINING, LEAKS["copies"], HOLDOUT, level=0.002)
    assert strict.passed is False
    assert min(test.adjusted for test in strict.tests) < 0.001
