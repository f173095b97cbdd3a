"""Tables for attacks: people without equal distances, a release with some of them in it, and what is asked about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SIDES = (["age", "city"], ["income", "weight"])
SECRETS = {"sex": False, "income": True}
KNOWN = ["age", "weight", "city"]
RECORDED = Path(__file__).with_name("anonymeter.json")


def people(rng: np.random.Generator, size: int) -> pd.DataFrame:
    """Draw people with associated columns."""
    age = rng.normal(45, 14, size)
    return pd.DataFrame(
        {
            "age": age,
            "income": 900 + 40 * age + rng.normal(0, 300, size),
            "weight": rng.normal(75, 12, size),
            "city": rng.choice(["Aarhus", "Basel", "Cork", "Delft"], size, p=[0.5, 0.3, 0.15, 0.05]),
            "sex": rng.choice(["f", "m"], size),
        }
    )


def leaking_tables(size: int = 300, leaked: int = 45, seed: int = 5) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Draw training, release and control; the release has some training records in it."""
    rng = np.random.default_rng(seed)
    training, control, fresh = (people(rng, size) for _ in range(3))
    release = pd.concat([training[:leaked], fresh[leaked:]], ignore_index=True)
    return training, release, control


def request(release: pd.DataFrame, pairs: int = 400) -> dict[str, Any]:
    """What is asked, with some records and columns for predicates."""
    rng = np.random.default_rng(11)
    columns = list(release)
    described = [
        (int(rng.integers(len(release))), sorted(rng.choice(columns, 3, replace=False).tolist())) for _ in range(pairs)
    ]
    return {"sides": SIDES, "secrets": SECRETS, "known": KNOWN, "described": described}


def recorded() -> dict[str, Any]:
    """What anonymeter answered."""
    return json.loads(RECORDED.read_text("utf-8"))
