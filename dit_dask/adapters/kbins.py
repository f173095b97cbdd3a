"""Bins learned from the table by scikit-learn's KBinsDiscretizer, published as intervals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dit_dask.adapters import inputs
from dit_dask.adapters.levels import format_number
from dit_dask.values.hierarchy import ROOT

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Floats

STRATEGIES = ("quantile", "uniform", "kmeans")


def kbins(frame: pd.DataFrame, columns: Sequence[str], bins: int = 5, strategy: str = "quantile") -> pd.DataFrame:
    """Publish each numeric column as one of at most `bins` intervals, closed on the left, the last one on both sides.

    The edges are fitted on the given table: the outermost are its minimum and maximum, and one record can move them.
    Other columns are published as they are. A column with a single value becomes `*`.
    """
    from sklearn.preprocessing import KBinsDiscretizer

    names = inputs.check_columns(frame, columns, "columns")
    inputs.check_numeric(frame, names, "columns")
    inputs.check_integer("bins", bins, 2, max(2, len(frame)), "the rows of the table")
    inputs.check_choice("strategy", strategy, STRATEGIES)
    # all rows, not a random sample of them: the same table must give the same bins
    discretizer = KBinsDiscretizer(n_bins=bins, strategy=strategy, encode="ordinal", subsample=None)
    values = frame[names].to_numpy(dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer bins where values coincide, and one for a constant, are what we publish
        codes = discretizer.fit_transform(values)
    published = {
        name: _format_intervals(edges, values[:, position].max())[codes[:, position].astype(int)]
        for position, (name, edges) in enumerate(zip(names, discretizer.bin_edges_, strict=True))
    }
    return frame.assign(**published)


def _format_intervals(edges: Floats, highest: float) -> NDArray[np.object_]:
    """Return (bins,) texts; KBinsDiscretizer puts a value that equals an inner edge into the bin above."""
    import numpy as np

    if len(edges) < 2 or np.isinf(edges).any():  # a single value, or values too close for scikit-learn to tell apart
        return np.array([ROOT], dtype=object)
    bounds = [format_number(edge) for edge in edges]
    bounds[-1] = format_number(max(edges[-1], highest))  # an edge close to the one before is dropped, even the last
    closing = ")" * (len(edges) - 2) + "]"
    return np.array([f"[{low}, {high}{end}" for low, high, end in zip(bounds, bounds[1:], closing, strict=False)], dtype=object)
