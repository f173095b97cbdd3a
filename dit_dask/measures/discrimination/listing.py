"""What measures.json tells of single values: groups of enough rows, figures of limited precision, no order of codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.discrimination.contingency import Profile
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Floats, Ints

MAX_LISTED = 1000
DECIMALS = 2
COUNT_STEP = 5


def list_by_value(
    profile: Profile, label: Callable[[int], Any], *, show_values: bool, is_rare_target: bool = False
) -> list[dict[str, Any]]:
    """List the keys by descending refinement; rare ones, and those beyond the thousandth, are pooled in a last line.

    Where the target itself separates fewer rows than may be disclosed, all keys are pooled.
    """
    if show_values:
        return _list_exactly(profile, label)
    disclosed = split_disclosed(profile.count) & (not is_rare_target)
    describe = partial(_describe_keys, profile.count, profile.refinements, profile.count.sum())
    lines = sorted(
        ((key, describe(np.array([key]))) for key in np.flatnonzero(disclosed).tolist()), key=lambda pair: _rank(pair[1])
    )
    last = _rank(lines[min(MAX_LISTED, len(lines)) - 1][1]) if lines else ()
    lines = [(key, line) for key, line in lines if _rank(line) <= last]  # names take longest: only of those that may be listed
    # ties are in the order of names: sorting by exact figures or by code would tell what rounding hides
    named = [(key, {"value": label(key), **line}) for key, line in lines]
    named.sort(key=lambda pair: (*_rank(pair[1]), str(pair[1]["value"])))
    listed = [key for key, _ in named[:MAX_LISTED]]
    pooled = np.setdiff1d(np.flatnonzero(profile.count > 0), listed)
    shown = [line for _, line in named[:MAX_LISTED]]
    if profile.count[pooled].sum() < MIN_DISCLOSED_COUNT:
        return shown
    return [*shown, {"value": None, "values": len(pooled), **describe(pooled)}]


def _list_exactly(profile: Profile, label: Callable[[int], Any]) -> list[dict[str, Any]]:
    count, rates, refinements = profile.count, profile.rates, profile.refinements
    order = np.lexsort((np.arange(len(count)), -count, -refinements))
    return [
        {
            "value": label(int(key)),
            "count": _to_integer(count[key]),
            "rate": float(rates[key]),
            "refinement": float(refinements[key]),
        }
        for key in order[count[order] > 0]
    ]


def _rank(line: Mapping[str, Any]) -> tuple[float, ...]:
    """What lines are sorted by before their names."""
    return -line["refinement"], -line["count"]


def _describe_keys(counts: Floats, refinements: Floats, total: float, keys: Ints) -> dict[str, Any]:
    """Return the figures of a group; the rate comes from the rounded ones, because p(y) would tell the exact count."""
    count = counts[keys]
    refinement = round_figure(float((count * refinements[keys]).sum() / count.sum()))
    rounded = round_count(float(count.sum()))
    return {"count": rounded, "rate": round_figure(1 - min(1.0, rounded / total) * (1 - refinement)), "refinement": refinement}


def list_partitions(lines: Sequence[Mapping[str, Any]], *, show_values: bool) -> list[dict[str, Any]]:
    """List the sensitive values that enough rows have by descending rate; the others are pooled in a last line."""
    by_rate = sorted(lines, key=lambda line: (-line["rate"], str(line["value"])))
    if show_values:
        return [dict(line) for line in by_rate]
    count = np.array([line["count"] for line in by_rate], np.float64)
    disclosed = split_disclosed(count)
    listed = [
        {"value": line["value"], "count": round_count(line["count"]), "rate": round_figure(line["rate"])}
        for line, is_shown in zip(by_rate, disclosed, strict=True)
        if is_shown
    ]
    listed.sort(key=lambda line: (-line["rate"], str(line["value"])))
    pooled = np.flatnonzero(~disclosed)
    if count[pooled].sum() < MIN_DISCLOSED_COUNT:
        return listed
    rate = sum(by_rate[index]["rate"] * count[index] for index in pooled) / count[pooled].sum()
    figures = {"count": round_count(float(count[pooled].sum())), "rate": round_figure(float(rate))}
    return [*listed, {"value": None, "values": len(pooled), **figures}]


def split_disclosed(count: Floats) -> Bools:
    """Tell which groups may be listed by themselves: those of enough rows, and the rest together has enough rows too."""
    disclosed: Bools = count >= MIN_DISCLOSED_COUNT
    smallest_first = np.argsort(count, kind="stable")
    for key in smallest_first[disclosed[smallest_first]]:
        if not 0 < count[~disclosed].sum() < MIN_DISCLOSED_COUNT:
            break
        disclosed[key] = False  # the rows of a small rest follow from the total: it needs company
    return disclosed


def round_figure(value: float) -> float:
    """Return a figure of a group with the precision that is shown; finer ones tell the counts that they come from."""
    return round(value, DECIMALS) + 0.0


def round_count(count: float) -> int:
    """Return the number of rows of a group to the next multiple of five, so that differences do not show single rows."""
    return int(count / COUNT_STEP + 0.5) * COUNT_STEP


def _to_integer(count: float) -> int | float:
    return int(count) if float(count).is_integer() else float(count)
