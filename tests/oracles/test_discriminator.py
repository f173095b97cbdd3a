"""The AUC of a classifier that tells tables apart: scikit-learn's area, an exact interval width, and planted differences."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import dit_dask as dit
from dit_dask.measures.synthetic import discriminator
from dit_dask.measures.synthetic.discriminator import auc_with_variance


def people(rows: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {"x": rng.normal(shift, size=rows), "y": rng.integers(0, 9, rows), "c": rng.choice(list("abc"), rows)}
    return pd.DataFrame(columns)


def test_the_area_is_that_of_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    original, synthetic = rng.normal(size=50).round(1), rng.normal(0.5, size=70).round(1)
    area, _ = auc_with_variance(original, synthetic)
    assert area == pytest.approx(roc_auc_score([0] * 50 + [1] * 70, np.concatenate([original, synthetic])))


def test_the_variance_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(1)
    drawn = [auc_with_variance(rng.normal(size=60), rng.normal(0.7, size=40)) for _ in range(2000)]
    areas, variances = np.array(drawn).T
    assert np.mean(variances) == pytest.approx(np.var(areas), rel=0.12)  # three standard errors of 2,000 draws are 0.1


def test_equal_populations_are_at_one_half_and_others_are_not() -> None:
    found = dit.accuracy(people(400, 1), people(400, 2), ways=1, discriminator=True).discriminator
    assert found is not None
    assert found.interval[0] < 0.5 < found.interval[1]
    shifted = dit.accuracy(people(400, 1), people(300, 2, shift=3), ways=1, discriminator=True).discriminator
    assert shifted is not None
    assert shifted.auc > 0.95
    assert dit.accuracy(people(400, 1), people(5, 2), ways=1, discriminator=True).discriminator is None


def test_row_order_changes_nothing_and_copies_are_not_recognised() -> None:
    table, other = people(300, 1), people(300, 2)
    one = dit.accuracy(table, other, ways=1, discriminator=True).discriminator
    mixed = dit.accuracy(table.sample(frac=1, random_state=1), other[::-1], ways=1, discriminator=True).discriminator
    assert one == mixed
    copied = dit.accuracy(table, table, ways=1, discriminator=True).discriminator
    assert copied is not None
    assert copied.auc == pytest.approx(0.5)


@settings(deadline=None, max_examples=8)
@given(orders=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)))
def test_the_rows_that_are_drawn_do_not_depend_on_the_order_of_rows(orders: tuple[int, int]) -> None:
    tables = people(130, 1), people(90, 2, shift=0.5)
    shuffled = [table.sample(frac=1, random_state=order) for table, order in zip(tables, orders, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discriminator, "MOST_ROWS", 60)
        found = dit.accuracy(*tables, ways=1, discriminator=True).discriminator
        assert found == dit.accuracy(*shuffled, ways=1, discriminator=True).discriminator
    assert found is not None
    assert found.rows == (60, 60)


SMALL = people(8, 1)  # fewer rows than the folds need


@pytest.mark.parametrize(("table", "asked"), [(SMALL, True), (people(60, 1), False)])
def test_a_gate_on_an_area_that_is_not_there_is_never_passed(table: pd.DataFrame, asked: bool) -> None:
    schema = {"quasi_identifiers": {"x": {"kind": "numeric"}, "c": {"kind": "categorical"}}, "sensitive": "y"}
    tests = [{"sanitizer": "resample", "repeats": 2, "records": {"sample": 1}}]
    measures = [{"name": "accuracy", "discriminator": asked}]
    result = dit.audit(table, schema=schema, tests=tests, measures=measures, gates=["accuracy.discriminator_auc <= 1"])
    assert {entry.get("discriminator_auc") for entry in result.measures} == {None}
    assert {verdict.status for verdict in result.verdict.verdicts} == {"inconclusive"}
    assert result.verdict.status == "inconclusive"


def test_a_gate_judges_the_area() -> None:
    schema = {"quasi_identifiers": {"x": {"kind": "numeric"}, "c": {"kind": "categorical"}}, "sensitive": "y"}
    tests = [{"sanitizer": "resample", "repeats": 2, "records": {"sample": 1}}]
    measures = [{"name": "accuracy", "discriminator": True}]
    result = dit.audit(
        people(300, 1), schema=schema, tests=tests, measures=measures, gates=["accuracy.discriminator_auc <= 0.6"]
    )
    areas = [entry["discriminator_auc"] for entry in result.measures if entry["sanitizer"]]
    assert all(0 <= area <= 1 for area in areas)
    assert any("discriminator_auc" in verdict.gate for verdict in result.verdict.verdicts)
