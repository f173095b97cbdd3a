"""The distribution of a test's distances, and the one table of its statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dit_dask.distances import THRESHOLDS
from dit_dask.engines.gain import CHANGED, GainTally
from dit_dask.measures.utility.figures import QUERY_LEVELS, WAYS

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

MOST_POINTS = 10_000

Figure = float | None  # None: it does not apply
Output = Literal["terminal", "report", "compare", "history"]
Power = Literal["limit", "key", "gain", "prediction"]


@dataclass(frozen=True, eq=False)
class Distribution:
    """How many rows and distinct records have each distance; distances ascend and are unique.

    Where some persons have several rows, all that is counted are persons, beside `tested_rows` and how many of these differ.
    `gains` has the tally of every adversary; of several adversaries, `members` has the distribution of each one's distances.
    """

    distance: Floats
    rows: Ints
    distinct: Ints
    changed: int
    skipped: int = 0
    gains: Mapping[str, GainTally] = field(default_factory=dict)
    members: Mapping[str, Distribution] = field(default_factory=dict)
    tested_rows: int | None = None
    distinct_rows: int | None = None

    @classmethod
    def of(cls, distance: Floats, rows: Ints, changed: int) -> Distribution:
        """Count distinct records with these distances, each of which stands for so many rows; no number: a skipped one."""
        tested = ~np.isnan(distance)
        skipped = int(rows[~tested].sum())
        unique, inverse = np.unique(distance[tested], return_inverse=True)
        # sums of counts below 2^53 are exact as floats
        counted = np.bincount(inverse, weights=rows[tested], minlength=len(unique)).astype(np.int64)
        return cls(unique, counted, np.bincount(inverse, minlength=len(unique)), changed, skipped)

    @property
    def total(self) -> int:
        """How many persons were tested, each of them a row unless some have several."""
        return int(self.rows.sum())

    def of_adversary(self, name: str) -> Distribution:
        """What one adversary alone gives."""
        tally = self.gains[name]
        return replace(self.members.get(name, self), changed=tally.marked(CHANGED), gains={name: tally}, members={})


def mean(distribution: Distribution) -> float:
    """The mean distance over rows."""
    with np.errstate(invalid="ignore"):
        return float((distribution.distance * distribution.rows).sum() / distribution.total)


def standard_deviation(distribution: Distribution) -> float:
    """The standard deviation over rows; no number where a distance is infinite."""
    with np.errstate(invalid="ignore"):
        squares = distribution.rows * (distribution.distance - mean(distribution)) ** 2
        return math.sqrt(float(squares.sum() / distribution.total))


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


def share_over(distribution: Distribution, limit: float) -> float:
    """The share of rows whose distance is larger than a limit."""
    return int(distribution.rows[distribution.distance > limit].sum()) / distribution.total


def mean_gain(distribution: Distribution) -> float:
    """The mean gain over rows, of the adversary that gains most."""
    return max((tally.mean for tally in distribution.gains.values()), default=math.nan)


def largest_gain(distribution: Distribution) -> float:
    """The largest gain of any row and adversary."""
    return max((tally.largest for tally in distribution.gains.values() if tally.largest is not None), default=math.nan)


@dataclass(frozen=True)
class Statistic:
    """One row of the table below: everything that gates, terminal, report, compare, history and the API know of a statistic.

    `compute` takes the merged distribution and, where there are `keys`, the number of a key; without it the summary has a
    field of this name, which says something of the release or the engine. `grows` tells whether the figure can only grow
    as the distances of more records become known, so that a gate can fail early. `of_adversaries`: the summary has it for
    every adversary alone, too. `power` tells what of a gate is compared with what the planted person reaches: its limit or
    its key with the distance, its limit with the gain, or whether any prediction changes; None where the figure is not one
    of inference. `range` limits the numbers that may stand in place of a key, `values` those that the figure itself can take.
    `shown` lists, for each output, the keys
    that get a column there (None where there are no keys).
    """

    name: str
    title: str
    compute: Callable[..., float] | None = None
    keys: Mapping[str, float] = field(default_factory=dict)
    grows: bool = False
    format: Literal["number", "share"] = "number"
    of_adversaries: bool = True
    power: Power | None = None
    range: tuple[float, float] = (0.0, 1.0)
    values: tuple[float, float] = (0.0, math.inf)
    shown: Mapping[Output, Sequence[str | None]] = field(default_factory=dict)

    def figures(self, distribution: Distribution) -> Figure | dict[str, Figure]:
        """Compute the figure, or one for each key."""
        if self.compute is None:
            raise TypeError(f"{self.name} is not computed from distances")
        if self.keys:
            return {key: _applicable(self.compute(distribution, number)) for key, number in self.keys.items()}
        return _applicable(self.compute(distribution))

    def label(self, key: str | None = None) -> str:
        """The name as gates write it."""
        return self.name if key is None else f"{self.name}[{key}]"


def _given(rows: int | None, persons: int) -> int:
    return persons if rows is None else rows


def _applicable(value: float) -> Figure:
    return None if math.isnan(value) else value


def _in(*outputs: Output) -> dict[Output, Sequence[str | None]]:
    return dict.fromkeys(outputs, (None,))


SHARE, GAIN, COUNT = (0.0, 1.0), (-1.0, 1.0), (1.0, math.inf)
LEVELS = {str(level): level for level in (0.5, 0.9, 0.99, 0.999)}
QUANTILES_SHOWN: dict[Output, Sequence[str | None]] = {
    "terminal": ("0.99",),
    "report": ("0.5", "0.99", "0.999"),
    "compare": ("0.99",),
}
SHARES_SHOWN: dict[Output, Sequence[str | None]] = {
    "terminal": ("0.01", "0.1"),
    "report": tuple(THRESHOLDS),
    "compare": ("0.01",),
}

# In the order of summary.json and of the columns.
STATISTICS: tuple[Statistic, ...] = (
    Statistic("records", "rows", lambda d: _given(d.tested_rows, d.total), of_adversaries=False, shown=_in("report")),
    Statistic(
        "distinct",
        "distinct",
        lambda d: _given(d.distinct_rows, int(d.distinct.sum())),
        of_adversaries=False,
        shown=_in("report"),
    ),
    Statistic("subjects", "persons", lambda d: d.total, of_adversaries=False, shown=_in("report")),
    Statistic(
        "delta",
        "delta",
        lambda d: float(d.distance[-1]),
        grows=True,
        power="limit",
        shown=_in("terminal", "report", "compare", "history"),
    ),
    Statistic("mean", "mean", mean, grows=True, power="limit", shown=_in("terminal", "report", "compare", "history")),
    Statistic("std", "std", standard_deviation, power="limit"),
    Statistic("quantiles", "q{key}", quantile, LEVELS, grows=True, power="limit", shown=QUANTILES_SHOWN),
    Statistic(
        "share_over",
        "d>{key}",
        share_over,
        THRESHOLDS,
        grows=True,
        format="share",
        power="key",
        range=(0.0, math.inf),
        values=SHARE,
        shown=SHARES_SHOWN,
    ),
    Statistic(
        "argmax_changed",
        "prediction changed",
        lambda d: d.changed / d.total,
        grows=True,
        format="share",
        power="prediction",
        values=SHARE,
        shown=_in("terminal", "report", "compare"),
    ),
    Statistic("mean_gain", "mean gain", mean_gain, power="gain", values=GAIN, shown=_in("terminal", "report", "compare")),
    Statistic("largest_gain", "largest gain", largest_gain, power="gain", values=GAIN, shown=_in("report")),
    Statistic("skipped", "skipped", lambda d: d.skipped, of_adversaries=False),
    Statistic("classes", "classes", values=COUNT, shown=_in("terminal", "report")),
    Statistic("smallest_class", "smallest", values=COUNT, shown=_in("terminal", "report")),
    Statistic(
        "certainty_penalty",
        "certainty penalty",
        values=SHARE,
        shown=_in("terminal", "report", "compare", "history"),
    ),
    Statistic("discernibility", "discernibility", values=COUNT, shown=_in("report", "compare")),
    Statistic("average_class", "average class", values=COUNT, shown=_in("report")),
    Statistic("average_class_over_k", "average class / k", shown=_in("report")),
    Statistic(
        "query_error",
        "query error q{key}",
        keys=QUERY_LEVELS,
        shown={"report": ("0.5", "0.95"), "compare": ("0.5",)},
    ),
    Statistic("tvd", "{key}-way TVD", keys=WAYS, values=SHARE, shown={"report": tuple(WAYS), "compare": ("2",)}),
    Statistic("seconds", "engine s", shown=_in("terminal")),
)


def by_name() -> dict[str, Statistic]:
    """The rows of the table by their names."""
    return {statistic.name: statistic for statistic in STATISTICS}


@dataclass(frozen=True)
class Statistics:
    """The figures of one distribution, by the names of the table; a statistic with keys has a mapping."""

    values: Mapping[str, Figure | Mapping[str, Figure]]

    def figure(self, name: str, key: str | None = None) -> Figure:
        """One figure; None where it does not apply, or was not computed when the run was made."""
        value = self.values.get(name)
        if isinstance(value, Mapping):
            return None if key is None else value.get(key)
        return value

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return {
            name: {key: plain(item) for key, item in value.items()} if isinstance(value, Mapping) else plain(value)
            for name, value in self.values.items()
        }

    def labelled(self, names: Sequence[str]) -> dict[str, float]:
        """The figures of some statistics that apply, by their names as gates write them."""
        rows = [by_name()[name] for name in names]
        figures = {one.label(key): self.figure(one.name, key) for one in rows for key in one.keys or (None,)}
        return {label: figure for label, figure in figures.items() if figure is not None}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Statistics:
        """The inverse of `document`; what a run of another version did not compute is left out."""
        names = [statistic.name for statistic in STATISTICS if statistic.compute is not None and statistic.name in document]
        return cls({name: _figures(document[name]) for name in names})


def _figures(value: Any) -> Figure | dict[str, Figure]:
    return {key: number_of(item) for key, item in value.items()} if isinstance(value, Mapping) else number_of(value)


def describe(distribution: Distribution) -> Statistics:
    """Compute all statistics over rows."""
    return Statistics({one.name: one.figures(distribution) for one in STATISTICS if one.compute is not None})


def describe_adversaries(distribution: Distribution) -> dict[str, Statistics]:
    """Compute the statistics of every adversary alone."""
    chosen = [one for one in STATISTICS if one.compute is not None and one.of_adversaries]
    return {
        name: Statistics({one.name: one.figures(distribution.of_adversary(name)) for one in chosen})
        for name in distribution.gains
    }


def plain(value: Figure) -> float | str | None:
    """Make a number fit for JSON: infinite is a word, not applicable is null."""
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else "inf"


def number_of(value: float | str | None) -> Figure:
    """Read a number back from JSON, where an infinite one is a word."""
    return float(value) if isinstance(value, str) else value


def from_points(distance: Floats, cumulative: Floats, rows: int) -> Distribution:
    """Rebuild a distribution from stored points; rows between two points are taken for the upper one, never the lower."""
    reach = np.rint(cumulative * rows).astype(np.int64)
    counted = np.diff(reach, prepend=0)
    return Distribution(distance, counted, counted, 0)


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
