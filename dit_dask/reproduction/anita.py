"""The targets of ANITA's deliverable D2.2 (2020): accuracy by n-way tables, privacy by distances to closest records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dit_dask import seeds
from dit_dask.measures.synthetic.accuracy import accuracy
from dit_dask.measures.synthetic.closeness import closeness
from dit_dask.reproduction.pieces import Work
from dit_dask.reproduction.report import Report, Table

COLUMNS = ("age", "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "hours-per-week")
ROWS = 3000
NOTES = (
    "The deliverable sets targets and prints no measurements, so its text is tried on Adult: a training part, a holdout part, "
    "and five 'synthetic' tables whose verdict is known beforehand.",
    "Accuracy is the mean total variation distance over all n-way tables of at most 10 buckets; `noise` is what two random "
    "parts of the original have. Closeness passes where synthetic records are not closer to training than the holdout.",
)


def build(work: Work) -> Report:
    """Measure the targets on tables whose verdict is known."""
    rows = work.piece("anita adult", lambda: _measure(work))
    examples = [
        {
            "number": "2-way combinations of 100 attributes",
            "published": 5000,
            "ours": math.comb(100, 2),
            "explained by": "the text counts 100²/2; pairs of different attributes are 100·99/2",
        },
        {"number": "outcomes of two attributes of 10 buckets", "published": 100, "ours": 10**2, "explained by": "reproduced"},
    ]
    tables = [
        Table("anita-example", "Section 2: the example", examples),
        Table("anita-targets", f"Both targets on Adult, {ROWS:,} rows each", rows),
    ]
    return Report("anita", "Quantifiable targets for accuracy and privacy (ANITA D2.2, 2020)", tables, {}, NOTES)


def _measure(work: Work) -> list[dict[str, Any]]:
    frame = pd.read_csv(work.source.path("adult"), usecols=list(COLUMNS), na_values="?", keep_default_na=False).dropna()
    order = seeds.stream(7, "anita").permutation(len(frame))[: 3 * ROWS]
    training, holdout, fresh = (frame.iloc[part].reset_index(drop=True) for part in np.array_split(order, 3))
    rows = []
    for name, (synthetic, expected) in _synthesize(training, fresh).items():
        scores = {ways: accuracy(training, synthetic, ways=[ways], splits=1) for ways in (1, 2, 3)}
        near = closeness(training, synthetic, holdout)
        rows.append(
            {
                "synthetic table": name,
                **{f"{ways}-way TVD": one.tvd for ways, one in scores.items()},
                "2-way noise": scores[2].noise.tvd,
                "identical to training": near.identical,
                "holdout identical": near.holdout_identical,
                "median DCR": float(np.median(near.dcr)),
                "closeness passed": near.passed,
                "expected": expected,
                "explained by": "as expected" if near.passed is expected else "the test has no power against it",
            }
        )
    return rows


def _synthesize(training: pd.DataFrame, fresh: pd.DataFrame) -> dict[str, tuple[pd.DataFrame, bool]]:
    rng = seeds.stream(7, "anita", "synthesizers")
    picked = rng.integers(0, len(training), len(training))
    copied = training.iloc[picked].reset_index(drop=True)
    independent = pd.DataFrame({name: rng.permutation(training[name].to_numpy()) for name in training})
    noisy = copied.copy()
    noisy["age"] = noisy["age"] + rng.integers(-1, 2, len(noisy))
    half = pd.concat([copied.iloc[: ROWS // 2], fresh.iloc[: ROWS - ROWS // 2]], ignore_index=True)
    return {
        "other people of the same population": (fresh, True),
        "each column shuffled": (independent, True),
        "half copies, half other people": (half, False),
        "copies with noise on age": (noisy, False),
        "copies of training rows": (copied, False),
    }
