"""Encodings of what external sanitizers publish, against scikit-learn on frames of labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB

from dit_dask.errors import InputError
from tests.external import sample_sanitizers
from tests.external.people_audit import audit, people, python_sanitizer

FEW = [0, 7, 19, 41]
TOWNS, JOBS = ["Bonn", "Köln", "Lyon", "Nice"], ["clerk", "cook"]
Encode = Callable[[pd.DataFrame], np.ndarray]


def hot(release: pd.DataFrame) -> list[np.ndarray]:
    """Towns by their first letter or in full, and jobs: one feature for each original value."""
    towns = [[float(town.startswith(published.rstrip("*"))) for town in TOWNS] for published in release["town"]]
    return [np.array(towns), np.array([[float(job == one) for one in JOBS] for job in release["job"]])]


def bounds(release: pd.DataFrame) -> np.ndarray:
    """The least and the largest age of the table in a band; the table has ages from 20 to 61."""
    ages = sorted(set(people()["age"]))
    ends = []
    for published in release["age"].astype(str):
        low, high = map(int, published.strip("[)").split(", ")) if "," in published else (int(published), int(published) + 1)
        covered = [age for age in ages if low <= age < high]
        ends.append([(covered[0] - 20) / 41, (covered[-1] - 20) / 41])
    return np.column_stack([np.array(ends), *hot(release)])


def quantiles(release: pd.DataFrame) -> np.ndarray:
    """Ages of two quantiles as categories."""
    return np.column_stack([pd.get_dummies(release["age"]).reindex(columns=["low", "high"], fill_value=0), *hot(release)])


def halves() -> pd.DataFrame:
    """The people, with their half of the ages instead of the age."""
    ages = people()["age"]
    middle = ages.sort_values().iloc[29]
    return people().assign(age=np.where(ages <= middle, "low", "high"))


def expected(frame: pd.DataFrame, sanitize: Callable[[pd.DataFrame], pd.DataFrame], encode: Encode) -> list[float]:
    """Remove, sanitise, encode, train and compare, spelled out."""
    found = []
    for record in FEW:
        sides = []
        for table in (frame, frame.drop(index=record)):
            release = sanitize(table)
            model = BernoulliNB().fit(encode(release), release["illness"])
            sides.append(model.predict_proba(encode(frame.iloc[[record]]))[0])
        found.append(float(np.abs(sides[0] - sides[1]).sum()))
    return found


def test_bands_are_encoded_by_their_ends() -> None:
    result = audit(python_sanitizer("decades"), records=FEW, encoder={"continuous": "bounds", "categorical": "hot"})
    wanted = expected(people(), sample_sanitizers.decades, bounds)
    np.testing.assert_allclose(result.distances()["distance"], wanted, rtol=0, atol=1e-12)  # sums in another order


def test_quantiles_before_are_what_the_sanitizer_is_given() -> None:
    encoder = {"continuous": "quantiles-before", "categorical": "hot", "quantiles": 2}
    result = audit(python_sanitizer("first_letters"), records=FEW, encoder=encoder)
    wanted = expected(halves(), sample_sanitizers.first_letters, quantiles)
    np.testing.assert_allclose(result.distances()["distance"], wanted, rtol=0, atol=1e-12)  # sums in another order


def test_a_set_of_ages_that_has_no_middle_is_one_line_without_values() -> None:
    with pytest.raises(InputError) as refusal:
        audit(python_sanitizer("ages_as_lists", params={"kind": "tuple"}), records=FEW, encoder="scaling-hot")
    assert "tests[0].encoder: scaling needs intervals; the sanitizer publishes sets of 'age'" in str(refusal.value)
    assert "61" not in str(refusal.value)


def test_releases_that_are_there_cannot_have_quantiles_before() -> None:
    precomputed = {"name": "precomputed", "full": "full.csv", "without": "{record}.csv"}
    line = (
        r"tests\[0\].encoder: quantiles-before changes the table before it is sanitised; precomputed releases are of the table "
        "as it is"
    )
    with pytest.raises(InputError, match=line):
        audit(precomputed, encoder="quantiles-before-hot")
