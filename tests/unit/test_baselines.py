"""Baselines are the same however their work is cut into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dit_dask.execution import baselines
from dit_dask.execution.baselines import Baseline, execute_baselines, plan_baselines
from dit_dask.execution.runner import TaskRunner
from tests.audits import loaded, points

SCHEMA: dict[str, Any] = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "disease",
}


def people(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": rng.integers(0, rows // 2, rows),
            "age": rng.integers(20, 60, rows),
            "town": rng.choice(["A", "B", "C"], rows),
            "disease": rng.choice(["flu", "aids", "lung"], rows),
        }
    )


def executed(schema: dict[str, Any], test: dict[str, Any]) -> Sequence[Baseline]:
    rows = loaded(people(120), schema)
    return execute_baselines(TaskRunner(None), plan_baselines(points(rows, schema, [test]), rows, 7), controls=True)


@pytest.mark.parametrize("subject", [{}, {"subject": "person"}])
@pytest.mark.parametrize(
    "test",
    [
        {"sanitizer": {"name": "mondrian", "k": 3}},
        {"sanitizer": {"name": "mondrian", "k": 3}, "records": {"sample": 30, "seed": 1}},
        {"sanitizer": {"name": "mondrian", "k": 3}, "adversary": {"name": "sklearn.tree.DecisionTreeClassifier"}},
    ],
    ids=["panel", "sample", "trained"],
)
def test_controls_do_not_depend_on_how_their_records_are_cut(
    subject: dict[str, Any], test: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = executed(SCHEMA | subject, test)
    monkeypatch.setattr(baselines, "CONTROL_RECORDS", 7)
    cut = executed(SCHEMA | subject, test)
    assert [one.control for one in whole[0].controls] == ["raw", "suppressed"]
    assert all(one.statistics.figure("delta") is not None for one in whole[0].controls)
    assert [one.attainable for one in cut] == [one.attainable for one in whole]
    assert [list(one.controls) for one in cut] == [list(one.controls) for one in whole]
