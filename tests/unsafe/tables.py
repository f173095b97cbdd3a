"""Small tables that the gallery of releases is made of; every one is drawn from a fixed seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dit_dask.inputs import datasets

CLINIC: dict[str, Any] = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "illness",
}
PAYROLL: dict[str, Any] = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "department": {"kind": "categorical"}},
    "sensitive": "salary",
}
CENSUS: dict[str, Any] = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical"},
        "sex": {"kind": "categorical"},
        "race": {"kind": "categorical"},
    },
    "sensitive": "occupation",
}


def clinic(rows: int = 300, seed: int = 1, illnesses: int = 4) -> pd.DataFrame:
    """Patients whose illness says nothing about their age and town."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, rows),
            "town": rng.choice(list("abcdefgh"), rows),
            "illness": rng.choice([f"illness {number}" for number in range(illnesses)], rows),
        }
    )


def payroll(rows: int = 1500) -> pd.DataFrame:
    """Employees, no two of whom earn the same."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 65, rows),
            "department": rng.choice(list("abcdef"), rows),
            "salary": rng.choice(np.arange(20_000, 99_999), rows, replace=False),
        }
    )


def census(rows: int = 1000) -> pd.DataFrame:
    """The embedded table that looks like UCI Adult."""
    return datasets.census(rows)
