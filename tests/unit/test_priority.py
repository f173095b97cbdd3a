"""The estimate that decides which records an external sanitizer is called for first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dit_dask.engines import ENGINES
from dit_dask.engines.priority import estimated_influence
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "illness"}


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 30, rows),
            "sex": rng.choice(["f", "m"], rows),
            "illness": rng.choice(["flu", "cold", "gout"], rows, p=[0.7, 0.25, 0.05]),
        }
    )


def test_the_estimate_is_the_distance_where_the_release_only_loses_the_row():
    for adversary in ("bernoulli-nb", "conditional-frequency"):
        for seed in range(5):
            rows = loaded(table(60, seed), SCHEMA)
            test = points(rows, SCHEMA, [{"sanitizer": "raw", "adversary": adversary}])[0]
            everyone = np.arange(rows.table.distinct)
            wanted = ENGINES["brute-force"].influence(rows.table, everyone, test.procedure).distance
            found = estimated_influence(rows.table, test.procedure.publish(rows.table), test.procedure)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
