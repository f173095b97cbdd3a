"""The lists `by_value` in measures.json: a value is named only where enough rows share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.measures.discrimination.contingency import Profile
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

MAX_LISTED = 1000


def list_by_value(profile: Profile, label: Callable[[int], Any], *, show_values: bool) -> list[dict[str, Any]]:
    """List the keys by descending refinement; rare ones, and those beyond the thousandth, are pooled in a last line."""
    count, rates, refinements = profile.count, profile.rates, profile.refinements
    order = np.lexsort((np.arange(len(count)), -count, -refinements))
    order = order[count[order] > 0]
    listed = order if show_values else order[count[order] >= MIN_DISCLOSED_COUNT][:MAX_LISTED]
    lines: list[dict[str, Any]] = [
        {
            "value": label(int(key)),
            "count": _to_integer(count[key]),
            "rate": float(rates[key]),
            "refinement": float(refinements[key]),
        }
        for key in listed
    ]
    others = np.setdiff1d(order, listed)
    return [*lines, pool_keys(others, profile)] if len(others) else lines


def pool_keys(keys: Ints, profile: Profile) -> dict[str, Any]:
    """Return one line for keys that are not named: their number, their rows, and the largest rates among them."""
    return {
        "value": None,
        "values": len(keys),
        "count": _to_integer(profile.count[keys].sum()),
        "rate": float(profile.rates[keys].max()),
        "refinement": float(profile.refinements[keys].max()),
    }


def _to_integer(count: float) -> int | float:
    return int(count) if float(count).is_integer() else float(count)
