"""anjana's adapter on a table whose row labels are not positions, as a table without some of its rows has."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dit_dask.adapters import anjana


def t_closeness(frame: pd.DataFrame, **params: Any) -> pd.DataFrame:
    """Label the rows backwards from far away, then anonymise."""
    return anjana.t_closeness(frame.set_axis(range(9000, 9000 - len(frame), -1)), **params)
