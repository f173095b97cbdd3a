"""The distribution of a test's distances: merged from parts in any order, then described."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

QUANTILES = (0.5, 0.9, 0.99, 0.999)
THRESHOLDS = {"0.001": 0.001, "0.00316": 10**-2.5, "0.01": 0.01, "0.1": 0.1}
MOST_POINTS = 10_000
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Distribution:
    """How many rows and distinct records have each distance; distances ascend and are unique."""

    distance: Floats
    rows: Ints
    distinct: Ints
    changed: int
    skipped: int = 0

    @classmethod
    def of(cls, distance: Floats, first: Bools, changed: int) -> Distribution:
        """Count rows with these distances; `first` marks the first row of each distinct record, no number a skipped one."""
        tested = ~np.isnan(distance)
        skipped = int((~tested).sum())
        distance, first = distance[tested], first[tested]
        unique, inverse = np.unique(distance, return_inverse=True)
        distinct = np.bincount(inverse, weights=first, minlength=len(unique)).astype(np.int64)
        return cls(unique, np.bincount(inverse, minlength=len(unique)), distinct, changed, skipped)


def merge(parts: Sequence[Distribution]) -> Distribution:
    """Add distributions up; counts are integers, so the order of merging cannot show."""
    unique, inverse = np.unique(np.concatenate([part.distance for part in parts]), return_inverse=True)
    rows, distinct = np.zeros(len(unique), np.int64), np.zeros(len(unique), np.int64)
    np.add.at(rows, inverse, np.concatenate([part.rows for part in parts]))
    np.add.at(distinct, inverse, np.concatenate([part.distinct for part in parts]))
    changed, skipped = sum(part.changed for part in parts), sum(part.skipped for part in parts)
    return Distribution(unique, rows, distinct, changed, skipped)


def describe(distribution: Distribution) -> dict[str, Any]:
    """Return the statistics over rows, as they go into summary.json."""
    distance, rows = distribution.distance, distribution.rows
    total = int(rows.sum())
    with np.errstate(invalid="ignore"):
        mean = float((distance * rows).sum() / total)
        variance = float((rows * (distance - mean) ** 2).sum() / total)
    return {
        "records": total,
        "distinct": int(distribution.distinct.sum()),
        "delta": plain(float(distance[-1])),
        "mean": plain(mean),
        "std": plain(math.sqrt(variance)),
        "quantiles": {str(level): plain(quantile(distribution, level)) for level in QUANTILES},
        "share_over": {name: int(rows[distance > limit].sum()) / total for name, limit in THRESHOLDS.items()},
        "argmax_changed": distribution.changed / total,
        "skipped": distribution.skipped,
    }


def sampled(statistics: Mapping[str, Any], population: int) -> dict[str, Any]:
    """What a random sample of rows says about all of them, each statement with CONFIDENCE.

    Intervals for the shares are exact binomial ones (Clopper and Pearson), a little wide because rows are drawn without
    replacement. A sample bounds how many rows may lie above its own maximum, never how far above; if rows were skipped, not
    even that.
    """
    from scipy.stats import beta

    tested, skipped, tail = statistics["records"], statistics["skipped"], (1 - CONFIDENCE) / 2
    size = tested + skipped  # what was skipped may lie on either side of a limit
    intervals = {}
    for name, share in statistics["share_over"].items():
        over = round(share * tested)
        most = over + skipped
        low = float(beta.ppf(tail, over, size - over + 1)) if over else 0.0
        high = float(beta.ppf(1 - tail, most + 1, size - most)) if most < size else 1.0
        intervals[name] = [low, high]
    above = None if skipped else 1 - (1 - CONFIDENCE) ** (1 / size)
    return {"rows": population, "confidence": CONFIDENCE, "share_over": intervals, "above_delta_at_most": above}


def quantile(distribution: Distribution, level: float) -> float:
    """Interpolate linearly between rows, as numpy.quantile does by default."""
    reach = np.cumsum(distribution.rows)
    place = (int(reach[-1]) - 1) * level
    below = math.floor(place)
    low, high = (float(distribution.distance[np.searchsorted(reach, row, "right")]) for row in (below, math.ceil(place)))
    weight = place - below
    if low == high or weight == 0:
        return low
    if math.isinf(high):
        return high
    return high - (high - low) * (1 - weight) if weight >= 0.5 else low + (high - low) * weight


def plain(value: float) -> float | str | None:
    """Make a number fit for JSON: infinite is a word, not applicable is null."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "inf"


def points(distribution: Distribution) -> dict[str, Floats]:
    """Return the cumulative shares at no more than MOST_POINTS distances, both ends among them."""
    size = len(distribution.distance)
    chosen = np.unique(np.linspace(0, size - 1, min(size, MOST_POINTS)).round().astype(np.int64))
    rows, distinct = np.cumsum(distribution.rows), np.cumsum(distribution.distinct)
    return {
        "distance": distribution.distance[chosen],
        "cumulative": rows[chosen] / rows[-1],
        "cumulative_distinct": distinct[chosen] / max(1, distinct[-1]),
    }
