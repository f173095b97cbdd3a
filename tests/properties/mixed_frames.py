"""Small mixed tables: numbers, whole numbers, dates, categories and truth values, with missing cells, ties and copies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

KINDS = ("whole", "real", "date", "category", "flag")


@st.composite
def mixed_frames(draw: st.DrawFn, frames: int = 3, most: int = 40) -> list[pd.DataFrame]:
    """Some tables with the same columns; the first has a value in every column."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sparse, reach = draw(st.sampled_from([0.0, 0.2])), draw(st.sampled_from([1, 3, 50]))
    made = []
    for number in range(frames):
        rows = draw(st.integers(2, most))
        columns = {}
        for place, kind in enumerate(kinds):
            codes = rng.integers(0, reach if number == 0 else reach + 2, rows)
            cells = {
                "whole": codes,
                "real": np.round(codes / 7, 3) - 0.5,
                "date": np.datetime64("2020-02-27") + codes.astype("timedelta64[D]"),
                "category": np.array([f"c{code}" for code in codes], object),
                "flag": codes % 2 == 0,
            }[kind]
            gone = rng.random(rows) < sparse
            gone[0] = False
            series = pd.Series(cells)
            columns[f"{kind}{place}"] = (
                series.astype(object).where(~gone, None) if kind == "flag" and gone.any() else series.mask(gone)
            )
        made.append(pd.DataFrame(columns))
    return made
