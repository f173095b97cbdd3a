"""How well a classifier tells synthetic records from original ones: the area under its ROC curve, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.measures.synthetic.buckets import count_labels
from dit_dask.measures.synthetic.columns import Column

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

FOLDS = 5
CONFIDENCE_Z = 1.959963984540054  # 95%, two-sided
MOST_LABELS = 200
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Discriminator:
    """The AUC of a cross-fitted classifier: 0.5 if it cannot tell the tables apart, 1 if it always can."""

    auc: float
    interval: tuple[float, float]
    rows: tuple[int, int]


def discriminate(columns: Sequence[Column], seed: int) -> Discriminator | None:
    """Train on four fifths of both tables and score the fifth, five times; None with fewer than ten rows in a table.

    Equal records are in the same fold: a copy is not recognised by having been trained on.
    """
    first, second = (_sample(_features(columns, frame), columns[0].counts_of(frame), seed, frame) for frame in (0, 1))
    if min(len(first), len(second)) < 2 * FOLDS:
        return None
    records = np.concatenate([first, second])
    is_synthetic = np.arange(len(records)) >= len(first)
    fold = _folds(records, seed)
    areas, variances, weights = [], [], []
    for number in range(FOLDS):
        held = fold == number
        if min(is_synthetic[held].sum(), (~is_synthetic[held]).sum()) < 2 or len(np.unique(is_synthetic[~held])) < 2:
            continue
        score = _fit_and_score(columns, records[~held], is_synthetic[~held], records[held])
        area, variance = auc_with_variance(score[~is_synthetic[held]], score[is_synthetic[held]])
        areas.append(area)
        variances.append(variance)
        weights.append(int(held.sum()))
    if not areas:
        return None
    share = np.array(weights) / sum(weights)
    area = float((share * areas).sum())
    spread = CONFIDENCE_Z * math.sqrt(float((share**2 * variances).sum()))
    return Discriminator(area, (max(0.0, area - spread), min(1.0, area + spread)), (len(first), len(second)))


def _sample(records: Floats, counts: Ints, seed: int, frame: int) -> Floats:
    """Return at most MOST_ROWS rows of (n, d) records, sorted: what is drawn must not depend on the order of rows."""
    order = np.lexsort(records.T)
    ends = np.cumsum(counts[order])
    total = int(ends[-1])
    rng = seeds.stream(seed, "discriminator", "rows", frame)
    rows = np.arange(total) if total <= MOST_ROWS else rng.choice(total, MOST_ROWS, replace=False)
    return records[order[np.searchsorted(ends, rows, "right")]]


def _folds(records: Floats, seed: int) -> Ints:
    """Return (n,) folds by the distinct record, so that neither order nor copies matter."""
    comparable = np.where(np.isnan(records), -np.inf, records)
    group = np.unique(comparable, axis=0, return_inverse=True)[1].ravel()
    drawn: Ints = seeds.stream(seed, "discriminator", "folds").permutation(int(group.max()) + 1) % FOLDS
    return drawn[group]


def _features(columns: Sequence[Column], frame: int) -> Floats:
    """Return (n, d) numbers; labels by their frequency in the original, the rare ones and the unseen ones together."""
    parts = []
    for column in columns:
        cells = column.cells[frame]
        if column.kind == "numeric":
            parts.append(cells)
            continue
        counts = count_labels(column.cells[0], len(column.labels), column.counts_of(0))
        rank = np.empty(len(counts), np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        code = np.where(counts > 0, np.minimum(rank, MOST_LABELS), MOST_LABELS + 1)
        parts.append(np.append(code, MOST_LABELS + 2)[cells].astype(np.float64))
    return np.column_stack(parts).astype(np.float64)


def _fit_and_score(columns: Sequence[Column], records: Floats, is_synthetic: Bools, held: Floats) -> Floats:
    from sklearn.ensemble import HistGradientBoostingClassifier

    order = np.lexsort([*records.T[::-1], is_synthetic])  # sums of gradients depend on the order of rows
    model = HistGradientBoostingClassifier(
        max_iter=60,
        early_stopping=False,
        random_state=0,
        categorical_features=[column.kind == "categorical" for column in columns],
        class_weight="balanced",
    )
    model.fit(records[order], is_synthetic[order])
    score: Floats = model.predict_proba(held)[:, 1]
    return score


def auc_with_variance(original: Floats, synthetic: Floats) -> tuple[float, float]:
    """Return P(synthetic scores higher) + ½ P(equal), and DeLong's estimate of its variance."""
    from scipy.stats import rankdata

    n, m = len(original), len(synthetic)
    both = rankdata(np.concatenate([original, synthetic]))
    above = (both[n:] - rankdata(synthetic)) / n
    below = 1 - (both[:n] - rankdata(original)) / m
    return float(above.mean()), float(above.var(ddof=1) / m + below.var(ddof=1) / n)
