"""Another table as the population that the published rows were drawn from: how many of its rows each class covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Bools, Ints
    from dit_dask.values.release import Release
    from dit_dask.values.schema import Attribute, Schema

MOST_CELLS = 2**32  # classes times distinct rows of the population
BLOCK_CELLS = 2**24


def count_covered(release: Release, population: pd.DataFrame) -> tuple[Ints, int]:
    """Return (classes,) rows of a population that each class of a release covers, and how many rows it has.

    Classes with equal published values are one, in the order of their keys. Rows with a missing cell are left out.
    """
    codes, weights = encode_population(release.schema, population)
    keys, first = np.unique(release.published.keys(), axis=0, return_index=True)
    if len(keys) * len(codes) > MOST_CELLS:
        raise InputError(
            f"population: {len(keys):,} classes and {len(codes):,} different rows are too many to compare; "
            "give its size with population_size instead"
        )
    levels = [len(attribute.levels) for attribute in release.schema.quasi_identifiers]
    coverage = [release.published.coverage(place, size) for place, size in enumerate(levels)]
    spread = [_spread(attribute, sets) for attribute, (_, sets) in zip(release.schema.quasi_identifiers, coverage, strict=True)]
    values = [value[first] for value, _ in coverage]
    sizes = np.zeros(len(keys), np.int64)
    step = max(1, BLOCK_CELLS // max(1, len(keys)))
    for start in range(0, len(codes), step):
        block = codes[start : start + step]
        inside = np.ones((len(keys), len(block)), bool)
        for place, sets in enumerate(spread):
            inside &= sets[values[place]][:, block[:, place]]
        sizes += inside @ weights[start : start + step]
    return sizes, int(weights.sum())


def encode_population(schema: Schema, population: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the different rows as places, and how often each occurs.

    A place of an ordered attribute is 2c + 1 for the value of code c, and 2c for values between the codes c - 1 and c; that of
    another is c, or the number of codes for a value that the table under audit does not have.
    """
    missing = [one.name for one in schema.quasi_identifiers if one.name not in population.columns]
    if missing:
        raise InputError(f"population: no column {missing[0]!r}; it must have all quasi-identifiers as columns")
    used = population[[one.name for one in schema.quasi_identifiers]].dropna()
    if used.empty:
        raise InputError("population: no row has a value in every quasi-identifier")
    places = np.column_stack([_places(one, used[one.name]) for one in schema.quasi_identifiers])
    rows, counts = np.unique(places, axis=0, return_counts=True)
    return rows, counts


def _places(attribute: Attribute, cells: pd.Series[Any]) -> Ints:
    import pandas as pd

    if _is_ordered(attribute):
        numbers, levels = _numbers(attribute, cells), np.array(attribute.levels)
        below = np.searchsorted(levels, numbers)
        is_level = np.searchsorted(levels, numbers, "right") > below
        places: Ints = np.where(is_level, 2 * below + 1, 2 * below)
        return places
    codes = pd.Index([str(level) for level in attribute.levels]).get_indexer(pd.Index(cells.astype(str)))
    return np.where(codes < 0, len(attribute.levels), codes).astype(np.int64)


def _is_ordered(attribute: Attribute) -> bool:
    return attribute.values is not None and attribute.kind in ("numeric", "date")


def _numbers(attribute: Attribute, cells: pd.Series[Any]) -> Any:
    import pandas as pd

    if attribute.unit is None:
        numbers = pd.to_numeric(cells, errors="coerce")
    else:
        moments = pd.to_datetime(cells, errors="coerce", utc=True).dt.tz_localize(None)
        whole = moments.to_numpy().astype(f"datetime64[{attribute.unit}]")
        numbers = pd.Series(whole.astype(np.int64), cells.index).where(moments.notna())
    if numbers.isna().any():
        kind = "numbers" if attribute.unit is None else "dates"
        raise InputError(f"population: the column {attribute.name!r} must be {kind}, as in the table under audit")
    return numbers.to_numpy()


def _spread(attribute: Attribute, sets: Bools) -> Bools:
    """Return (published values, places): which places each covers; between two covered neighbours everything is covered."""
    count = sets.shape[1]
    if not _is_ordered(attribute):
        everything = sets.all(axis=1, keepdims=True)  # a suppressed value covers also what the table does not have
        return np.concatenate([sets, everything], axis=1)
    spread = np.zeros((len(sets), 2 * count + 1), bool)
    spread[:, 1::2] = sets
    spread[:, 2:-1:2] = sets[:, 1:] & sets[:, :-1]
    everything = sets.all(axis=1)
    spread[everything, 0] = spread[everything, -1] = True
    return spread
