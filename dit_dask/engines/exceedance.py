"""What repeated releases show: how often single distances exceed a limit, and how much of a distance is above the noise."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.distances import EPSILONS, THRESHOLDS
from dit_dask.engines.influence import CurvePoint, Estimates, Exceedance, ExceedanceShares, Excess, RowBounds
from dit_dask.engines.permutation import smallest_p_value
from dit_dask.values.intervals import lower_limit, student_factor, upper_limit

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

ERROR = 0.05  # the probability that any lower end is too high, and that any upper end is too low


def exceedance(estimates: Estimates, repeats: int, largest: float) -> Exceedance:
    """Describe Pr[d >= limit] over rows: on average, for the worst row, and a bound on the latter for all rows at once.

    The bound is the upper end of exact binomial intervals with a joint confidence of 95% (Bonferroni).
    """
    rows = {name: values[~np.isnan(values)] for name, values in estimates.by_row.items()}
    over = {}
    for name in THRESHOLDS:
        shares, noise = rows[f"over_{name}"], rows[f"noise_over_{name}"]
        hits = round(float(shares.max()) * repeats)
        most = upper_limit(hits, repeats, ERROR / len(shares))
        over[name] = ExceedanceShares(float(shares.mean()), hits / repeats, most, float(noise.mean()), float(noise.max()))
    cutoff = holm_cutoff(estimates.by_record["p_value"])
    return Exceedance(
        repeats,
        float(rows["noise"].max()),
        over,
        float(rows["expected_noise"].mean()),
        float(rows["p_value"].min()),
        int((rows["p_value"] <= cutoff).sum()),
        bias=_bias(estimates, rows["bias"]),
        curve=epsilon_delta(estimates, repeats, largest),
    )


def _bias(estimates: Estimates, bias: Floats) -> dict[str, float]:
    """The bias of the row that has the largest distance, the first of equals, and the mean over rows."""
    distance = estimates.distance[~np.isnan(estimates.distance)]
    return {"delta": float(bias[distance.argmax()]), "mean": float(bias.mean())}


def epsilon_delta(estimates: Estimates, repeats: int, largest: float) -> tuple[CurvePoint, ...]:
    """Bound the largest Pr[d >= epsilon] of any person, for all persons and epsilons at once (decision 024).

    The ends are those of exact binomial intervals (Clopper and Pearson); Bonferroni's correction pays for every distinct
    record, or person, and every epsilon up to the `largest` distance that there is.
    """
    epsilons = {name: epsilon for name, epsilon in EPSILONS.items() if epsilon <= largest}
    first = _first_rows(estimates)
    tests = int((~np.isnan(estimates.by_record["p_value"])).sum()) if estimates.person is None else len(first)
    tail = ERROR / (max(1, tests) * len(epsilons))
    points = []
    for name, epsilon in epsilons.items():
        shares, noise = (estimates.by_row[f"{kind}_{name}"][first] for kind in ("over", "noise_over"))
        hits = round(float(shares.max()) * repeats)  # both ends grow with the number of hits, so the worst person has the worst
        ends = lower_limit(hits, repeats, tail), upper_limit(hits, repeats, tail)
        points.append(CurvePoint(epsilon, float(shares.mean()), hits / repeats, *ends, float(noise.max())))
    return tuple(points)


def _first_rows(estimates: Estimates) -> Ints:
    """The tested rows, of each person the first one: in the curve all rows of a person have the same shares."""
    tested = np.flatnonzero(~np.isnan(estimates.distance))
    if estimates.person is None:
        return tested
    return tested[np.unique(estimates.person[tested], return_index=True)[1]]


def holm_cutoff(p_values: Floats) -> float:
    """The largest p-value that is significant after Holm's correction; -1 if none is."""
    ordered = np.sort(p_values[~np.isnan(p_values)])
    is_small = ordered <= ERROR / np.arange(len(ordered), 0, -1)
    count = len(ordered) if is_small.all() else int(np.argmin(is_small))
    return float(ordered[count - 1]) if count else -1.0


def lower_ends(estimates: Mapping[str, Floats], repeats: int, tests: int) -> Floats:
    """Return what each of so many tests shows above the noise at least, all of them at once with 95% confidence.

    The excess minus Student's factor times its error. It is zero where the p-value is not small enough, or where even two sides
    without a common draw would not be rare enough among all divisions of so few draws.
    """
    tail = ERROR / tests
    ends = _below(estimates["excess"], estimates["excess_stderr"], tail, repeats)
    is_significant = estimates["p_value"] <= max(tail, smallest_p_value(repeats))
    low: Floats = np.where(is_significant, np.maximum(ends, 0.0), 0.0)
    low[np.isnan(estimates["excess"])] = np.nan
    return low


def _below(excess: Floats, error: Floats, tail: float, repeats: int) -> Floats:
    """Both halves of the draws measure, so each gets half of the tail; the smaller side has repeats // 2 draws."""
    if comb(2 * repeats, repeats) * tail < 2:
        return np.zeros_like(excess)
    ends: Floats = excess - student_factor(tail / 2, repeats // 2 - 1) * error
    return ends


def _above(distance: Floats, error: Floats, tail: float, repeats: int, largest: float) -> Floats:
    """The distance is too large on average, never too small; what no draw has shown may have a probability of `unseen`."""
    unseen = 1 - tail ** (1 / repeats)
    ends: Floats = np.minimum(distance + student_factor(tail, repeats - 1) * error + largest * unseen, largest)
    return ends


def row_bounds(estimates: Estimates, repeats: int, largest: float) -> RowBounds:
    """Bound what is above the noise, for every row and on average; `largest` is the distance of two certain beliefs.

    Errors of the mean are bounded by the mean of the errors: rows share the releases of the whole table.
    """
    tested = ~np.isnan(estimates.distance)
    rows = {name: values[tested] for name, values in estimates.by_row.items()}
    distance = estimates.distance[tested]
    tests = max(1, int((~np.isnan(estimates.by_record["excess"])).sum()))
    high = _above(distance, rows["stderr"], ERROR / tests, repeats, largest)
    average = {name: np.array([values.mean()]) for name, values in rows.items()}
    ends = (
        _below(average["excess"], average["excess_stderr"], ERROR, repeats),
        _above(np.array([distance.mean()]), average["stderr"], ERROR, repeats, largest),
    )
    mean = Excess(max(0.0, float(average["excess"][0])), (max(0.0, float(ends[0][0])), float(ends[1][0])))
    bounds = RowBounds(np.maximum(rows["excess"], 0.0), lower_ends(rows, repeats, tests), high, mean)
    return bounds if estimates.person is None else _bounds_of_persons(bounds, estimates.person[tested])


def _bounds_of_persons(bounds: RowBounds, person: Ints) -> RowBounds:
    """Take the largest of each person's rows: ends that hold for all rows at once hold for these, and so for their mean."""
    order = np.argsort(person, kind="stable")
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    ends = (bounds.estimate, bounds.low, bounds.high)
    estimate, low, high = (np.maximum.reduceat(values[order], starts) for values in ends)
    return RowBounds(estimate, low, high, Excess(float(estimate.mean()), (float(low.mean()), float(high.mean()))))
